import Glibc
import LinuxIO

/// Versions of objects that only this client may change. Each write to such an object names the version that the one
/// before it has made, so that it fails after a write by anybody else; and one is on its way at a time.
///
/// The callbacks of requests share it, as `PendingWrites`.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`.
final class ObjectVersions: @unchecked Sendable {
    /// A write that has its turn, until `end`.
    struct Turn {
        fileprivate let object: String
        /// The version that the object must have; nil if it may have any.
        let expected: UInt64?
    }

    private struct Object {
        /// Nil before the first write.
        var version: UInt64?
        var isBeingWritten = false
    }

    private let lock = Lock()
    private let hasEnded = Condition()
    private var objects: [String: Object] = [:]

    /// Call before the first write of those that are to be followed.
    func follow(_ object: String) { lock.withLock { objects[object] = objects[object] ?? Object() } }

    func unfollow(_ object: String) { lock.withLock { objects[object] = nil } }

    /// Whether `begin` would not wait.
    func isFree(_ object: String) -> Bool { lock.withLock { objects[object]?.isBeingWritten != true } }

    /// Waits until no write to an object is on its way. Nil if it is not followed; else `end` follows.
    func begin(_ object: String) -> Turn? {
        lock.withLock {
            while objects[object]?.isBeingWritten == true { hasEnded.wait(lock) }
            return turn(object)
        }
    }

    /// As `begin`, without waiting. `isFree` is false if a write is on its way.
    func beginAtOnce(_ object: String) -> (isFree: Bool, turn: Turn?) {
        lock.withLock {
            objects[object]?.isBeingWritten == true ? (false, nil) : (true, turn(object))
        }
    }

    /// Under the lock.
    private func turn(_ object: String) -> Turn? {
        guard let found = objects[object] else { return nil }
        objects[object]?.isBeingWritten = true
        return Turn(object: object, expected: found.version)
    }

    /// Returns the write's result: for one that found a version of somebody else, that another client has the lock.
    ///
    /// - Parameter turn: nil of an object that is not followed.
    func end(_ turn: Turn?, _ answer: PoolAnswer) -> Int32 {
        let result = answer.result
        guard let turn else { return result }
        lock.withLock {
            if result >= 0 { objects[turn.object]?.version = answer.version }
            objects[turn.object]?.isBeingWritten = false
            hasEnded.signalAll()
        }
        return result == -ERANGE || result == -EOVERFLOW ? -EBUSY : result
    }

    /// Ends the turn of a write that could not be begun.
    func giveUp(_ turn: Turn?) {
        guard let turn else { return }
        lock.withLock {
            objects[turn.object]?.isBeingWritten = false
            hasEnded.signalAll()
        }
    }
}
