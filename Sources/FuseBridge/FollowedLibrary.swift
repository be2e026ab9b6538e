internal import FileRequests
internal import Glibc
internal import LinuxIO
internal import PhotoLibrary
internal import Synchronization

/// The library of a mount beside one that writes: another one takes its place when there is a newer state, once a
/// minute, when a user asks for it, and whenever something does not open because it was overwritten.
///
/// Unchecked Sendable: `isEnding` and `isAsked` are guarded by `lock`.
final class FollowedLibrary: @unchecked Sendable {
    private let state: Mutex<(current: Library, former: Library?)>
    private let renewals = Atomic<Int>(0)
    /// Held while a newer library is opened.
    private let renewing = Lock()
    private let lock = Lock()
    private let wake = Condition()
    private var isEnding = false
    private var isAsked = false

    private static let pauseMilliseconds: Int64 = 60_000
    /// The kernel asks again after so many seconds, as nobody tells it what has changed.
    static let timeoutMax: Double = 1

    init(_ library: Library) { state = Mutex((library, nil)) }

    /// How often a newer state took the place of the one before.
    var renewalCount: Int { renewals.load(ordering: .relaxed) }

    var current: Library { state.withLock { $0.current } }

    /// Goes over to a newer state, if there is one. Returns whether another library than `seen` is current now.
    func renew(after seen: Library) -> Bool {
        renewing.withLock {
            if current !== seen { return true }
            // Without a newer state the error of the request stands.
            guard let next = try? seen.newer() else { return false }
            let former = state.withLock { state in
                defer { state = (next, state.current) }
                return state.former
            }
            renewals.wrappingAdd(1, ordering: .relaxed)
            // The last one's requests for thumbnails have a while to end.
            former?.cancelLongTasks()
            return true
        }
    }

    /// Starts looking for newer states, until `end`.
    func begin() {
        startThread { [self] in
            while !isOver(within: Self.pauseMilliseconds) { _ = renew(after: current) }
        }
    }

    /// Looks for a newer state now, on the thread that follows the writer; does not wait for it.
    func lookNow() {
        lock.withLock {
            isAsked = true
            wake.signalAll()
        }
    }

    /// Returns whether it has ended, after so long at most, or once a newer state is asked for.
    private func isOver(within milliseconds: Int64) -> Bool {
        let end = MonotonicClock.milliseconds + milliseconds
        return lock.withLock {
            while !isEnding, !isAsked, MonotonicClock.milliseconds < end {
                wake.wait(lock, untilMilliseconds: end)
            }
            isAsked = false
            return isEnding
        }
    }

    func end() {
        lock.withLock {
            isEnding = true
            wake.signalAll()
        }
        let (current, former) = state.withLock { $0 }
        current.cancelLongTasks()
        former?.cancelLongTasks()
    }
}

/// Attempts of one request. It is repeated while newer states are found in which what it needs may open.
struct RequestAttempts {
    private let followed: FollowedLibrary?
    private var seen: Library?
    private let end: Int64

    private static let milliseconds: Int64 = 10_000

    init(_ bridge: Bridge) {
        followed = bridge.followed
        seen = followed?.current
        end = followed == nil ? 0 : MonotonicClock.milliseconds + Self.milliseconds
    }

    /// Whether the request may succeed if it is repeated now.
    mutating func mayRepeat(after error: FileError) -> Bool {
        guard error == .damaged, let followed, let seen, MonotonicClock.milliseconds < end,
            followed.renew(after: seen)
        else { return false }
        self.seen = followed.current
        return true
    }
}
