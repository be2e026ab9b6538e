import Glibc

/// The ranges of an open file that contain data, as opposed to holes, which read as zeros.
///
/// Hosts report them through lseek(2), some not at all and some wrongly. So large holes are probed, and small ones are
/// read like data.
public struct FileLayout: Sendable, Equatable {
    /// The ranges of data, in ascending order. Everything else is a hole.
    public let stored: [Range<UInt64>]

    /// Smaller holes count as data.
    public static let holeBytesMin: UInt64 = 1 << 20
    /// A file with more ranges is read like one without holes.
    static let piecesMax = 1 << 20
    private static let probeBytes = 4096
    private static let probesPerHole: UInt64 = 8

    /// The calls to the host that report a file's layout and read its bytes.
    public protocol Host {
        /// The first byte of a hole, or of data, at or after `offset`: SEEK_HOLE and SEEK_DATA of lseek(2). Throws
        /// ENXIO if there is none.
        func seek(_ offset: UInt64, hole: Bool) throws(Errno) -> UInt64
        /// As pread(2); -1 on an error.
        func read(at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Int
    }

    /// The layout of a file of `size` bytes. Nil if the host does not report it, contradicts itself, or has non-zero
    /// bytes in a hole: then the whole file must be read.
    public init?(of host: some Host, size: UInt64) {
        var found: [Range<UInt64>] = []
        var position: UInt64 = 0
        while position < size {
            guard let next = Self.nextStored(host, position, size) else { return nil }
            if next.isEmpty { break }
            if let last = found.last, next.lowerBound - last.upperBound < Self.holeBytesMin {
                found[found.count - 1] = last.lowerBound..<next.upperBound
            } else if found.isEmpty, next.lowerBound < Self.holeBytesMin {
                found = [0..<next.upperBound]
            } else {
                guard found.count < Self.piecesMax else { return nil }
                found.append(next)
            }
            position = next.upperBound
        }
        var end: UInt64 = 0
        for next in found + [size..<size] {
            guard Self.isZero(host, end..<next.lowerBound) else { return nil }
            end = next.upperBound
        }
        stored = found
    }

    /// The next range of data; empty if a hole reaches the end. Nil if that cannot be told.
    private static func nextStored(_ host: some Host, _ position: UInt64, _ size: UInt64) -> Range<UInt64>? {
        let (start, end): (UInt64, UInt64)
        do throws(Errno) { start = try host.seek(position, hole: false) } catch {
            return error == Errno(ENXIO) ? size..<size : nil
        }
        do throws(Errno) { end = try host.seek(start, hole: true) } catch { return nil }
        // The file may have grown meanwhile. Data after `size` is not reported here.
        guard start >= position, end > start || start >= size else { return nil }
        return min(start, size)..<min(end, size)
    }

    /// Samples a hole. Returns false if a sample cannot be read or is not all zeros.
    private static func isZero(_ host: some Host, _ hole: Range<UInt64>) -> Bool {
        let length = hole.upperBound - hole.lowerBound
        guard length > 0 else { return true }
        return withUnsafeTemporaryAllocation(byteCount: probeBytes, alignment: 8) { buffer in
            let count = min(UInt64(probeBytes), length)
            let step = (length - count) / (probesPerHole - 1)
            for probe in 0..<probesPerHole {
                let offset = probe == probesPerHole - 1 ? length - count : probe * step
                let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(count)])
                guard host.read(at: hole.lowerBound + offset, into: bytes) == bytes.count,
                    isAllZero(UnsafeRawBufferPointer(bytes))
                else { return false }
            }
            return true
        }
    }

    /// The first range of data at or after `offset`; nil if a hole reaches the end.
    public func storedRange(from offset: UInt64) -> Range<UInt64>? {
        var (low, high) = (0, stored.count)
        while low < high {
            let middle = (low + high) / 2
            if stored[middle].upperBound > offset { high = middle } else { low = middle + 1 }
        }
        guard low < stored.count else { return nil }
        return max(offset, stored[low].lowerBound)..<stored[low].upperBound
    }
}

/// Whether all bytes are zeros. Other data most often begins with a non-zero byte.
public func isAllZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard let start = bytes.baseAddress, !bytes.isEmpty else { return true }
    return bytes[0] == 0 && memcmp(start, start + 1, bytes.count - 1) == 0
}

/// The host's answers about an open file.
public struct OpenFileHost: FileLayout.Host {
    private let descriptor: Int32
    private let calls: any FileSystemCalls

    public init(_ descriptor: Int32, _ calls: any FileSystemCalls = LinuxCalls.shared) {
        self.descriptor = descriptor
        self.calls = calls
    }

    public func seek(_ offset: UInt64, hole: Bool) throws(Errno) -> UInt64 {
        try calls.seek(descriptor, from: offset, hole: hole)
    }

    public func read(at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Int {
        do throws(Errno) { return try calls.readFully(descriptor, bytes, at: offset) } catch { return -1 }
    }
}
