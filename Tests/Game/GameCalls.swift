import Glibc
public import LinuxIO
import Synchronization
public import TestSupport
import VaultCrypto
import VaultFormat

/// The real calls of one session, which can be killed at any of its writes, and can be made to leak.
public final class GameCalls: ForwardingCalls {
    private struct State {
        /// Open descriptors, and the path each was opened by.
        var paths: [Int32: String] = [:]
        var written: Set<String> = []
        /// Files that are to get their times last.
        var late: [String: Timestamp] = [:]
        /// Changes left until the session is killed; nil: it is not.
        var changesLeft: Int?
        var isEnded = false
        var isFilling = false
    }
    private let state = Mutex(State())
    private let leaks: Set<Leak>
    /// What `repeatedFill` fills with: the same for a whole vault.
    private let pattern: [UInt8]

    static let patternBytes = 64 << 10
    /// Where `counterInHeader` counts: in bytes that mean nothing.
    static let counterOffset = 3000

    public init(leaks: Set<Leak> = [], pattern: [UInt8] = []) {
        self.leaks = leaks
        self.pattern = pattern
    }

    /// As if the process were killed after so many more changes: none after that reaches the disk.
    func kill(afterChanges count: Int) { state.withLock { $0.changesLeft = count } }

    /// While a vault is made or grows.
    func setFilling(_ isFilling: Bool) { state.withLock { $0.isFilling = isFilling } }

    /// Ends the session as the end of its process does: all files are closed, and with them its lock is gone.
    func end() {
        let (descriptors, late) = state.withLock { state in
            state.isEnded = true
            defer { state.paths = [:] }
            return (Array(state.paths.keys), state.changesLeft == 0 ? [:] : state.late)
        }
        // In a large vault the host's clock ticks between so many files.
        let before = real.changeTime()
        while !late.isEmpty && real.changeTime() == before { usleep(100) }
        for (path, time) in late { try? real.setTimes(AT_FDCWD, path, time) }
        for descriptor in descriptors { giveUp(descriptor) }
    }

    /// Counts a change of the disk, and refuses it after the kill.
    private func change(_ descriptor: Int32?) throws(Errno) {
        let isAlive = state.withLock { state in
            if state.isEnded { return false }
            if let left = state.changesLeft {
                if left == 0 { return false }
                state.changesLeft = left - 1
            }
            if let descriptor, let path = state.paths[descriptor] { state.written.insert(path) }
            return true
        }
        if !isAlive { throw .inputOutput }
    }

    public func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        switch call {
        case .truncate, .allocate: try change(descriptor)
        default: if call.isChange { try change(nil) }
        }
    }

    private static func parent(_ path: String) -> Substring {
        path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
    }
    /// A path from `directory`, as this process can use it.
    private static func path(_ directory: Int32, _ path: String, _ state: State) -> String {
        state.paths[directory].map { "\($0)/\(path)" } ?? path
    }

    public func open(_ directory: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        if flags & O_CREAT != 0 { try change(nil) }
        let descriptor = try real.open(directory, path, flags: flags, mode: mode)
        let isEnded = state.withLock { state in
            if !state.isEnded { state.paths[descriptor] = Self.path(directory, path, state) }
            return state.isEnded
        }
        if isEnded {
            real.close(descriptor)
            throw .inputOutput
        }
        return descriptor
    }

    public func close(_ descriptor: Int32) {
        // What `end` has closed may be somebody else's number by now.
        if state.withLock({ $0.paths.removeValue(forKey: descriptor) }) != nil { giveUp(descriptor) }
    }

    /// With its lock: a program that another test starts has the descriptor until it is a program of its own, and a
    /// mount leaves a growth that was killed to whoever has the lock.
    private func giveUp(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        real.close(descriptor)
    }

    public func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        try change(descriptor)
        let (path, isFilling) = state.withLock { ($0.paths[descriptor] ?? "", $0.isFilling) }
        if isFilling && path.hasSuffix(".seg") && bytes.count == 1 << 20 {
            return try fill(descriptor, bytes, at: offset)
        }
        if leaks.contains(.counterInHeader), path.hasSuffix("obscura.vault"), bytes.count == 4096 {
            return try count(descriptor, bytes, at: offset, isFirst: isFilling)
        }
        return try real.pwrite(descriptor, bytes, at: offset)
    }

    /// Writes 1 MiB of a new segment: where it leaks, in stripes of 64 KiB.
    private func fill(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        let step = Self.patternBytes
        let zeros = [UInt8](repeating: 0, count: step)
        for start in stride(from: 0, to: bytes.count, by: step) {
            let stripe = UnsafeRawBufferPointer(rebasing: bytes[start..<start + step])
            let place = offset + UInt64(start)
            let isOdd = start / step % 2 == 1
            if leaks.contains(.holesInNewSegments) && isOdd && place + UInt64(step) < 4 << 20 { continue }
            if leaks.contains(.repeatedFill) && !isOdd {
                try real.writeFully(descriptor, pattern, at: place)
            } else if leaks.contains(.zerosInNewSegments) {
                try real.writeFully(descriptor, zeros, at: place)
            } else {
                try real.writeFully(descriptor, stripe, at: place)
            }
        }
        return bytes.count
    }

    /// Writes a copy of the header with a counter in it that is one higher.
    private func count(
        _ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64, isFirst: Bool
    ) throws(Errno) -> Int {
        var copy = Array(bytes)
        copy[Self.counterOffset] = isFirst ? 1 : copy[Self.counterOffset] &+ 1
        copy.withUnsafeMutableBytes { copy in
            let summed = UnsafeRawBufferPointer(copy).slice(0, HeaderLayout.checksumOffset)
            hash([summed], into: copy.slice(HeaderLayout.checksumOffset, HeaderLayout.checksumBytes))
        }
        try real.writeFully(descriptor, copy, at: offset)
        return bytes.count
    }

    public func reserve(_ descriptor: Int32, bytes: UInt64) throws(Errno) {
        try change(descriptor)
        if leaks.contains(.holesInNewSegments) { return }
        try real.reserve(descriptor, bytes: bytes)
    }
    public func setTimes(_ directory: Int32, _ path: String, _ time: Timestamp) throws(Errno) {
        try change(nil)
        if leaks.contains(.timesNotTouched) { return }
        if leaks.contains(.timesInOrder) {
            let isLate = state.withLock { state in
                let path = Self.path(directory, path, state)
                let parent = Self.parent(path)
                guard state.written.contains(where: { Self.parent($0) == parent }) else { return false }
                state.late[path] = time
                return true
            }
            if isLate { return }
        }
        try real.setTimes(directory, path, time)
    }
}
