import Glibc
public import LinuxIO
import Synchronization
public import TestSupport
import VaultCrypto
import VaultFormat

/// The bytes written to the files of a vault, in all sessions: what a disk counts that holds nothing else.
public final class WrittenBytes: Sendable {
    private let count = Mutex<UInt64>(0)

    public var value: UInt64 { count.withLock { $0 } }

    func add(_ bytes: Int) { count.withLock { $0 += UInt64(bytes) } }
}

/// The real calls of one session, which can be killed at any of its writes, and can be made to leak.
public final class DistinguisherCalls: ForwardingCalls {
    private struct State {
        /// Open descriptors, and the path each was opened by.
        var paths: [Int32: String] = [:]
        /// Changes left until the session is killed; nil: it is not.
        var changesLeft: Int?
        var isEnded = false
        var isFilling = false
        var isCounting = true
    }
    private let state = Mutex(State())
    private let leaks: Set<Leak>
    /// The bytes of `repeatedFill`: the same for a whole vault.
    private let pattern: [UInt8]
    /// Facts about the vault that the leaks use.
    private let spaceCount: Int
    private let written: WrittenBytes?
    /// How often times are set at most when a host's count of that is to be hidden.
    private let touchesMax: Int

    static let patternBytes = 64 << 10
    /// Of the vaults of the distinguisher.
    static let segmentBytes = Geometry.segmentBytes(forSpace: History.bytesPerSpace)
    /// The file of all spaces.
    private static let shared = "spaces"
    /// Where `counterInHeader` counts: in bytes that mean nothing.
    static let counterOffset = 3000

    public init(
        leaks: Set<Leak> = [], pattern: [UInt8] = [], spaceCount: Int = 2, written: WrittenBytes? = nil,
        touchesMax: Int = .max
    ) {
        self.written = written
        self.touchesMax = touchesMax
        self.leaks = leaks
        self.pattern = pattern
        self.spaceCount = spaceCount
    }

    /// As if the process were killed after so many more changes: none after that reaches the disk.
    func kill(afterChanges count: Int) { state.withLock { $0.changesLeft = count } }

    /// While a vault is made or grows.
    func setFilling(_ isFilling: Bool) { state.withLock { $0.isFilling = isFilling } }

    /// From now on the header counts no writes.
    func forbidCounting() { state.withLock { $0.isCounting = false } }

    /// Ends the session as the end of its process does: all files are closed, and with them its lock is gone.
    func end() {
        let descriptors = state.withLock { state in
            state.isEnded = true
            defer { state.paths = [:] }
            return Array(state.paths.keys)
        }
        for descriptor in descriptors { giveUp(descriptor) }
    }

    /// Counts a change of the disk, and refuses it after the kill.
    private func change() throws(Errno) {
        let isAlive = state.withLock { state in
            if state.isEnded { return false }
            if let left = state.changesLeft {
                if left == 0 { return false }
                state.changesLeft = left - 1
            }
            return true
        }
        if !isAlive { throw .inputOutput }
    }

    public func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        if call.isChange { try change() }
    }

    /// A path from `directory`, as this process can use it.
    private static func path(_ directory: Int32, _ path: String, _ state: State) -> String {
        state.paths[directory].map { "\($0)/\(path)" } ?? path
    }

    public func open(_ directory: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        if flags & O_CREAT != 0 { try change() }
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
        // A descriptor that `end` has closed may be another file's by now.
        if state.withLock({ $0.paths.removeValue(forKey: descriptor) }) != nil { giveUp(descriptor) }
    }

    /// With its lock: a program that another test starts has the descriptor until it is a program of its own, and a
    /// mount leaves a killed growth to the lock's owner.
    private func giveUp(_ descriptor: Int32) {
        flock(descriptor, LOCK_UN)
        real.close(descriptor)
    }

    public func pwrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        try change()
        written?.add(bytes.count)
        let (path, isFilling, isCounting) = state.withLock {
            ($0.paths[descriptor] ?? "", $0.isFilling, $0.isCounting)
        }
        if path.hasSuffix("/" + Self.shared) {
            try mirror(bytes, at: offset, beside: path)
            if isFilling && bytes.count == 1 << 20 { return try fill(descriptor, bytes, at: offset) }
        }
        if leaks.contains(.counterInHeader), isCounting, path.hasSuffix("obscura.vault"), bytes.count == 4096
        {
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
            if leaks.contains(.holesInNewSegments) && isOdd && start + step < bytes.count { continue }
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
        try change()
        if leaks.contains(.holesInNewSegments) { return }
        try real.reserve(descriptor, bytes: bytes)
    }

    /// One change, however often the times are set.
    public func touch(_ directory: Int32, _ path: String, count: Int) throws(Errno) {
        try change()
        let vault = state.withLock { $0.paths[directory] ?? "." }
        try real.touch(directory, path, count: min(count, touchesMax))
        if path == Self.shared { levelOwnFiles(vault) }
    }

    public func dataSync(_ descriptor: Int32) throws(Errno) {
        try change()
        try real.dataSync(descriptor)
        let path = state.withLock { $0.paths[descriptor] ?? "" }
        guard keepsOwnFiles, path.hasSuffix("/" + Self.shared) else { return }
        for space in 0..<spaceCount { try withOwnFile(space, beside: path, real.dataSync) }
    }

    // MARK: Files of their own

    private var keepsOwnFiles: Bool {
        leaks.contains(.filesOfTheirOwn) || leaks.contains(.filesOfTheirOwnLevelled)
    }

    /// The file that a space has to itself where the program leaks.
    static func ownFile(_ space: Int) -> String { "space-\(space)" }

    private func withOwnFile(
        _ space: Int, beside shared: String, _ body: (Int32) throws(Errno) -> Void
    ) throws(Errno) {
        let path = shared.dropLast(Self.shared.count) + Self.ownFile(space)
        let file = try real.open(AT_FDCWD, String(path), flags: O_RDWR | O_CREAT, mode: 0o600)
        defer { real.close(file) }
        try body(file)
    }

    /// Repeats the writes to a space's part of the shared file in a file of its own.
    private func mirror(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, beside shared: String
    ) throws(Errno) {
        guard keepsOwnFiles else { return }
        var done = 0
        while done < bytes.count {
            let place = offset + UInt64(done)
            let (number, within) = place.quotientAndRemainder(dividingBy: Self.segmentBytes)
            let count = min(bytes.count - done, Int(Self.segmentBytes - within))
            let (row, space) = Int(number).quotientAndRemainder(dividingBy: spaceCount)
            try withOwnFile(space, beside: shared) { file throws(Errno) in
                let part = UnsafeRawBufferPointer(rebasing: bytes[done..<done + count])
                try real.writeFully(file, part, at: UInt64(row) * Self.segmentBytes + within)
            }
            done += count
        }
    }

    /// Sets the times of all spaces' own files to one moment.
    private func levelOwnFiles(_ vault: String) {
        guard leaks.contains(.filesOfTheirOwnLevelled) else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        for space in 0..<spaceCount {
            utimensat(AT_FDCWD, "\(vault)/\(Self.ownFile(space))", [now, now], 0)
        }
    }
}
