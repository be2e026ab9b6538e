import VaultCrypto

/// The times at which `CoverTraffic` changes the times of `spaces` and syncs it, depending on nothing but when the
/// space was used. Times are milliseconds of a monotonic clock.
struct CoverSchedule {
    enum Step: Equatable {
        /// Nothing is to be done until the next use.
        case rest
        /// Change the times this often, then sync or not, and come back after `pause`.
        case act(changes: Int, syncs: Bool)
    }

    /// Between two steps.
    static let pause: Int64 = 100
    /// How long to go on after the last use: longer than a durable commit takes to begin and to be written.
    static let afterUse: Range<UInt32> = 15_000..<25_000
    /// Between two syncs: about as often as a session that writes has durable commits.
    static let betweenSyncs: Range<UInt32> = 2000..<6000
    /// Powers of two: the changes of times in 40 steps.
    static let powers: UInt32 = 11
    private static let stepsPerPower: UInt32 = 40

    private var usesSeen: UInt64 = 0
    private var syncsSeen: UInt64 = 0
    private var end: Int64 = .min
    private var nextSync: Int64 = .min
    private var power: UInt32 = 0

    /// - Parameters:
    ///   - uses: number of uses so far: requests and writes.
    ///   - syncs: number of the session's own syncs so far. They count as syncs of the schedule.
    mutating func step(at now: Int64, uses: UInt64, syncs: UInt64) -> Step {
        if uses != usesSeen {
            usesSeen = uses
            end = now + Int64(draw(Self.afterUse))
        } else if now >= end {
            nextSync = .min
            return .rest
        }
        let isSynced = syncs != syncsSeen
        let isDue = now >= nextSync && !isSynced
        syncsSeen = syncs
        if isSynced || isDue {
            nextSync = now + Int64(draw(Self.betweenSyncs))
            power = randomNumber(below: Self.powers)
        }
        // On average 2^power changes in 40 steps, beyond one a step.
        let range = (2 << power) / Self.stepsPerPower
        return .act(changes: 1 + Int(randomNumber(below: range + 1)), syncs: isDue)
    }

    private func draw(_ range: Range<UInt32>) -> UInt32 {
        range.lowerBound + randomNumber(below: UInt32(range.count))
    }
}

/// The times of the syncs while a session ends: at random intervals, which do not depend on the work between two of
/// them as long as that takes at most `pause.lowerBound`. Times are nanoseconds of a monotonic clock.
struct ClosingSchedule {
    /// Between the beginnings of two syncs.
    static let pause: Range<UInt32> = 10_000_000..<30_000_000

    private var last: Int64

    init(start: Int64) { last = start }

    /// Returns when the next sync is to begin: now, if its work took longer than planned.
    mutating func turn(at now: Int64) -> Int64 {
        let planned = last + Int64(Self.pause.lowerBound + randomNumber(below: UInt32(Self.pause.count)))
        last = max(planned, now)
        return last
    }
}
