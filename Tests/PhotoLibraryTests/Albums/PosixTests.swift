import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultStore

@Suite("Albums: an ordinary POSIX tree") struct PosixTests {
    @Test func `link counts of directories`() throws {
        let fixture = try Fixture()
        #expect(try fixture.stat("").nlink == 4)
        try fixture.mkdir("albums/a")
        try fixture.mkdir("albums/a/b")
        #expect(try fixture.stat("albums").nlink == 3)
        #expect(try fixture.stat("albums/a").nlink == 3)
        try fixture.mkdir("albums/c")
        try fixture.mv("albums/a/b", "albums/c/b")
        #expect(try fixture.stat("albums/a").nlink == 2)
        #expect(try fixture.stat("albums/c").nlink == 3)
        try fixture.mv("albums/c", "albums/a", .exchange)
        #expect(try fixture.ls("albums/a") == ["b"])
        try fixture.rmdir("albums/a/b")
        #expect(try fixture.stat("albums").nlink == 4)
        expectError(.noEntry) { try fixture.rmdir("albums/none") }
    }

    @Test func `renames fail with the errors of POSIX`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/a")
        try fixture.mkdir("albums/a/b")
        try fixture.mkdir("albums/empty")
        try fixture.put("albums/f", [1])
        try fixture.put("albums/g", [2])
        expectError(.invalid) { try fixture.mv("albums/a", "albums/a/b/c") }
        expectError(.invalid) { try fixture.mv("albums/a", "albums/a/b") }
        expectError(.notEmpty) { try fixture.mv("albums/empty", "albums/a") }
        expectError(.notDirectory) { try fixture.mv("albums/empty", "albums/f") }
        expectError(.isDirectory) { try fixture.mv("albums/f", "albums/empty") }
        expectError(.nameTooLong) {
            try fixture.mv("albums/f", "albums/" + String(repeating: "x", count: 256))
        }
        expectError(.noEntry) { try fixture.mv("albums/none", "albums/x") }
        expectError(.invalid) { try fixture.mv("albums/a", "albums/a/b", .exchange) }
        try fixture.mv("albums/a/b", "albums/empty")
        #expect(try fixture.ls("albums") == ["a", "empty", "f", "g"])
        let g = try fixture.ino("albums/g")
        try fixture.mv("albums/f", "albums/g")
        fixture.library.forget(g)
        #expect(try fixture.get("albums/g") == [1])
        try fixture.ln("albums/g", "albums/h")
        try fixture.mv("albums/g", "albums/h")
        #expect(fixture.exists("albums/g"), "two names of one file: rename does nothing")
        expectError(.isDirectory) { try fixture.rm("albums/a") }
        expectError(.notDirectory) { try fixture.rmdir("albums/g") }
        expectError(.notPermitted) { try fixture.ln("albums/a", "albums/i") }
        expectError(.exists) { try fixture.ln("albums/g", "albums/h") }
    }

    @Test func `directories with the set-group-ID bit hand down their group`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/d")
        let d = try fixture.ino("albums/d")
        _ = try fixture.library.setAttributes(d, AttributeChanges(gid: 77), fixture.caller)
        _ = try fixture.library.setAttributes(d, AttributeChanges(mode: 0o2775), fixture.caller)
        let user = Caller(uid: 5, gid: 6)
        let sub = try fixture.library.makeDirectory(d, "sub", mode: 0o755, user).attributes
        #expect(sub.gid == 77 && sub.uid == 5 && sub.mode & 0o7777 == 0o2755)
        let file = try fixture.library.makeNode(d, "f", mode: 0o100644, rdev: 0, user).attributes
        #expect(file.gid == 77 && file.mode & 0o7777 == 0o644)
    }

    @Test func `owners are the mounting user unless root mounts`() throws {
        let fixture = try Fixture(byRoot: false, uid: 1000)
        try fixture.put("albums/f", [1])
        #expect(try fixture.stat("albums/f").uid == 1000)
        let ino = try fixture.ino("albums/f")
        expectError(.notPermitted) {
            _ = try fixture.library.setAttributes(ino, AttributeChanges(uid: 0), fixture.caller)
        }
        _ = try fixture.library.setAttributes(ino, AttributeChanges(uid: 1000, gid: 1000), fixture.caller)
    }

    @Test func `device nodes, FIFOs and symbolic links are kept`() throws {
        let fixture = try Fixture()
        let fifo = try fixture.library.makeNode(3, "fifo", mode: 0o010600, rdev: 0, fixture.caller).attributes
        #expect(fifo.mode == 0o010600 && fifo.nlink == 1)
        let device = try fixture.library.makeNode(3, "dev", mode: 0o020600, rdev: 0x103, fixture.caller)
            .attributes
        #expect(device.rdev == 0x103)
        let target = Array("../some/where".utf8)
        let link = try fixture.library.makeSymbolicLink(3, "link", target: target, fixture.caller).attributes
        #expect(link.size == UInt64(target.count) && link.mode == 0o120777)
        try fixture.remount()
        #expect(try fixture.library.readLink(link.ino) == target)
        expectError(.invalid) { _ = try fixture.library.readLink(fifo.ino) }
        try fixture.mv("albums/link", "albums/moved")
        for name in ["fifo", "dev", "moved"] { try fixture.rm("albums/" + name) }
        #expect(try fixture.ls("albums").isEmpty)
    }

    @Test func `times are kept to the nanosecond`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/f", [1])
        let ino = try fixture.ino("albums/f")
        for seconds in [-5_000_000_000, -1, 0, 1, 2_147_483_648, 99_999_999_999] as [Int64] {
            let time = Timestamp(seconds: seconds, nanoseconds: 123_456_789)
            _ = try fixture.library.setAttributes(ino, AttributeChanges(modified: .set(time)), fixture.caller)
            try fixture.remount()
            #expect(try fixture.stat("albums/f").modified == time)
        }
        let before = try fixture.stat("albums/f").changed
        _ = try fixture.library.setAttributes(ino, AttributeChanges(), fixture.caller)
        #expect(try fixture.stat("albums/f").changed != before, "chown(-1, -1) changes ctime, as ext4 does")
    }

    @Test func `times set while open are not lost at close`() throws {
        let fixture = try Fixture()
        let handle = try fixture.createOpen("albums/f")
        try fixture.write(handle, noise(10))
        try fixture.utimes("albums/f", modified: 1_000_000)
        try fixture.close(handle)
        #expect(try fixture.stat("albums/f").modified.seconds == 1_000_000)
    }

    @Test func `extended attributes are kept`() throws {
        let fixture = try Fixture()
        let ino = try fixture.put("albums/f", [1])
        let name = Array("user.tag".utf8)
        expectError(.noData) { _ = try fixture.library.getExtendedAttribute(ino, name: name) }
        expectError(.noData) {
            try fixture.library.setExtendedAttribute(ino, name: name, value: [1], policy: .replace)
        }
        try fixture.library.setExtendedAttribute(ino, name: name, value: [], policy: .create)
        expectError(.exists) {
            try fixture.library.setExtendedAttribute(ino, name: name, value: [1], policy: .create)
        }
        let big = noise(65_536)
        try fixture.library.setExtendedAttribute(ino, name: Array("user.big".utf8), value: big, policy: .any)
        expectError(.tooBig) {
            try fixture.library.setExtendedAttribute(ino, name: name, value: noise(65_537), policy: .any)
        }
        try fixture.remount()
        #expect(try fixture.library.getExtendedAttribute(ino, name: name) == [])
        #expect(try fixture.library.getExtendedAttribute(ino, name: Array("user.big".utf8)) == big)
        #expect(try fixture.library.listExtendedAttributes(ino) == [Array("user.big".utf8), name])
        try fixture.library.removeExtendedAttribute(ino, name: name)
        expectError(.noData) { try fixture.library.removeExtendedAttribute(ino, name: name) }
        expectError(.notSupported) {
            try fixture.library.setExtendedAttribute(
                ino, name: Array("trusted.x".utf8), value: [1], policy: .any)
        }
        expectError(.notSupported) {
            _ = try fixture.library.getExtendedAttribute(ino, name: Array("system.posix_acl_access".utf8))
        }
        expectError(.noData) {
            _ = try fixture.library.getExtendedAttribute(ino, name: Array("security.capability".utf8))
        }
    }

    @Test func `a listing while the directory changes`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/d")
        for number in 0..<500 {
            _ = try fixture.library.makeNode(
                try fixture.ino("albums/d"), Name("f\(number)"), mode: 0o100600, rdev: 0, fixture.caller)
        }
        let d = try fixture.ino("albums/d")
        let handle = try fixture.library.openDirectory(d)
        var seen: [String] = []
        var cookie: UInt64 = 0
        var page = 0
        while true {
            var got: [DirectoryEntry] = []
            try fixture.library.readDirectory(handle, after: cookie, plus: true) {
                got.append($0)
                return got.count < 20
            }
            if got.isEmpty { break }
            cookie = got[got.count - 1].cookie
            seen += got.map(\.name.description)
            // Names come and go meanwhile, behind and before us.
            page += 1
            try fixture.library.unlink(d, Name("f\(page)"), fixture.caller)
            _ = try? fixture.library.unlink(d, Name("f\(499 - page)"), fixture.caller)
            if page < 5 {
                _ = try fixture.library.makeNode(d, Name("n\(page)"), mode: 0o100600, rdev: 0, fixture.caller)
            }
        }
        #expect(Set(seen).count == seen.count, "nothing comes twice")
        for number in 100..<400 { #expect(seen.contains("f\(number)")) }
    }

    /// A loop that renames each file it is given.
    @Test func `listing ends though each step adds a name`() throws {
        let fixture = try Fixture()
        for number in 0..<20 { try fixture.put("albums/f\(number)", []) }
        let handle = try fixture.library.openDirectory(3)
        var seen: [String] = []
        var cookie: UInt64 = 0
        while seen.count < 100 {
            var next: DirectoryEntry?
            try fixture.library.readDirectory(handle, after: cookie, plus: false) {
                if next != nil { return false }
                next = $0
                return true
            }
            guard let next else { break }
            cookie = next.cookie
            seen.append(next.name.description)
            guard next.name != ".", next.name != ".." else { continue }
            try fixture.mv("albums/\(next.name)", "albums/\(next.name)x")
        }
        #expect(Set(seen) == Set([".", ".."] + (0..<20).map { "f\($0)" }))
        // From the start again, it is as it is now.
        let names = try fixture.ls("albums")
        #expect(names == (0..<20).map { "f\($0)x" }.sorted())
        var again: [String] = []
        try fixture.library.readDirectory(handle, after: 0, plus: true) {
            again.append($0.name.description)
            return true
        }
        #expect(again.dropFirst(2).sorted() == names)
    }

    @Test func `a removed directory takes nothing in`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/d")
        let d = try fixture.ino("albums/d")
        try fixture.library.removeDirectory(3, "d", fixture.caller)
        #expect(try fixture.library.attributes(d).0.nlink == 0)
        expectError(.noEntry) {
            _ = try fixture.library.makeNode(d, "f", mode: 0o100600, rdev: 0, fixture.caller)
        }
        fixture.library.forget(d)
        expectError(.stale) { _ = try fixture.library.attributes(d) }
    }

    @Test func `a read-only library changes nothing`() throws {
        let fixture = try Fixture()
        try fixture.put("albums/f", [1])
        try fixture.close()
        try fixture.reopen { $0.readOnly = true }
        let library = fixture.library
        let f = try library.lookup(3, "f", fixture.caller).attributes.ino
        expectError(.readOnly) { try library.unlink(3, "f", fixture.caller) }
        expectError(.readOnly) { _ = try library.open(f, flags: O_RDWR, fixture.caller) }
        expectError(.readOnly) { _ = try library.setAttributes(f, AttributeChanges(mode: 0), fixture.caller) }
        let handle = try library.open(f, flags: O_RDONLY, fixture.caller)
        #expect(try library.read(handle, offset: 0, count: 10) { Array($0) } == [1])
        library.release(handle)
        try library.close()
    }

    @Test func `a directory of many entries`() throws {
        let fixture = try Fixture()
        try fixture.mkdir("albums/d")
        let d = try fixture.ino("albums/d")
        for number in 0..<6000 {
            _ = try fixture.library.makeNode(
                d, Name("file\(number)"), mode: 0o100600, rdev: 0, fixture.caller)
        }
        #expect(try fixture.list("albums/d", page: 100).count == 6000)
        for number in 0..<6000 {
            let name = Name("file\(number)")
            let ino = try fixture.library.lookup(d, name, fixture.caller).attributes.ino
            try fixture.library.unlink(d, name, fixture.caller)
            fixture.library.forget(ino)
        }
        try fixture.rmdir("albums/d")
        try fixture.expectNothingLeft()
    }

    @Test func `statfs tells the space's capacity and use`() throws {
        let fixture = try Fixture()
        let before = fixture.library.statistics()
        #expect(before.blocks * before.blockBytes == fixture.space.sectors.capacity.total)
        try fixture.put("albums/f", noise(1 << 20))
        #expect(fixture.library.statistics().free <= before.free - 256)
    }
}
