package import PhotoImaging

/// A source that counts its reads.
package final class CountingSource: ByteSource {
    private let bytes: [UInt8]
    package private(set) var reads = 0
    package private(set) var bytesRead = 0

    package init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    package var byteCount: UInt64 { UInt64(bytes.count) }

    package func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = MemoryByteSource.copy(bytes, at: offset, into: buffer)
        reads += 1
        bytesRead += count
        return count
    }
}

extension MemoryByteSource {
    package static func copy(_ bytes: [UInt8], at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer)
        -> Int
    {
        guard offset < UInt64(bytes.count) else { return 0 }
        let count = min(buffer.count, bytes.count - Int(offset))
        bytes.withUnsafeBytes { all in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: all[Int(offset)..<Int(offset) + count]))
        }
        return count
    }
}

/// A time, for tests.
package func civil(
    _ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0,
    _ nanosecond: Int = 0
) -> CivilTime {
    guard
        let time = CivilTime(
            year: year, month: month, day: day, hour: hour, minute: minute, second: second,
            nanosecond: nanosecond)
    else { preconditionFailure("a test names a time that does not exist") }
    return time
}

/// 2026-11-21 12:00 UTC: when the collection of test pictures was made.
package let testNow = civil(2026, 11, 21, 12).secondsSince1970

/// An mtime that no test picture carries inside.
package let testModified = civil(2013, 5, 6, 7, 8, 9).secondsSince1970
