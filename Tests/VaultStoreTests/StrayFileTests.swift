import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// Foreign entries in a vault's directory: names, numbers and kinds of files that no vault makes.
@Suite("Damage: strange files in a vault") struct StrayFileTests {
    private let directory = TemporaryDirectory()
    private var copy: String { directory.path + "/copy" }

    /// Names that no segment has, and the largest numbers there are.
    private static let names = [
        "9223372036854775807.seg", "9223372036854775808.seg", "18446744073709551615.seg", "1000000.seg",
        "4194303.seg", "4194304.seg", "0.seg", "00000000.seg", "-00001.seg", "+00001.seg", "000001.seg~",
        "000001.SEG", ".seg", "seg", "٠٠٠٠٠٠.seg", "new\nline", "\u{1B}[2J",
    ]

    /// Where those of one space are taken for segments; beside the file of several nothing is.
    private func place(_ vault: String, _ name: String, spaces: Int = 1) -> String {
        spaces == 1 ? "\(vault)/segments/\(name)" : "\(vault)/\(name)"
    }

    private func makeFile(_ path: String, _ text: String = "") throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }

    private func writeSome(_ vault: String) throws -> [ExtentRun] {
        let space = try openSpace(vault)
        let runs = try space.writeAll(1, bytes(300_000, seed: 1))
        space.adopt(runs)
        try space.publish(space.freeze(), durable: true)
        #expect(try space.readAll(1, runs) == bytes(300_000, seed: 1))
        try space.close()
        return runs
    }

    /// All that commands do with a vault, one after the other.
    private func useAll(_ vault: String, spaces: Int) throws -> BackupReport {
        _ = try Vault.info(vault)
        let runs = try writeSome(vault)
        try patiently { try Vault.unlock(vault, password: secret("one")).repairFiles() }
        if spaces > 1 { try Vault.grow(vault, bytesPerSpace: 20 << 20) { _, _ in } }
        let report = try patiently { try Vault.backup(vault, to: copy) { _, _ in } }
        #expect(try openSpace(copy).readAll(1, runs) == bytes(300_000, seed: 1))
        return report
    }

    @Test(arguments: [1, 2]) func `names of others count for nothing`(spaces: Int) throws {
        let vault = try makeVault(directory, spaces: spaces, bytes: spaces > 1 ? 16 << 20 : nil)
        for (index, name) in Self.names.enumerated() {
            try makeFile(place(vault, name, spaces: spaces), index % 3 == 0 ? "not of the vault" : "")
        }
        let strayCount = spaces == 1 ? Self.names.count : 0
        let before = try Vault.info(vault)
        #expect(before.segmentsPerSpace == (spaces == 1 ? 2 : 4))
        #expect(try Vault.checkFiles(vault) == [])
        #expect(try Vault.strayFiles(vault).count == strayCount)
        let report = try useAll(vault, spaces: spaces)
        #expect(report.missingSegments == 0 && report.strays.count == strayCount)
        for (index, name) in Self.names.enumerated() {
            let text = try String(contentsOfFile: place(vault, name, spaces: spaces), encoding: .utf8)
            #expect(text == (index % 3 == 0 ? "not of the vault" : ""))
        }
    }

    @Test(arguments: [mode_t(S_IFIFO), mode_t(S_IFSOCK), mode_t(S_IFLNK), mode_t(S_IFDIR)])
    func `an entry that is no file is no segment, and lets no call wait`(kind: mode_t) throws {
        let vault = try makeVault(directory)
        let outside = directory.path + "/outside"
        try makeFile(outside, "not of the vault")
        // Not the next that a vault of one space makes.
        let numbers = [7, 8, 9, 1000]
        for number in numbers { make(kind, place(vault, SegmentLayout.name(number)), outside) }
        #expect(try Vault.info(vault).segmentsPerSpace == 2)
        #expect(try Vault.strayFiles(vault).count == numbers.count)
        let report = try useAll(vault, spaces: 1)
        #expect(report.strays.count == numbers.count)
        #expect(report.missingSegments == 0)
        var found = stat()
        for number in numbers {
            #expect(lstat(place(vault, SegmentLayout.name(number)), &found) == 0)
            #expect(found.st_mode & mode_t(S_IFMT) == kind)
        }
        #expect(try String(contentsOfFile: outside, encoding: .utf8) == "not of the vault")
    }

    private func make(_ kind: mode_t, _ path: String, _ outside: String) {
        switch kind {
        case mode_t(S_IFIFO): #expect(mkfifo(path, 0o600) == 0)
        case mode_t(S_IFSOCK): #expect(mknod(path, mode_t(S_IFSOCK | 0o600), 0) == 0)
        case mode_t(S_IFLNK): #expect(symlink(outside, path) == 0)
        default: #expect(mkdir(path, 0o700) == 0)
        }
    }

    @Test(arguments: [mode_t(S_IFIFO), mode_t(S_IFSOCK), mode_t(S_IFLNK), mode_t(S_IFDIR)])
    func `an entry that is no file is not the file of all spaces`(kind: mode_t) throws {
        let vault = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        let outside = directory.path + "/outside"
        try FileManager.default.moveItem(atPath: vault + "/spaces", toPath: outside)
        make(kind, vault + "/spaces", outside)
        #expect(try Vault.info(vault).segmentsPerSpace == 0)
        #expect(try Vault.checkFiles(vault).map(\.cause) == ["missing"])
        #expect(throws: VaultError.self) { _ = try openSpace(vault) }
        #expect(throws: VaultError.self) { try Vault.grow(vault, bytesPerSpace: 20 << 20) { _, _ in } }
        #expect(throws: BackupError.self) { _ = try Vault.backup(vault, to: copy) { _, _ in } }
        #expect(Glibc.remove(vault + "/spaces") == 0)
        try FileManager.default.moveItem(atPath: outside, toPath: vault + "/spaces")
        _ = try useAll(vault, spaces: 2)
    }

    /// They have the claim, which is read and written by other calls than their other files.
    @Test(arguments: [mode_t(S_IFIFO), mode_t(S_IFSOCK), mode_t(S_IFLNK), mode_t(S_IFDIR)])
    func `an entry that is no file is neither of the first two segments`(kind: mode_t) throws {
        let vault = try makeVault(directory)
        let outside = directory.path + "/outside"
        try FileManager.default.createDirectory(atPath: outside, withIntermediateDirectories: false)
        let names = (0..<2).map { SegmentLayout.name($0) }
        for name in names {
            try FileManager.default.moveItem(atPath: place(vault, name), toPath: "\(outside)/\(name)")
            make(kind, place(vault, name), "\(outside)/\(name)")
        }
        #expect(throws: VaultError.self) { _ = try openSpace(vault) }
        for name in names {
            #expect(Glibc.remove(place(vault, name)) == 0)
            try FileManager.default.moveItem(atPath: "\(outside)/\(name)", toPath: place(vault, name))
        }
        _ = try useAll(vault, spaces: 1)
    }

    @Test func `an entry at the place of a new segment leaves the vault without room`() throws {
        let vault = try makeVault(directory)
        #expect(mkfifo(place(vault, SegmentLayout.name(2)), 0o600) == 0)
        func fill() throws {
            let space = try openSpace(vault)
            #expect(throws: StoreError.noRoom) { _ = try space.writeAll(1, bytes(5 << 20, seed: 1)) }
            try space.close()
        }
        try fill()
        #expect(unlink(place(vault, SegmentLayout.name(2))) == 0)
        let again = try openSpace(vault)
        let runs = try again.writeAll(1, bytes(5 << 20, seed: 1))
        #expect(try again.readAll(1, runs) == bytes(5 << 20, seed: 1))
    }

    @Test func `a header or a log that is no file is none`() throws {
        let vault = try makeVault(directory)
        for make in [{ mkfifo($0, 0o600) }, { mkdir($0, 0o700) }, { symlink("/dev/zero", $0) }]
            as [(String) -> Int32]
        {
            let log = vault + "/" + CopyLog.name
            #expect(make(log) == 0)
            try openSpace(vault).close()
            _ = try Vault.info(vault)
            if unlink(log) != 0 { rmdir(log) }
            let other = directory.path + "/other"
            #expect(mkdir(other, 0o700) == 0 && make(other + "/" + VaultFiles.headerName) == 0)
            #expect(!Vault.isVault(other))
            #expect(throws: VaultError.notAVault(other)) { _ = try Vault.info(other) }
            #expect(throws: BackupError.self) { _ = try Vault.backup(vault, to: other) { _, _ in } }
            try FileManager.default.removeItem(atPath: other)
        }
    }

    @Test func `files that say to be of any size are counted as segments at most`() throws {
        let vault = try makeVault(directory)
        for number in 2..<6 {
            let path = place(vault, SegmentLayout.name(number))
            try makeFile(path)
            // As large as the host lets a file be.
            for size in [off_t.max, 1 << 44, 1 << 40] where Glibc.truncate(path, size) == 0 { break }
        }
        let info = try Vault.info(vault)
        #expect(info.segmentsPerSpace == 6)
        #expect(info.bytesOnDisk <= 6 * info.segmentBytes + HeaderLayout.fileBytes)
        #expect(try Vault.checkFiles(vault).count == 4)
    }

    @Test func `numbers that are far behind all others are no segments`() {
        let names = (0..<5).map { SegmentLayout.name($0) }
        #expect(SegmentListing(names + [SegmentLayout.name(4100)]).numbers == [0, 1, 2, 3, 4, 4100])
        #expect(SegmentListing(names + [SegmentLayout.name(4102)]).distant == [4102])
        // Segments that a large vault may have lost are missed.
        let many = (0..<1000).map { SegmentLayout.name($0) }
        #expect(SegmentListing(many + [SegmentLayout.name(17_000)]).numbers.last == 17_000)
        #expect(SegmentListing(many + [SegmentLayout.name(17_001)]).distant == [17_001])
        #expect(SegmentListing([SegmentLayout.name(5)]).numbers == [5])
        for name in Self.names { #expect(SegmentListing([name]).numbers.isEmpty, "\(name)") }
    }

    @Test(arguments: [16 << 40, 12_000_000 << 40, UInt64(1) << 62, .max])
    func `a size that no vault can have is refused`(size: UInt64) throws {
        let vault = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        do throws(VaultError) {
            try Vault.grow(vault, bytesPerSpace: size) { _, _ in }
            Issue.record("it grew")
        } catch {
            switch error {
            case .invalidSize, .noRoom: break
            default: Issue.record("\(error)")
            }
        }
        let other = directory.path + "/other"
        #expect(throws: VaultError.self) {
            try Vault.create(
                at: other, spaces: 8, bytesPerSpace: size, kdf: quickKDF, password: secret("one")
            ) { _, _ in }
        }
        #expect(!FileManager.default.fileExists(atPath: other))
        #expect(try Vault.info(vault).segmentsPerSpace == 4)
    }

    /// Calls of a host that says to have so much room.
    private final class BoastfulCalls: ForwardingCalls {
        let bytes: UInt64
        init(_ bytes: UInt64) { self.bytes = bytes }

        func hostStatus(_ descriptor: Int32) throws(Errno) -> HostStatus {
            HostStatus(totalBytes: bytes, availableBytes: bytes, typeMagic: 0)
        }
    }

    @Test(arguments: [0, 1, 1 << 40, UInt64(1) << 62, .max - 1, .max])
    func `a host may say what it likes of its room`(bytes: UInt64) throws {
        let vault = try makeVault(directory)
        let calls = BoastfulCalls(bytes)
        let space = try openSpace(vault, calls: calls)
        let use = space.sectors.capacity
        #expect(use.total >= use.free && use.free >= use.available)
        let runs = try? space.writeAll(1, Array(repeating: 1, count: 300_000))
        #expect((runs == nil) == (bytes < 1 << 20))
        if let runs { space.adopt(runs) }
        try space.publish(space.freeze(), durable: true)
        try space.close()
        _ = try? Vault.backup(vault, to: copy, calls: calls) { _, _ in }
        let other = directory.path + "/other"
        try? Vault.create(
            at: other, spaces: 1, bytesPerSpace: nil, kdf: quickKDF, password: secret("one"), calls: calls
        ) { _, _ in }
    }
}
