import Glibc
import LinuxIO
import Synchronization
import VaultCrypto

/// Why a space cannot be opened for writing.
enum ClaimRefusal: Error {
    /// A mount of this computer has claimed it.
    case inUse
    /// A mount of another computer has, and did not give it up.
    case claimed
    case store(StoreError)
}

/// A mount's side of the protocol by which of several computers one alone writes to a space: see the format
/// specification, *Claims*.
///
/// Nothing is written before the space is claimed, and nothing when the last look at the claim is older than
/// `ClaimTimes.look`. Unchecked Sendable: what is not atomic is guarded by `lock`, which is held during I/O on the
/// claim.
/// It is taken after the locks of the space and its files, and takes none of them.
final class ClaimKeeper: @unchecked Sendable {
    private enum Phase {
        /// Nothing was written yet.
        case open
        case held
        /// Another mount has the space.
        case lost
    }

    private let slot: ClaimSlot
    private let host: ClaimHost
    private let own: Claim
    /// Until when writes need no look, by the host's clock.
    private let validUntil = Atomic<Int64>(.min)
    private let lastWrite = Atomic<Int64>(.min)

    private let lock = Lock()
    // All under `lock`.
    private var phase = Phase.open
    /// The claim may stand in the slot.
    private var mayStand = false
    /// The newest root there was when the space was opened.
    private var expected: RootMark?
    private var onLoss: @Sendable () -> Void = {}
    /// Why the last look failed.
    private var lookFailure: StoreError?

    /// Whether the space was taken over from a mount that may still be writing.
    private(set) var hasTakenOver = false

    /// Tries to claim a space on a host that takes longer than `ClaimTimes.race` for it.
    private static let hurriedAttempts = 3
    private static let claimAttempts = 6
    private static let takeOverAttempts = 3
    private static let slowLooksMax = 3
    /// A process that was killed has its threads until the disk has done what it was asked.
    private static let endingMilliseconds: Int64 = 10_000
    private static let pollMilliseconds: Int64 = 20

    init(_ slot: ClaimSlot, host: ClaimHost, key: SecretBytes, bootHash: [UInt8]) {
        self.slot = slot
        self.host = host
        own = Claim(of: host, key: key, bootHash: bootHash)
        ClaimOwners.insert(own.owner)
    }

    deinit { ClaimOwners.remove(own.owner) }

    // MARK: Opening

    /// To be called before anything of the space is read. Throws where another mount has claimed it, unless it is to be
    /// taken over from that one: then it is claimed when this returns.
    ///
    /// - Parameter takingOver: called, with the time in milliseconds, before a wait for the other mount to notice; nil:
    ///   nothing is taken over.
    func begin(takingOver: ((Int64) -> Void)?) throws(ClaimRefusal) {
        lock.lock()
        defer { lock.unlock() }
        var refusal: ClaimRefusal
        do throws(StoreError) {
            switch try fateOfStanding() {
            case .own, .dead, nil: return
            case .here, .ending: refusal = .inUse
            case .elsewhere: refusal = .claimed
            }
        } catch {
            refusal = .store(error)
        }
        guard let takingOver else { throw refusal }
        takingOver(host.times.takeOver)
        do throws(StoreError) {
            if try takeOver() { return }
        } catch { throw .store(error) }
        throw .claimed
    }

    /// What has become of who made the claim that stands; nil where none does. Waits for a process that is ending.
    private func fateOfStanding() throws(StoreError) -> ClaimFate? {
        let start = host.now()
        while true {
            guard case .claim(let claim) = try slot.standing() else { return nil }
            let fate = own.fate(of: claim, host)
            guard case .ending = fate, host.now() - start < Self.endingMilliseconds else { return fate }
            host.sleep(Self.pollMilliseconds)
        }
    }

    /// Claims the space whoever has it, and waits until that one has noticed, or may not write any more. False where a
    /// third one has claimed it meanwhile.
    private func takeOver() throws(StoreError) -> Bool {
        for _ in 0..<Self.takeOverAttempts {
            mayStand = true
            _ = try slot.write(own)
            host.sleep(host.times.takeOver)
            let looked = host.now()
            switch try slot.standing() {
            case .claim(let claim):
                guard claim.owner == own.owner else { return false }
                hasTakenOver = true
                hold(until: looked + host.times.look)
                return true
            // The other one has ended meanwhile, and given up what it took for its own claim.
            case .nothing, .doubt: continue
            }
        }
        return false
    }

    /// To be called when the space was read, before it is written to.
    ///
    /// - Parameters:
    ///   - newest: of all roots found.
    ///   - onLoss: called when the claim is another's, or was when it was to be made.
    func attach(newest: RootMark?, onLoss: @escaping @Sendable () -> Void) {
        lock.withLock {
            expected = newest
            self.onLoss = onLoss
        }
    }

    // MARK: Writing

    /// To be called right before anything is written to the space. Throws where it may not be.
    @inline(__always)
    func willWrite() throws(StoreError) {
        let now = host.now()
        lastWrite.store(now, ordering: .relaxed)
        if now < validUntil.load(ordering: .acquiring) { return }
        try renew()
    }

    private func renew() throws(StoreError) {
        lock.lock()
        defer { lock.unlock() }
        // Another thread may have done it.
        for _ in 0...Self.slowLooksMax where host.now() >= validUntil.load(ordering: .acquiring) {
            try makeSure()
        }
        // On a host that takes longer for a look than it is good for.
        if host.now() >= validUntil.load(ordering: .acquiring) { throw .io(Errno(ETIMEDOUT)) }
    }

    /// Under `lock`.
    private func makeSure() throws(StoreError) {
        switch phase {
        case .open: try claim()
        case .held: try lookAgain()
        case .lost: throw .readOnly
        }
    }

    /// Makes sure that the claim stands now. Throws where it does not, or cannot be read.
    func look() throws(StoreError) {
        lock.lock()
        defer { lock.unlock() }
        try makeSure()
    }

    /// Looks if that is due; returns after how many milliseconds to ask again, nil where never.
    func lookIfDue() -> Int64? {
        lock.lock()
        defer { lock.unlock() }
        guard case .held = phase else { return nil }
        let now = host.now()
        let isIdle = now > lastWrite.load(ordering: .relaxed) + ClaimTimes.idle
        let pause = isIdle ? ClaimTimes.lookIdle : host.times.lookAgain
        // What failed has been noted, and whoever writes next is told.
        try? lookAgain()
        return phase == .held ? pause : nil
    }

    /// Why the last look at the claim failed, so that nothing can be written; nil where it did not.
    var failure: StoreError? { lock.withLock { lookFailure } }

    /// Under `lock`, held.
    private func lookAgain() throws(StoreError) {
        let start = host.now()
        do throws(StoreError) {
            switch try slot.standing() {
            case .claim(let claim) where claim.owner == own.owner: hold(until: start + host.times.look)
            case .claim, .nothing: throw lose()
            case .doubt(let error): throw error
            }
        } catch {
            validUntil.store(.min, ordering: .releasing)
            if phase == .held { lookFailure = error }
            throw error
        }
    }

    private func hold(until end: Int64) {
        phase = .held
        lookFailure = nil
        validUntil.store(end, ordering: .releasing)
    }

    /// Says that another mount has the space; returns what to throw.
    private func lose() -> StoreError {
        phase = .lost
        lookFailure = nil
        validUntil.store(.min, ordering: .releasing)
        onLoss()
        return .readOnly
    }

    // MARK: Claiming

    /// Claims a space that nobody has claimed, and that is as this mount has read it. Under `lock`.
    ///
    /// Two may find it free at the same time. See the format specification for why only one of them goes on.
    private func claim() throws(StoreError) {
        let race = host.times.race
        for attempt in 0..<Self.claimAttempts {
            let start = host.now()
            guard try isFree() else { throw lose() }
            let limit = attempt < Self.hurriedAttempts ? race : host.times.look
            mayStand = true
            guard try slot.write(own, isInTime: { host.now() - start <= limit }) else { continue }
            let written = host.now()
            let isLate = written - start > race
            let pause = isLate ? host.times.takeOver : slot.isOnLocalDisk ? 0 : 2 * race
            if pause > 0 { host.sleep(pause) }
            let looked = host.now()
            guard try isWhole() else { continue }
            hold(until: pause > 0 ? looked + host.times.look : written + race)
            return
        }
        throw .io(Errno(ETIMEDOUT))
    }

    private func isFree() throws(StoreError) -> Bool {
        guard case .claim(let claim) = try slot.standing() else { return true }
        switch own.fate(of: claim, host) {
        case .own, .dead: return true
        case .here, .ending, .elsewhere: return false
        }
    }

    /// Whether the claim stands as it was written: false where a copy of it could not be, and still has that of a mount
    /// that has ended. Throws where another mount has the space, or has changed it since it was opened.
    private func isWhole() throws(StoreError) -> Bool {
        let start = host.now()
        switch try slot.standing() {
        case .claim(let claim) where claim.owner == own.owner: break
        case .claim(let claim):
            if case .dead = own.fate(of: claim, host) { return false }
            throw lose()
        case .nothing: throw lose()
        case .doubt(let error): throw error
        }
        guard try slot.newestRoot() == expected else {
            try? erase(lookedAt: start)
            throw lose()
        }
        return true
    }

    // MARK: The end

    /// Gives the claim up, when nothing more will be written. Best effort: what is left is that of a process that has
    /// ended.
    ///
    /// - Parameter newest: the newest root: what a mount that goes on writing all the same expects.
    func giveUp(newest: RootMark?) {
        lock.lock()
        defer { lock.unlock() }
        guard mayStand, phase != .lost else { return }
        let start = host.now()
        guard case .claim(let claim)? = try? slot.standing(), claim.owner == own.owner else { return }
        validUntil.store(.min, ordering: .releasing)
        (phase, expected) = (.open, newest)
        try? erase(lookedAt: start)
    }

    /// Unless so much time has passed since the claim was looked at that it may be another's.
    private func erase(lookedAt start: Int64) throws(StoreError) {
        try slot.erase { host.now() - start < host.times.look }
        mayStand = false
    }
}
