import Foundation
import Glibc
import LinuxIO

/// Reads a pipe on a thread of its own, so that its writer never waits for a test.
///
/// It goes on to the end of the pipe also when nobody asks any more: a daemon that has kept the other end is not ended
/// by SIGPIPE.
public final class PipeReader: @unchecked Sendable {
    /// Somebody has the other end still.
    public struct KeptOpen: Error, CustomStringConvertible {
        let text: String

        public var description: String { "somebody keeps the other end of a pipe, in which was: \(text)" }
    }

    /// Longer than any program of the tests says nothing.
    public static let secondsMax: Int64 = 120
    /// The capacity of a pipe by default, pipe(7).
    private static let pipeBytes = 65_536

    private let descriptor: Int32
    private let lock = Lock()
    private let change = Condition()
    /// Bytes that were not taken yet. Guarded by the lock, as are the members below.
    private var bytes: [UInt8] = []
    private var buffer = [UInt8](repeating: 0, count: pipeBytes)
    private var isEnded = false

    /// - Parameter descriptor: the end to read, which is this object's from now on.
    public init(_ descriptor: Int32) {
        self.descriptor = descriptor
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        Thread.detachNewThread { [self] in
            var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            repeat { poll(&wanted, 1, -1) } while !lock.withLock { fetch() }
            close(descriptor)
        }
    }

    /// The bytes before the next `mark`, which is taken as well; nil if it does not come.
    public func next(upTo mark: String) -> String? {
        lock.withLock {
            var found: Range<Int>?
            wait(Self.secondsMax) {
                found = bytes.firstRange(of: Array(mark.utf8))
                return found != nil
            }
            guard let found else { return nil }
            defer { bytes.removeSubrange(..<found.upperBound) }
            return String(decoding: bytes[..<found.lowerBound], as: UTF8.self)
        }
    }

    /// All up to the end, which comes when nobody has the other end of the pipe any more.
    ///
    /// - Parameter secondsMax: after which somebody keeps it.
    public func rest(secondsMax: Int64 = PipeReader.secondsMax) throws(KeptOpen) -> String {
        try lock.withLock { () throws(KeptOpen) -> String in
            wait(secondsMax) { false }
            if !isEnded { throw KeptOpen(text: take()) }
            return take()
        }
    }

    /// All bytes that were written before.
    public func present() -> String {
        lock.withLock {
            _ = fetch()
            return take()
        }
    }

    private func take() -> String {
        defer { bytes = [] }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Takes the pipe's bytes. Returns whether it has ended.
    private func fetch() -> Bool {
        if isEnded { return true }
        let count = read(descriptor, &buffer, Self.pipeBytes)
        if count > 0 { bytes += buffer[..<count] }
        isEnded = count == 0 || count < 0 && errno != EAGAIN && errno != EINTR
        change.signalAll()
        return isEnded
    }

    /// Waits for something, for the end, or long enough.
    private func wait(_ secondsMax: Int64, for isThere: () -> Bool) {
        let deadline = MonotonicClock.milliseconds + secondsMax * 1000
        while !isThere() && !isEnded && MonotonicClock.milliseconds < deadline {
            change.wait(lock, untilMilliseconds: deadline)
        }
    }
}
