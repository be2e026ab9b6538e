import Glibc
import LinuxIO
import Synchronization
import VaultCrypto

/// Why a space cannot be opened for writing.
enum ClaimRefusal: Error {
    /// A mount of this computer has claimed it.
    case inUse
    /// A mount of another computer has claimed it and did not give it up.
    case claimed
    case store(StoreError)
}

/// A mount's side of the protocol by which only one of several computers writes to a space: see the format
/// specification, *Claims*.
///
/// Nothing is written before the space is claimed, nor when the last look at the claim is older than `ClaimTimes.look`.
/// Unchecked Sendable: `lock` guards all non-atomic state and is held during I/O on the claim. It is taken after the
/// locks of the space and its files; none of them is taken while it is held.
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
    /// End of the time in which writes need no look, by the host's clock.
    private let validUntil = Atomic<Int64>(.min)
    private let lastWrite = Atomic<Int64>(.min)

    private let lock = Lock()
    // All under `lock`.
    private var phase = Phase.open
    /// Whether the claim may be in the slot.
    private var mayStand = false
    /// The newest root when the space was opened.
    private var expected: RootMark?
    private var onLoss: @Sendable () -> Void = {}
    /// Why the last look failed.
    private var lookFailure: StoreError?

    /// Whether the space was taken over from a mount that may still be writing.
    private(set) var hasTakenOver = false

    /// Attempts to claim a space within `ClaimTimes.race`, before slower ones are accepted.
    private static let hurriedAttempts = 3
    private static let claimAttempts = 6
    private static let takeOverAttempts = 3
    private static let slowLooksMax = 3
    /// A killed process keeps its threads until the disk has finished their I/O.
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

    /// Called before anything of the space is read. Throws if another mount has claimed it. With `takingOver` the space
    /// is taken over from that mount instead, and is claimed when this returns.
    ///
    /// - Parameter takingOver: called, with the time in milliseconds, before the wait for the other mount to notice;
    ///   nil: do not take over.
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

    /// The fate of the mount that made the present claim; nil if there is no claim. Waits for a process that is ending.
    private func fateOfStanding() throws(StoreError) -> ClaimFate? {
        let start = host.now()
        while true {
            guard case .claim(let claim) = try slot.standing() else { return nil }
            let fate = own.fate(of: claim, host)
            guard case .ending = fate, host.now() - start < Self.endingMilliseconds else { return fate }
            host.sleep(Self.pollMilliseconds)
        }
    }

    /// Claims the space regardless of its owner, and waits until that mount has noticed or may no longer write. Returns
    /// false if a third mount has claimed it meanwhile.
    private func takeOver() throws(StoreError) -> Bool {
        // Nothing is written to the space of a later release.
        _ = try slot.newestRoot()
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
            // The other mount has ended meanwhile and erased the claim as its own.
            case .nothing, .doubt: continue
            }
        }
        return false
    }

    /// Called after the space was read, before it is written.
    ///
    /// - Parameters:
    ///   - newest: the newest of all roots found.
    ///   - onLoss: called when another mount is found to have claimed or changed the space, or the claim is gone.
    func attach(newest: RootMark?, onLoss: @escaping @Sendable () -> Void) {
        lock.withLock {
            expected = newest
            self.onLoss = onLoss
        }
    }

    // MARK: Writing

    /// Called right before every write to the space. Throws if it must not be written.
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
        // The host takes longer for a look than the look is valid.
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

    /// Checks that the claim is in the slot now; claims a space not claimed yet. Throws if it is lost or cannot be
    /// read.
    func verify() throws(StoreError) {
        lock.lock()
        defer { lock.unlock() }
        try makeSure()
    }

    /// Looks if that is due. Returns the milliseconds until the next call; nil for never.
    func lookIfDue() -> Int64? {
        lock.lock()
        defer { lock.unlock() }
        guard case .held = phase else { return nil }
        let now = host.now()
        let isIdle = now > lastWrite.load(ordering: .relaxed) + ClaimTimes.idle
        let pause = isIdle ? ClaimTimes.lookIdle : host.times.lookAgain
        // A failure was recorded, and the next write throws it.
        try? lookAgain()
        return phase == .held ? pause : nil
    }

    /// Why the last look at the claim failed, so that nothing can be written; nil if it succeeded.
    var failure: StoreError? { lock.withLock { lookFailure } }

    /// Under `lock`, in phase `held`.
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

    /// Notes that another mount has the space. Returns the error to throw.
    private func lose() -> StoreError {
        phase = .lost
        lookFailure = nil
        validUntil.store(.min, ordering: .releasing)
        onLoss()
        return .readOnly
    }

    // MARK: Claiming

    /// Claims an unclaimed space that has not changed since this mount read it. Under `lock`.
    ///
    /// Two mounts may find it free at the same time. See the article on claims for why only one of them continues.
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

    /// Whether the claim is in the slot as written: false if a copy could not be written and still has the claim of an
    /// ended mount. Throws if another mount has the space, or has changed it since it was opened.
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
            // A claim that stays is taken over like that of a mount which was killed.
            try? erase(lookedAt: start)
            throw lose()
        }
        return true
    }

    // MARK: Giving up

    /// Gives the claim up, when nothing more will be written. Best effort: a claim left behind is that of an ended
    /// process.
    ///
    /// - Parameter newest: the newest root, which is expected if this mount writes and claims again.
    func giveUp(newest: RootMark?) {
        lock.lock()
        defer { lock.unlock() }
        guard mayStand, phase != .lost else { return }
        let start = host.now()
        guard case .claim(let claim)? = try? slot.standing(), claim.owner == own.owner else { return }
        validUntil.store(.min, ordering: .releasing)
        (phase, expected) = (.open, newest)
        // As above.
        try? erase(lookedAt: start)
    }

    /// Erases the claim, unless the last look is so old that another mount may have claimed the space.
    private func erase(lookedAt start: Int64) throws(StoreError) {
        try slot.erase { host.now() - start < host.times.look }
        mayStand = false
    }
}
