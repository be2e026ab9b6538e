import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

/// Thumbnails of a mount that several users share: nobody sees more in them than in the files.
@Suite("Thumbnails: owners and permissions") struct SharedThumbnailTests {
    private static let owner: UInt32 = 1000
    private static let group: UInt32 = 2000

    private func set(_ fixture: Fixture, _ path: String, mode: UInt32, gid: UInt32 = owner) throws {
        var changes = AttributeChanges()
        (changes.mode, changes.uid, changes.gid) = (mode, Self.owner, gid)
        _ = try fixture.library.setAttributes(fixture.ino(path), changes, fixture.caller)
    }

    private func expect(
        _ fixture: Fixture, _ path: String, _ mode: UInt32, gid: UInt32 = owner, line: Int = #line
    )
        throws
    {
        let shown = try fixture.stat(path)
        #expect(shown.mode == mode, "\(path): \(String(shown.mode, radix: 8)), line \(line)")
        #expect(shown.uid == Self.owner && shown.gid == gid, "\(path), line \(line)")
    }

    @Test func `each thumbnail has the owner and the permissions of its photo`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.mkdir("albums/private")
        try fixture.mkdir("albums/private/sub")
        try fixture.put("albums/private/a.jpg", jpeg())
        try set(fixture, "albums/private/a.jpg", mode: 0o640, gid: Self.group)
        try set(fixture, "albums/private/sub", mode: 0o2771)
        try set(fixture, "albums/private", mode: 0o750)
        let digest = repositoryFileName(repositoryDigests(of: Array("a.jpg".utf8))[0])
        let shared = "albums/private/.sh_thumbnails"
        for directory in [
            "albums/private/.thumbs", "albums/private/.thumbs/512", "albums/private/.thumbs/fast",
            ".thumbs/albums/private", ".thumbs/512/albums/private", shared, shared + "/normal",
        ] {
            try expect(fixture, directory, 0o40550)
            for entry in try fixture.list(directory) where entry.name.description.contains("a.jpg") {
                #expect(entry.mode == 0o100440)
                #expect(entry.entry.map { $0.attributes.mode == 0o100440 } ?? true)
            }
        }
        try expect(fixture, ".thumbs/albums/private/sub", 0o40551)
        for picture in [
            "albums/private/.thumbs/a.jpg", "albums/private/.thumbs/512/a.jpg",
            "albums/private/.thumbs/fast/a.jpg", ".thumbs/moments/2024-05-01/a.jpg",
            "\(shared)/normal/\(String(decoding: digest, as: UTF8.self))",
        ] {
            try expect(fixture, picture, 0o100440, gid: Self.group)
        }
        for composition in ["stack.jpg", "sheet.jpg"] {
            try expect(fixture, "albums/private/.thumbs/\(composition)", 0o100440)
        }
        try set(fixture, "albums/private/a.jpg", mode: 0o604)
        try expect(fixture, "albums/private/.thumbs/a.jpg", 0o100404)
    }

    @Test func `a copy's thumbnail is the copy's own`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.put("albums/a.jpg", jpeg())
        try fixture.put("albums/b.jpg", jpeg())
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        try set(fixture, "albums/a.jpg", mode: 0o600)
        try set(fixture, "albums/b.jpg", mode: 0o644)
        try expect(fixture, "albums/.thumbs/a.jpg", 0o100400)
        try expect(fixture, "albums/.thumbs/b.jpg", 0o100444)
        try expect(fixture, "albums/.thumbs/512/b.jpg", 0o100444)
        #expect(try fixture.get("albums/.thumbs/a.jpg") == fixture.get("albums/.thumbs/b.jpg"))
        #expect(try fixture.get("albums/.thumbs/512/a.jpg") == fixture.get("albums/.thumbs/512/b.jpg"))
    }

    // MARK: Compositions

    /// The composition's inode and words, as a caller sees them.
    private func composition(_ fixture: Fixture, _ name: Name, _ caller: Caller) throws -> (
        ino: UInt64, text: String
    ) {
        let thumbs = try fixture.ino("albums/Trip/.thumbs")
        let found = try fixture.library.lookup(thumbs, name, caller).attributes
        let handle = try fixture.library.open(found.ino, flags: O_RDONLY, caller)
        let bytes = try fixture.read(handle)
        fixture.library.release(handle)
        #expect(found.size == UInt64(bytes.count))
        return (found.ino, String(decoding: bytes, as: UTF8.self))
    }

    @Test func `compositions leave out what their reader may not read`() throws {
        let (fixture, maker) = try Fixture.withStandIn()
        try fixture.mkdir("albums/Trip")
        for (number, mode) in [(1, 0o644), (2, 0o600), (3, 0o640), (4, 0o604), (5, 0o077)] as [(Int, UInt32)]
        {
            try fixture.put("albums/Trip/\(number).jpg", jpeg("2024-05-0\(number)", more: number))
            try set(fixture, "albums/Trip/\(number).jpg", mode: mode, gid: Self.group)
        }
        let stranger = Caller(uid: 1001, gid: 1001, pid: getpid())
        // The groups of a process that cannot be seen may be any.
        let unknown = Caller(uid: 1001, gid: 1001, pid: 0)
        let cases: [(Caller, String)] = [
            (fixture.caller, "5.jpg 4.jpg 3.jpg 2.jpg 1.jpg"),
            (Caller(uid: Self.owner, gid: 1), "4.jpg 3.jpg 2.jpg 1.jpg"),
            (Caller(uid: 1001, gid: Self.group), "5.jpg 3.jpg 1.jpg"), (stranger, "5.jpg 4.jpg 1.jpg"),
            (unknown, "5.jpg 1.jpg"),
        ]
        var numbers: Set<UInt64> = []
        for (caller, names) in cases {
            let found = try composition(fixture, "sheet.jpg", caller)
            #expect(found.text == "sheet Trip: \(names)")
            numbers.insert(found.ino)
            #expect(
                try composition(fixture, "stack.jpg", caller).text.hasPrefix(
                    "stack of \(names.split(separator: " ").count) "))
        }
        // The kernel keeps pages by inode: one that several see has the same for all of them.
        #expect(numbers.count == cases.count && maker.compositions == 2 * cases.count)
        let sheet = try composition(fixture, "sheet.jpg", fixture.caller).ino
        expectError(.stale) { _ = try fixture.library.attributes(sheet, stranger) }
        expectError(.stale) { _ = try fixture.library.open(sheet, flags: O_RDONLY, stranger) }
        // A photo that a caller could read, and cannot any more.
        let own = try composition(fixture, "sheet.jpg", stranger).ino
        try set(fixture, "albums/Trip/4.jpg", mode: 0o600)
        expectError(.stale) { _ = try fixture.library.attributes(own, stranger) }
        #expect(try composition(fixture, "sheet.jpg", stranger).text == "sheet Trip: 5.jpg 1.jpg")
        for number in [1, 5] { try set(fixture, "albums/Trip/\(number).jpg", mode: 0o600) }
        expectError(.noEntry) { _ = try composition(fixture, "sheet.jpg", stranger) }
    }

    @Test func `photos that are hidden make room for others`() throws {
        let (fixture, _) = try Fixture.withStandIn()
        try fixture.mkdir("albums/Trip")
        for number in 1...9 {
            try fixture.put("albums/Trip/\(number).jpg", jpeg("2024-05-0\(number)", more: number))
            if number % 3 == 0 { try set(fixture, "albums/Trip/\(number).jpg", mode: 0o600) }
        }
        let stranger = Caller(uid: 1001, gid: 1001, pid: getpid())
        #expect(try composition(fixture, "stack.jpg", stranger).text.hasPrefix("stack of 5 "))
        #expect(
            try composition(fixture, "sheet.jpg", stranger).text
                == "sheet Trip: 8.jpg 7.jpg 5.jpg 4.jpg 2.jpg 1.jpg")
    }
}
