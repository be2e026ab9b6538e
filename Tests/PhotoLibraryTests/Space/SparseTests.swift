import Foundation
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoImaging
import Synchronization
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoImport
@testable import PhotoLibrary
@testable import VaultStore

private let chunk = Int(Chunk.bytes)
private let pebibyte: UInt64 = 1 << 50

/// A source outside the vault, of which only some pieces are stored.
private final class SparseSource: ImportSource {
    let byteCount: UInt64
    private let pieces: [(offset: UInt64, bytes: [UInt8])]
    /// Whether it tells of its holes.
    private let isTelling: Bool
    let isUnchanged = true

    init(_ byteCount: UInt64, _ pieces: [(offset: UInt64, bytes: [UInt8])], isTelling: Bool = true) {
        self.byteCount = byteCount
        self.pieces = pieces.sorted { $0.offset < $1.offset }
        self.isTelling = isTelling
    }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < byteCount else { return 0 }
        let end = min(byteCount, offset + UInt64(buffer.count))
        memset(buffer.baseAddress!, 0, buffer.count)
        for piece in pieces {
            let part = (piece.offset..<piece.offset + UInt64(piece.bytes.count)).clamped(to: offset..<end)
            guard !part.isEmpty else { continue }
            let first = Int(part.lowerBound - piece.offset)
            UnsafeMutableRawBufferPointer(rebasing: buffer[Int(part.lowerBound - offset)...])
                .copyBytes(from: piece.bytes[first..<first + part.count])
        }
        return Int(end - offset)
    }

    func storedRange(from offset: UInt64) -> Range<UInt64>? {
        guard isTelling else { return offset < byteCount ? offset..<byteCount : nil }
        let next = pieces.first { $0.offset + UInt64($0.bytes.count) > offset }
        return next.map { max(offset, $0.offset)..<$0.offset + UInt64($0.bytes.count) }
    }
}

extension LibraryUser {
    /// Writes pieces of a file of a given size, and closes it.
    fileprivate func put(
        _ path: String, size: UInt64, _ pieces: [(offset: UInt64, bytes: [UInt8])], syncing: Bool = false
    ) throws {
        let handle = try createOpen(path)
        for piece in pieces { try write(handle, piece.bytes, at: piece.offset) }
        let changes = AttributeChanges(size: size)
        _ = try library.setAttributes(try ino(path), changes, handle: handle, caller)
        if syncing { try library.fsync(handle, dataOnly: false) }
        try close(handle)
    }
}

/// Files that are much larger than their stored bytes.
@Suite("Space: files with holes", .serialized) struct SparseTests {
    @Test func `equal photos of 1 PiB are one photo at once`() throws {
        let fixture = try Fixture()
        let pieces = [(offset: UInt64(0), bytes: jpeg(more: 1)), (pebibyte / 2 + 77, noise(300_000))]
        try fixture.put("albums/a.jpg", size: pebibyte, pieces)
        let before = fixture.vault.calls.readBytes
        try fixture.put("albums/b.jpg", size: pebibyte, pieces, syncing: true)
        #expect(fixture.vault.calls.readBytes - before < 4 << 20)
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        // The last byte is another.
        try fixture.put("albums/c.jpg", size: pebibyte, pieces + [(pebibyte - 1, [1])])
        // One in the middle of a hole is.
        try fixture.put("albums/d.jpg", size: pebibyte, pieces + [(pebibyte / 3, [1])])
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/c.jpg", "2024-05-01/d.jpg"])
        try fixture.remount()
        #expect(try fixture.moments().count == 3)
        #expect(try fixture.stat("albums/b.jpg").size == pebibyte)
        try fixture.close()
    }

    @Test func `work of a dead session is taken up`() throws {
        let fixture = try Fixture()
        let pieces = [(offset: UInt64(0), bytes: jpeg(more: 1))]
        try fixture.put("albums/a.jpg", size: pebibyte, pieces)
        // A function of its own: a handle keeps the vault locked.
        func leaveOpen() throws {
            let handle = try fixture.createOpen("albums/b.jpg")
            try fixture.write(handle, pieces[0].bytes)
            _ = try fixture.library.setAttributes(
                handle.ino, AttributeChanges(size: pebibyte), handle: handle, fixture.caller)
            try fixture.library.fsync(handle, dataOnly: false)
            handle.state.map { fixture.library.abandon($0) }
        }
        try leaveOpen()
        try fixture.kill()
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        #expect(try fixture.stat("albums/a.jpg").nlink == 2 && fixture.stat("albums/b.jpg").nlink == 1)
        try fixture.close()
    }

    @Test func `stored zeros are equal to a hole`() throws {
        let fixture = try Fixture()
        let size = UInt64(6 * chunk + 1000)
        let head = (offset: UInt64(0), bytes: jpeg(more: 1))
        try fixture.put("albums/holes.jpg", size: size, [head])
        let zeros = [UInt8](repeating: 0, count: 2 * chunk + 5)
        try fixture.put("albums/zeros.jpg", size: size, [head, (UInt64(chunk + 77), zeros)])
        let whole = [UInt8](repeating: 0, count: Int(size) - head.bytes.count)
        try fixture.put("albums/whole.jpg", size: size, [head, (UInt64(head.bytes.count), whole)])
        #expect(try fixture.moments() == ["2024-05-01/holes.jpg"])
        let last = (offset: UInt64(3 * chunk), bytes: [UInt8](repeating: 0, count: chunk - 1) + [1])
        try fixture.put("albums/other.jpg", size: size, [head, last])
        #expect(try fixture.moments() == ["2024-05-01/holes.jpg", "2024-05-01/other.jpg"])
        try fixture.close()
    }

    @Test(arguments: [true, false]) func `holes stay holes on the way in and out`(isTelling: Bool) throws {
        let fixture = try Fixture()
        let size = UInt64(1 << 28) + 12_345
        let pieces = [
            (offset: UInt64(0), bytes: jpeg(more: 1)), (UInt64(1 << 27) - 3, noise(200_000)),
            (size - 10, [UInt8](repeating: 9, count: 10)),
        ]
        let source = SparseSource(isTelling ? pebibyte + size : size, pieces, isTelling: isTelling)
        let details = FileDetails(
            mode: 0o644, owner: fixture.caller, accessed: Timestamp(seconds: 1),
            modified: Timestamp(seconds: 1))
        let file = ImportFile(name: "a.jpg", details: details, source: source)
        guard
            case .photo(let candidate) = try fixture.library.importer.classifyImport(
                source, SourceFacts(source), named: "a.jpg", modified: Timestamp(seconds: 1))
        else { throw FileError.invalid }
        var told: UInt64 = 0
        let added = try #require(
            try fixture.library.importer.add(candidate, file, to: ImportPlace()) {
                told += $0
                return true
            })
        #expect(told == source.byteCount)
        let attributes = try fixture.library.attributes(added.photo).0
        #expect(attributes.size == source.byteCount)
        #expect(attributes.blocks * 512 < 10 * Chunk.bytes)
        #expect(try fixture.library.search.holds(added.photo, source))
        // The bytes come out as they went in, with zeros in between.
        var (end, count) = (UInt64(0), 0)
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        try fixture.library.walk.readStored(added.photo, fixture.caller) { offset, bytes in
            #expect(offset >= end)
            let got = buffer.withUnsafeMutableBytes {
                source.read(at: offset, into: UnsafeMutableRawBufferPointer(rebasing: $0[..<bytes.count]))
            }
            #expect(got == bytes.count && Array(buffer[..<got]) == Array(bytes))
            (end, count) = (offset + UInt64(bytes.count), count + bytes.count)
            return true
        }
        #expect(count < 10 * chunk && end <= source.byteCount)
        try fixture.close()
    }

    @Test(arguments: 0..<24) func `random layouts come in as they are`(seed: UInt64) throws {
        let fixture = try Fixture()
        var random = RandomSource(seed)
        var pieces = [(offset: UInt64(0), bytes: jpeg(more: 1))]
        var end = UInt64(pieces[0].bytes.count)
        for _ in 0..<Int.random(in: 0...6, using: &random) {
            let offset =
                end + UInt64.random(in: 1...5, using: &random)
                * UInt64.random(in: 1...100_000, using: &random)
            // Some of the stored bytes are zeros.
            let count = Int.random(in: 1...300_000, using: &random)
            let bytes =
                Bool.random(using: &random) ? noise(count, seed: count) : [UInt8](repeating: 0, count: count)
            pieces.append((offset, bytes))
            end = offset + UInt64(count)
        }
        let size = end + UInt64.random(in: 0...300_000, using: &random)
        let source = SparseSource(size, pieces, isTelling: Bool.random(using: &random))
        let details = FileDetails(
            mode: 0o644, owner: fixture.caller, accessed: Timestamp(seconds: 1),
            modified: Timestamp(seconds: 1))
        let ino = try #require(
            try fixture.library.importer.add(
                plain: ImportFile(name: "x", details: details, source: source), to: fixture.ino("albums")))
        var bytes = [UInt8](repeating: 0, count: Int(size))
        _ = bytes.withUnsafeMutableBytes { source.read(at: 0, into: $0) }
        #expect(try fixture.get("albums/x") == bytes, "seed \(seed)")
        #expect(try fixture.library.search.holds(ino, source), "seed \(seed)")
        try fixture.remount()
        #expect(try fixture.get("albums/x") == bytes, "seed \(seed)")
        try fixture.close()
    }

    @Test func `copy_file_range keeps holes`() throws {
        let fixture = try Fixture()
        let pieces = [(offset: UInt64(0), bytes: noise(1000)), (pebibyte / 2 + 77, noise(300_000, seed: 2))]
        try fixture.put("albums/a", size: pebibyte, pieces)
        let source = try fixture.open("albums/a", O_RDONLY)
        let target = try fixture.createOpen("albums/b")
        // The former bytes must go where the source has a hole.
        try fixture.write(target, noise(3 * chunk, seed: 3), at: pebibyte / 4 + 5)
        var (done, calls) = (UInt64(0), 0)
        while true {
            let count = try fixture.library.ranges.copyRange(
                from: source, offset: done, to: target, offset: done, count: .max)
            if count == 0 { break }
            (done, calls) = (done + UInt64(count), calls + 1)
            try #require(calls < 100)
        }
        #expect(done == pebibyte)
        try fixture.close(target)
        fixture.library.release(source)
        #expect(try fixture.stat("albums/b").size == pebibyte)
        let (a, b) = (try fixture.open("albums/a", O_RDONLY), try fixture.open("albums/b", O_RDONLY))
        let (one, other) = (FileSource(try #require(a.state)), FileSource(try #require(b.state)))
        #expect(compare(one, other) { _ in false } == .equal)
        #expect(try fixture.stat("albums/b").blocks * 512 < 10 * Chunk.bytes)
        for handle in [a, b] { fixture.library.release(handle) }
        // Within one file, and where the source ends.
        let both = try fixture.open("albums/a")
        #expect(
            try fixture.library.ranges.copyRange(from: both, offset: pebibyte, to: both, offset: 0, count: 5)
                == 0)
        expectError(.fileTooBig) {
            _ = try fixture.library.ranges.copyRange(
                from: both, offset: 1 << 30, to: fixture.open("albums/b"), offset: FileState.sizeMax - 1,
                count: 1 << 30)
        }
        try fixture.close(both)
        fixture.closeAnyhow()
    }
}
