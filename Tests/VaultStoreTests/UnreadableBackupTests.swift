import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// The real calls, but for sectors of chosen files that cannot be read: EIO. Nothing is synced.
private final class BadSectorCalls: ForwardingCalls {
    private let bad = Mutex<[UInt64: [Range<UInt64>]]>([:])

    /// From now on these bytes of the file at `path` cannot be read.
    func lose(_ range: Range<UInt64>, of path: String) throws {
        let file = try real.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { real.close(file) }
        let inode = try real.status(file).inode
        bad.withLock { $0[inode, default: []].append(range) }
    }

    func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        let inode = try real.status(d).inode
        let isLost = bad.withLock { bad in
            (bad[inode] ?? []).contains { $0.overlaps(offset..<offset + UInt64(bytes.count)) }
        }
        if isLost { throw .inputOutput }
        return try real.pread(d, bytes, at: offset)
    }

    func dataSync(_ d: Int32) throws(Errno) {}
    func sync(_ d: Int32) throws(Errno) {}
}

/// A backup of a vault whose disk begins to fail copies all else, and names the rest.
@Suite("Commands: backup, of an unreadable vault") struct UnreadableBackupTests {
    private let directory = TemporaryDirectory()
    private let calls = BadSectorCalls()
    private var copy: String { directory.path + "/copy" }
    private let before = bytes(600_000, seed: 1)
    private let after = bytes(600_000, seed: 2)

    private struct Written {
        var path: String
        var before: [ExtentRun]
        var after: [ExtentRun]
    }

    /// A vault that was copied when it had `before`, and has got `after` since.
    private func makeVault() throws -> Written {
        let path = try VaultStoreTests.makeVault(directory, calls: calls)
        let first = try add(before, 1, to: path)
        try backUp(path)
        return Written(path: path, before: first, after: try add(after, 2, to: path))
    }

    private func add(_ bytes: [UInt8], _ content: UInt64, to path: String) throws -> [ExtentRun] {
        let space = try openSpace(path, calls: calls)
        space.stage(0, UInt8(content))
        let runs = try space.writeAll(content, bytes)
        space.adopt(runs)
        try space.commit(durable: true)
        try space.close()
        return runs
    }

    @discardableResult private func backUp(_ path: String) throws -> BackupReport {
        try patiently { try Vault.backup(path, to: copy, calls: calls) { _, _ in } }
    }

    private func segment(_ run: ExtentRun) -> (path: String, offset: UInt64) {
        let perSegment = Geometry.segmentBytesUsual / UInt64(Geometry.sectorBytes)
        let name = SegmentLayout.name(Int(run.sector / perSegment))
        return ("segments/" + name, run.sector % perSegment * UInt64(Geometry.sectorBytes))
    }

    /// Loses a sector in the second chunk of a run; returns the page it lies in, as the backup tells it.
    private func loseSector(of run: ExtentRun, in vault: String) throws -> UnreadablePlace {
        let (path, start) = segment(run)
        let offset = start + UInt64(Geometry.sectorsPerChunk * Geometry.sectorBytes) + 10_240
        try calls.lose(offset..<offset + 512, of: "\(vault)/\(path)")
        let page = UInt64(Geometry.pageBytes)
        return UnreadablePlace(path: path, offset: offset / page * page, bytes: page)
    }

    private func read(_ content: UInt64, _ runs: [ExtentRun]) throws -> [UInt8] {
        try openSpace(copy, readOnly: true).readAll(content, runs)
    }

    @Test func `what an earlier backup has stays`() throws {
        let vault = try makeVault()
        let lost = try loseSector(of: try #require(vault.before.first), in: vault.path)
        #expect(throws: StoreError.io(.inputOutput)) {
            _ = try openSpace(vault.path, readOnly: true, calls: calls).readAll(1, vault.before)
        }
        let report = try backUp(vault.path)
        #expect(report.unreadable == [lost])
        #expect(try read(1, vault.before) == before)
        #expect(try read(2, vault.after) == after)
        // Nothing is left to do, but for saying so again.
        let again = try backUp(vault.path)
        #expect(again.unreadable == [lost] && again.bytesWritten == 0)
    }

    @Test func `new bytes that are lost are an error, and all others are there`() throws {
        let vault = try makeVault()
        let run = try #require(vault.after.first)
        let lost = try loseSector(of: run, in: vault.path)
        #expect(try backUp(vault.path).unreadable == [lost])
        #expect(try read(1, vault.before) == before)
        #expect(throws: StoreError.damaged) { try read(2, vault.after) }
        var first = run
        first.length = UInt64(Geometry.chunkBytes)
        #expect(try read(2, [first]) == Array(after.prefix(Geometry.chunkBytes)))
    }

    @Test func `a first copy has random bytes in place of lost ones`() throws {
        let vault = try makeVault()
        let lost = try loseSector(of: try #require(vault.after.first), in: vault.path)
        try FileManager.default.removeItem(atPath: copy)
        #expect(try backUp(vault.path).unreadable == [lost])
        #expect(try read(1, vault.before) == before)
        let page = try Data(contentsOf: URL(fileURLWithPath: "\(copy)/\(lost.path)"))
            .dropFirst(Int(lost.offset)).prefix(Int(lost.bytes))
        #expect(page.count == Int(lost.bytes) && Set(page).count > 200)
    }

    /// Of roots and the header the other copy serves; the newest state comes across.
    @Test(arguments: [0, 1]) func `roots and header have another copy`(number: Int) throws {
        let vault = try makeVault()
        let segment = "segments/" + SegmentLayout.name(number)
        let page = UInt64(Geometry.pageBytes)
        for slot in UInt64(0)..<3 {
            try calls.lose(slot * page..<slot * page + 512, of: "\(vault.path)/\(segment)")
        }
        let header = HeaderLayout.copyOffsets[number]
        try calls.lose(header..<header + 1, of: "\(vault.path)/\(VaultFiles.headerName)")
        let report = try backUp(vault.path)
        #expect(
            report.unreadable == [
                UnreadablePlace(path: VaultFiles.headerName, offset: header, bytes: page),
                UnreadablePlace(path: segment, offset: 0, bytes: 3 * page),
            ])
        #expect(try openSpace(copy, readOnly: true).page(0) == 2)
        #expect(try read(2, vault.after) == after)
        let copied = try Data(contentsOf: URL(fileURLWithPath: "\(copy)/\(VaultFiles.headerName)"))
        #expect(try Header.read(image: Array(copied)).clearFields.count == HeaderLayout.clearBytes)
        let places = HeaderLayout.copyOffsets.map { Int($0) }
        #expect(copied[places[0]..<places[0] + 4096] == Data(copied[places[1]..<places[1] + 4096]))
    }

    /// A header of which nothing can be read is no vault; the copy stays what it was.
    @Test func `without a header the copy stays what it was`() throws {
        let vault = try makeVault()
        try calls.lose(0..<131_072, of: "\(vault.path)/\(VaultFiles.headerName)")
        #expect(throws: BackupError.self) { try backUp(vault.path) }
        #expect(try openSpace(copy, readOnly: true).page(0) == 1)
        #expect(try read(1, vault.before) == before)
    }
}
