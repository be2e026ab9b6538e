import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultStore

@Suite struct PosixTests {
    @Test func linkCountsOfDirectories() throws {
        let rig = try Rig()
        #expect(try rig.stat("").nlink == 4)
        try rig.mkdir("albums/a")
        try rig.mkdir("albums/a/b")
        #expect(try rig.stat("albums").nlink == 3)
        #expect(try rig.stat("albums/a").nlink == 3)
        try rig.mkdir("albums/c")
        try rig.mv("albums/a/b", "albums/c/b")
        #expect(try rig.stat("albums/a").nlink == 2)
        #expect(try rig.stat("albums/c").nlink == 3)
        try rig.mv("albums/c", "albums/a", .exchange)
        #expect(try rig.ls("albums/a") == ["b"])
        try rig.rmdir("albums/a/b")
        #expect(try rig.stat("albums").nlink == 4)
        expectError(.noEntry) { try rig.rmdir("albums/none") }
    }

    @Test func renameErrors() throws {
        let rig = try Rig()
        try rig.mkdir("albums/a")
        try rig.mkdir("albums/a/b")
        try rig.mkdir("albums/empty")
        try rig.put("albums/f", [1])
        try rig.put("albums/g", [2])
        expectError(.invalid) { try rig.mv("albums/a", "albums/a/b/c") }
        expectError(.invalid) { try rig.mv("albums/a", "albums/a/b") }
        expectError(.notEmpty) { try rig.mv("albums/empty", "albums/a") }
        expectError(.notDirectory) { try rig.mv("albums/empty", "albums/f") }
        expectError(.isDirectory) { try rig.mv("albums/f", "albums/empty") }
        expectError(.nameTooLong) { try rig.mv("albums/f", "albums/" + String(repeating: "x", count: 256)) }
        expectError(.noEntry) { try rig.mv("albums/none", "albums/x") }
        expectError(.invalid) { try rig.mv("albums/a", "albums/a/b", .exchange) }
        try rig.mv("albums/a/b", "albums/empty")
        #expect(try rig.ls("albums") == ["a", "empty", "f", "g"])
        let g = try rig.ino("albums/g")
        try rig.mv("albums/f", "albums/g")
        rig.library.forget(g)
        #expect(try rig.get("albums/g") == [1])
        try rig.ln("albums/g", "albums/h")
        try rig.mv("albums/g", "albums/h")
        #expect(rig.exists("albums/g"), "two names of one file: rename does nothing")
        expectError(.isDirectory) { try rig.rm("albums/a") }
        expectError(.notDirectory) { try rig.rmdir("albums/g") }
        expectError(.notPermitted) { try rig.ln("albums/a", "albums/i") }
        expectError(.exists) { try rig.ln("albums/g", "albums/h") }
    }

    @Test func setGroupIDDirectoriesHandDown() throws {
        let rig = try Rig()
        try rig.mkdir("albums/d")
        let d = try rig.ino("albums/d")
        _ = try rig.library.setAttributes(d, AttributeChanges(gid: 77), rig.caller)
        _ = try rig.library.setAttributes(d, AttributeChanges(mode: 0o2775), rig.caller)
        let user = Caller(uid: 5, gid: 6)
        let sub = try rig.library.makeDirectory(d, "sub", mode: 0o755, user).attributes
        #expect(sub.gid == 77 && sub.uid == 5 && sub.mode & 0o7777 == 0o2755)
        let file = try rig.library.makeNode(d, "f", mode: 0o100644, rdev: 0, user).attributes
        #expect(file.gid == 77 && file.mode & 0o7777 == 0o644)
    }

    @Test func ownersWhenNotMountedByRoot() throws {
        let rig = try Rig(byRoot: false, uid: 1000)
        try rig.put("albums/f", [1])
        #expect(try rig.stat("albums/f").uid == 1000)
        let ino = try rig.ino("albums/f")
        expectError(.notPermitted) {
            _ = try rig.library.setAttributes(ino, AttributeChanges(uid: 0), rig.caller)
        }
        _ = try rig.library.setAttributes(ino, AttributeChanges(uid: 1000, gid: 1000), rig.caller)
    }

    @Test func nodesAndLinks() throws {
        let rig = try Rig()
        let fifo = try rig.library.makeNode(3, "fifo", mode: 0o010600, rdev: 0, rig.caller).attributes
        #expect(fifo.mode == 0o010600 && fifo.nlink == 1)
        let device = try rig.library.makeNode(3, "dev", mode: 0o020600, rdev: 0x103, rig.caller).attributes
        #expect(device.rdev == 0x103)
        let target = Array("../some/where".utf8)
        let link = try rig.library.makeSymbolicLink(3, "link", target: target, rig.caller).attributes
        #expect(link.size == UInt64(target.count) && link.mode == 0o120777)
        try rig.remount()
        #expect(try rig.library.readLink(link.ino) == target)
        expectError(.invalid) { _ = try rig.library.readLink(fifo.ino) }
        try rig.mv("albums/link", "albums/moved")
        for name in ["fifo", "dev", "moved"] { try rig.rm("albums/" + name) }
        #expect(try rig.ls("albums").isEmpty)
    }

    @Test func timesAreKeptToTheNanosecond() throws {
        let rig = try Rig()
        try rig.put("albums/f", [1])
        let ino = try rig.ino("albums/f")
        for seconds in [-5_000_000_000, -1, 0, 1, 2_147_483_648, 99_999_999_999] as [Int64] {
            let time = Timestamp(seconds: seconds, nanoseconds: 123_456_789)
            _ = try rig.library.setAttributes(ino, AttributeChanges(modified: .set(time)), rig.caller)
            try rig.remount()
            #expect(try rig.stat("albums/f").modified == time)
        }
        let before = try rig.stat("albums/f").changed
        _ = try rig.library.setAttributes(ino, AttributeChanges(), rig.caller)
        #expect(try rig.stat("albums/f").changed != before, "chown(-1, -1) changes ctime, as ext4 does")
    }

    @Test func timesSetWhileOpenAreNotLostAtClose() throws {
        let rig = try Rig()
        let handle = try rig.createOpen("albums/f")
        try rig.write(handle, noise(10))
        try rig.utimes("albums/f", modified: 1_000_000)
        try rig.close(handle)
        #expect(try rig.stat("albums/f").modified.seconds == 1_000_000)
    }

    @Test func extendedAttributes() throws {
        let rig = try Rig()
        let ino = try rig.put("albums/f", [1])
        let name = Array("user.tag".utf8)
        expectError(.noData) { _ = try rig.library.getExtendedAttribute(ino, name: name) }
        expectError(.noData) {
            try rig.library.setExtendedAttribute(ino, name: name, value: [1], policy: .replace)
        }
        try rig.library.setExtendedAttribute(ino, name: name, value: [], policy: .create)
        expectError(.exists) {
            try rig.library.setExtendedAttribute(ino, name: name, value: [1], policy: .create)
        }
        let big = noise(65_536)
        try rig.library.setExtendedAttribute(ino, name: Array("user.big".utf8), value: big, policy: .any)
        expectError(.tooBig) {
            try rig.library.setExtendedAttribute(ino, name: name, value: noise(65_537), policy: .any)
        }
        try rig.remount()
        #expect(try rig.library.getExtendedAttribute(ino, name: name) == [])
        #expect(try rig.library.getExtendedAttribute(ino, name: Array("user.big".utf8)) == big)
        #expect(try rig.library.listExtendedAttributes(ino) == [Array("user.big".utf8), name])
        try rig.library.removeExtendedAttribute(ino, name: name)
        expectError(.noData) { try rig.library.removeExtendedAttribute(ino, name: name) }
        expectError(.notSupported) {
            try rig.library.setExtendedAttribute(ino, name: Array("trusted.x".utf8), value: [1], policy: .any)
        }
        expectError(.notSupported) {
            _ = try rig.library.getExtendedAttribute(ino, name: Array("system.posix_acl_access".utf8))
        }
        expectError(.noData) {
            _ = try rig.library.getExtendedAttribute(ino, name: Array("security.capability".utf8))
        }
    }

    @Test func listingWhileTheDirectoryChanges() throws {
        let rig = try Rig()
        try rig.mkdir("albums/d")
        for number in 0..<500 {
            _ = try rig.library.makeNode(
                try rig.ino("albums/d"), Name("f\(number)"), mode: 0o100600, rdev: 0, rig.caller)
        }
        let d = try rig.ino("albums/d")
        let handle = try rig.library.openDirectory(d)
        var seen: [String] = []
        var cookie: UInt64 = 0
        var page = 0
        while true {
            var got: [DirectoryEntry] = []
            try rig.library.readDirectory(handle, after: cookie, plus: true) {
                got.append($0)
                return got.count < 20
            }
            if got.isEmpty { break }
            cookie = got[got.count - 1].cookie
            seen += got.map(\.name.description)
            // Names come and go meanwhile, behind and before us.
            page += 1
            try rig.library.unlink(d, Name("f\(page)"), rig.caller)
            _ = try? rig.library.unlink(d, Name("f\(499 - page)"), rig.caller)
            if page < 5 {
                _ = try rig.library.makeNode(d, Name("n\(page)"), mode: 0o100600, rdev: 0, rig.caller)
            }
        }
        #expect(Set(seen).count == seen.count, "nothing comes twice")
        for number in 100..<400 { #expect(seen.contains("f\(number)")) }
    }

    /// What a loop does that renames each file it is given.
    @Test func listingEndsThoughEachStepAddsAName() throws {
        let rig = try Rig()
        for number in 0..<20 { try rig.put("albums/f\(number)", []) }
        let handle = try rig.library.openDirectory(3)
        var seen: [String] = []
        var cookie: UInt64 = 0
        while seen.count < 100 {
            var next: DirectoryEntry?
            try rig.library.readDirectory(handle, after: cookie, plus: false) {
                if next != nil { return false }
                next = $0
                return true
            }
            guard let next else { break }
            cookie = next.cookie
            seen.append(next.name.description)
            guard next.name != ".", next.name != ".." else { continue }
            try rig.mv("albums/\(next.name)", "albums/\(next.name)x")
        }
        #expect(Set(seen) == Set([".", ".."] + (0..<20).map { "f\($0)" }))
        // From the start again, it is as it is now.
        let names = try rig.ls("albums")
        #expect(names == (0..<20).map { "f\($0)x" }.sorted())
        var again: [String] = []
        try rig.library.readDirectory(handle, after: 0, plus: true) {
            again.append($0.name.description)
            return true
        }
        #expect(again.dropFirst(2).sorted() == names)
    }

    @Test func aRemovedDirectoryTakesNothingIn() throws {
        let rig = try Rig()
        try rig.mkdir("albums/d")
        let d = try rig.ino("albums/d")
        try rig.library.removeDirectory(3, "d", rig.caller)
        #expect(try rig.library.attributes(d).0.nlink == 0)
        expectError(.noEntry) { _ = try rig.library.makeNode(d, "f", mode: 0o100600, rdev: 0, rig.caller) }
        rig.library.forget(d)
        expectError(.stale) { _ = try rig.library.attributes(d) }
    }

    @Test func aReadOnlyLibraryChangesNothing() throws {
        let rig = try Rig()
        try rig.put("albums/f", [1])
        try rig.close()
        try rig.reopen { $0.readOnly = true }
        let library = rig.library
        let f = try library.lookup(3, "f", rig.caller).attributes.ino
        expectError(.readOnly) { try library.unlink(3, "f", rig.caller) }
        expectError(.readOnly) { _ = try library.open(f, flags: O_RDWR, rig.caller) }
        expectError(.readOnly) { _ = try library.setAttributes(f, AttributeChanges(mode: 0), rig.caller) }
        let handle = try library.open(f, flags: O_RDONLY, rig.caller)
        #expect(try library.read(handle, offset: 0, count: 10) { Array($0) } == [1])
        library.release(handle)
        try library.close()
    }

    @Test func aDirectoryOfManyEntries() throws {
        let rig = try Rig()
        try rig.mkdir("albums/d")
        let d = try rig.ino("albums/d")
        for number in 0..<6000 {
            _ = try rig.library.makeNode(d, Name("file\(number)"), mode: 0o100600, rdev: 0, rig.caller)
        }
        #expect(try rig.list("albums/d", page: 100).count == 6000)
        for number in 0..<6000 {
            let name = Name("file\(number)")
            let ino = try rig.library.lookup(d, name, rig.caller).attributes.ino
            try rig.library.unlink(d, name, rig.caller)
            rig.library.forget(ino)
        }
        try rig.rmdir("albums/d")
        try rig.expectNothingLeft()
    }

    @Test func statistics() throws {
        let rig = try Rig()
        let before = rig.library.statistics()
        #expect(before.blocks * before.blockBytes == rig.space.capacity.total)
        try rig.put("albums/f", noise(1 << 20))
        #expect(rig.library.statistics().free <= before.free - 256)
    }
}
