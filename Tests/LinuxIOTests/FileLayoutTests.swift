import Foundation
import Glibc
import LinuxIO
import Testing

/// A host that tells of a file's holes, rightly or not.
private struct MemoryHost: FileLayout.Host {
    var size: UInt64
    /// The stored ranges by its answer.
    var told: [Range<UInt64>]
    /// Where there is a byte other than zero.
    var bytes: [UInt64] = []
    var error: Errno?
    /// Answers every question with the same.
    var answer: UInt64?

    func seek(_ offset: UInt64, hole: Bool) throws(Errno) -> UInt64 {
        if let error { throw error }
        if let answer { return answer }
        guard offset < size else { throw Errno(ENXIO) }
        if hole { return told.first { $0.contains(offset) }?.upperBound ?? offset }
        guard let next = told.first(where: { $0.upperBound > offset }) else { throw Errno(ENXIO) }
        return max(offset, next.lowerBound)
    }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let count = Int(min(UInt64(buffer.count), size - offset))
        memset(buffer.baseAddress!, 0, buffer.count)
        for place in bytes where place >= offset && place < offset + UInt64(count) {
            buffer[Int(place - offset)] = 1
        }
        return count
    }
}

/// Which of a host's holes are believed.
@Suite("System calls: holes of files") struct FileLayoutTests {
    private let mebibyte: UInt64 = 1 << 20

    private func layout(_ host: MemoryHost) -> [Range<UInt64>]? {
        FileLayout(of: host, size: host.size)?.stored
    }

    @Test func `holes are believed where they are large and look like it`() {
        let size = 1 << 50 as UInt64
        let told = [0..<4096, 3 * mebibyte..<4 * mebibyte, size - 10..<size]
        #expect(layout(MemoryHost(size: size, told: told)) == told)
        #expect(layout(MemoryHost(size: size, told: [])) == [])
        #expect(layout(MemoryHost(size: size, told: [0..<size])) == [0..<size])
        #expect(layout(MemoryHost(size: 0, told: [])) == [])
        // A small hole saves too little to be believed.
        let near = [100..<mebibyte, mebibyte + 4096..<2 * mebibyte, 3 * mebibyte..<3 * mebibyte + 1]
        let host = MemoryHost(size: 9 * mebibyte, told: near)
        #expect(layout(host) == [0..<2 * mebibyte, 3 * mebibyte..<3 * mebibyte + 1])
    }

    @Test func `a host that does not know, or is wrong, has no holes`() {
        var host = MemoryHost(size: 64 * mebibyte, told: [0..<mebibyte])
        #expect(layout(host) != nil)
        for error in [EINVAL, EOPNOTSUPP, EIO, ENOSYS, EBADF] {
            host.error = Errno(error)
            #expect(layout(host) == nil)
        }
        // Behind the end, or nowhere: no answer to go on from.
        for answer in [0, 5, 63 * mebibyte] {
            #expect(layout(MemoryHost(size: 64 * mebibyte, told: [], answer: answer)) == nil)
        }
        // Bytes in a range that is said to be a hole.
        host.error = nil
        for place in [mebibyte, mebibyte + 4095, 12 * mebibyte, 64 * mebibyte - 4096, 64 * mebibyte - 1] {
            host.bytes = [place]
            #expect((layout(host) == nil) == (place != 12 * mebibyte), "\(place)")
        }
        host.bytes = Array(stride(from: 2 * mebibyte, to: 64 * mebibyte, by: 4096))
        #expect(layout(host) == nil)
    }

    @Test func `a file that has grown ends where it did`() {
        let host = MemoryHost(size: 64 * mebibyte, told: [5 * mebibyte..<64 * mebibyte])
        #expect(FileLayout(of: host, size: 8 * mebibyte)?.stored == [5 * mebibyte..<8 * mebibyte])
        #expect(FileLayout(of: host, size: 3 * mebibyte)?.stored == [])
    }

    @Test func `ranges are found from any place`() throws {
        let told = [2 * mebibyte..<3 * mebibyte, 8 * mebibyte..<9 * mebibyte]
        let layout = try #require(
            FileLayout(of: MemoryHost(size: 10 * mebibyte, told: told), size: 10 * mebibyte))
        #expect(layout.storedRange(from: 0) == told[0])
        #expect(layout.storedRange(from: 3 * mebibyte - 1) == 3 * mebibyte - 1..<3 * mebibyte)
        #expect(layout.storedRange(from: 3 * mebibyte) == told[1])
        #expect(layout.storedRange(from: 9 * mebibyte) == nil)
        #expect(layout.storedRange(from: .max) == nil)
    }

    @Test func `the kernel's answers about a real file`() throws {
        var template = Array("/tmp/obscura-layout-XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        try #require(descriptor >= 0)
        unlink(template)
        defer { close(descriptor) }
        let size = 1 << 40 as UInt64
        try #require(ftruncate(descriptor, off_t(size)) == 0)
        let piece = [UInt8](repeating: 1, count: 200_000)
        try LinuxCalls.shared.writeFully(descriptor, piece, at: 5 << 30)
        let found = FileLayout(of: OpenFileHost(descriptor), size: size)
        // A host without holes has written them.
        guard let found, found.stored != [0..<size] else { return }
        let only = try #require(found.stored.count == 1 ? found.stored[0] : nil)
        #expect(only.contains(5 << 30) && only.contains(5 << 30 + 199_999))
        #expect(only.count < 4 << 20)
        #expect(FileLayout(of: OpenFileHost(-1), size: size) == nil)
    }

    @Test func `zeros are nothing but zeros`() {
        func isZero(_ bytes: [UInt8]) -> Bool { bytes.withUnsafeBytes { isAllZero($0) } }
        #expect(isZero([]) && isZero([0]) && isZero([UInt8](repeating: 0, count: 4099)))
        for place in [0, 1, 2048, 4098] {
            var bytes = [UInt8](repeating: 0, count: 4099)
            bytes[place] = 128
            #expect(!isZero(bytes))
        }
    }
}
