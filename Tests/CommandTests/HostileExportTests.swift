import CShims
import Foundation
import Glibc
import HostFiles
import LinuxIO
import TestSupport
import Testing

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore
@testable import obscura

/// Exports of catalogues that somebody forged who knows the password: they end, and write nothing but below their
/// directory.
@Suite("Damage: export of a forged vault") struct HostileExportTests {
    private let vault: TestVault
    private let root: String
    private let caller = Caller(uid: geteuid(), gid: getegid())
    private let options = LibraryOptions(owner: (geteuid(), getegid()), mountedByRoot: true)

    init() throws {
        vault = try TestVault()
        root = vault.path + "-export"
        let library = try Library.open(try vault.unlock(), options: options)
        for (above, name) in [("", "A"), ("A", "B")] as [(String, Name)] {
            let parent =
                above.isEmpty
                ? WellKnownInode.albums
                : try library.lookup(WellKnownInode.albums, "A", caller).attributes.ino
            let made = try library.makeDirectory(parent, name, mode: 0o755, caller).attributes.ino
            let (_, file) = try library.create(made, "file", mode: 0o644, flags: O_RDWR, caller)
            _ = try Array("text".utf8).withUnsafeBytes { try library.write(file, offset: 0, $0, caller) }
            library.release(file)
        }
        try library.close()
    }

    /// Changes rows, and publishes that.
    private func forge(_ sql: String) throws {
        let space = try vault.unlock().openSpace(readOnly: false)
        let database = try Connection(path: PageVFS.register(space), vfs: PageVFS.name, readOnly: false)
        for setting in ["locking_mode=EXCLUSIVE", "journal_mode=MEMORY", "synchronous=OFF"] {
            try database.execute("PRAGMA \(setting)")
        }
        try database.execute(sql)
        try space.publish(space.freeze(), durable: true)
        try space.close()
    }

    /// Exports, and returns the paths that are there afterwards, below the directory around all of them.
    ///
    /// - Parameter look: is given the directory of the export and the lines of its report.
    private func export(
        special: Bool = false, look: (_ target: String, _ lines: [String]) -> Void = { _, _ in }
    ) throws -> [String] {
        let around = root + "/around"
        let target = around + "/E"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: root) }
        var options = options
        options.readOnly = true
        if let library = try? Library.open(try vault.unlock(), options: options) {
            let place = try ExportTarget(HostPath(target), named: target, mark: { _ in [] })
            let run = ExportRun(library, to: place, .link, special: special, quiet: true)
            try? run.run()
            try? library.close()
            look(target, run.report.lines)
        }
        return try FileManager.default.subpathsOfDirectory(atPath: root).sorted()
    }

    @Test func `a vault that is not forged is exported`() throws {
        #expect(try export().contains("around/E/albums/A/B/file"))
    }

    @Test(arguments: ["..", "../..", "../evil", "/tmp/evil", "a/b", ".", "", "\0"])
    func `names that lead elsewhere are refused`(name: String) throws {
        let hex = name.utf8.map { String(format: "%02x", $0) }.joined()
        try forge("UPDATE OR IGNORE dentry SET name = x'\(hex)' WHERE name = x'66696c65' OR name = x'42'")
        #expect(try export().allSatisfy { $0 == "around" || $0.hasPrefix("around/E") })
    }

    /// B lies in A, and A in B; or A in itself.
    @Test(arguments: ["A", "B"]) func `directories in themselves end`(name: String) throws {
        let hex = name.utf8.map { String(format: "%02x", $0) }.joined()
        try forge(
            """
            INSERT INTO dentry SELECT ino, 1000000, x'4c4f4f50', (SELECT ino FROM dentry WHERE name = x'41'), 0
                FROM dentry WHERE name = x'\(hex)'
            """)
        let found = try export()
        #expect(found.contains("around/E/albums/A/B/file") && found.count < 20)
    }

    /// As root these would be anybody's way to become it.
    @Test(arguments: [false, true]) func `device nodes and set-user-ID bits are left out unless asked for`(
        special: Bool
    ) throws {
        let disk = S_IFBLK | 0o666
        try forge(
            """
            UPDATE inode SET mode = \(disk), rdev = \(7 << 8) WHERE ino = (SELECT ino FROM dentry
                WHERE name = x'66696c65' AND parent = (SELECT ino FROM dentry WHERE name = x'42'));
            UPDATE inode SET mode = \(S_IFREG | 0o6755), uid = 0, gid = 0 WHERE ino = (SELECT ino FROM dentry
                WHERE name = x'66696c65' AND parent = (SELECT ino FROM dentry WHERE name = x'41'));
            UPDATE inode SET mode = \(S_IFDIR | 0o3775) WHERE ino = (SELECT ino FROM dentry WHERE name = x'42')
            """)
        let found = try export(special: special) { target, lines in
            var (file, directory, device) = (stat(), stat(), stat())
            #expect(lstat(target + "/albums/A/file", &file) == 0)
            #expect(lstat(target + "/albums/A/B", &directory) == 0)
            let isMade = lstat(target + "/albums/A/B/file", &device) == 0
            #expect(file.st_mode & 0o7777 == (special ? 0o6755 : 0o755))
            #expect(directory.st_mode & 0o7777 == (special ? 0o3775 : 0o1775))
            // Only root can make one at all.
            #expect(isMade == (special && geteuid() == 0))
            if isMade { #expect(device.st_mode == disk && device.st_rdev == 7 << 8) }
            let told = [
                "albums/A/B/file: a device node, left out: --special makes it",
                "albums/A/B: set-group-ID dropped: --special keeps it",
                "albums/A/file: set-user-ID and set-group-ID dropped: --special keeps it",
            ]
            #expect(lines.filter { $0.contains("--special") }.sorted() == (special ? [] : told.sorted()))
        }
        #expect(found.contains("around/E/albums/A/file"))
    }

    /// The inode of `albums/A/file`, which has an attribute now.
    private func attributedFile() throws -> UInt64 {
        let library = try Library.open(try vault.unlock(), options: options)
        let directory = try library.lookup(WellKnownInode.albums, "A", caller).attributes.ino
        let file = try library.lookup(directory, "file", caller).attributes.ino
        try library.setExtendedAttribute(
            file, name: Array("user.one".utf8), value: [1], policy: .any, caller)
        try library.close()
        return file
    }

    /// File capabilities are as good as set-user-ID.
    @Test(arguments: [false, true])
    func `attributes that are not the user's are left out`(special: Bool) throws {
        let file = try attributedFile()
        let name = "security.capability".utf8.map { String(format: "%02x", $0) }.joined()
        // CAP_SETUID, permitted and effective.
        try forge(
            """
            INSERT INTO xattr VALUES(\(file), x'\(name)', x'0100000280000000000000000000000000000000')
            """)
        _ = try export(special: special) { target, _ in
            let file = open(target + "/albums/A/file", O_RDONLY)
            defer { close(file) }
            #expect(obscura_get_attribute(file, "security.capability", nil, 0) == -1)
            #expect(obscura_get_attribute(file, "user.one", nil, 0) == 1)
        }
    }

    @Test func `sums of sizes stop at the end`() {
        #expect(sizeSum(.max - 1, 2) == 1 << 62 && sizeSum(1, 2) == 3)
        #expect(secondsLeft(10, done: 1, of: .max) > 1_000_000)
    }
}
