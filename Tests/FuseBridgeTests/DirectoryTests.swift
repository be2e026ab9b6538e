import FileRequests
import Foundation
import PhotoLibrary
import TestSupport
import TestThreads
import Testing

extension RealMounts {
    @Suite("Kernel: directories") struct DirectoryTests {
        /// Names in the order readdir(3) gives them, calling `body` after each; at most 10,000.
        private func list(_ path: String, _ body: (Int, String) -> Void = { _, _ in }) throws -> [String] {
            let stream = try #require(opendir(path))
            defer { closedir(stream) }
            var names: [String] = []
            while names.count < 10_000, let entry = readdir(stream) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                names.append(name)
                body(names.count, name)
            }
            return names
        }

        @Test func `a directory is listed whole while it is emptied`() throws {
            try withMount { mount throws in
                let count = 3000
                for index in 0..<count { try write("", to: mount.path("\(index)")) }
                let names = try list(mount.directory) { _, name in
                    if !name.hasPrefix(".") { unlink(mount.path(name)) }
                }
                #expect(Set(names).count == names.count)
                #expect(names.filter { !$0.hasPrefix(".") }.count == count)
                #expect(try list(mount.directory).filter { !$0.hasPrefix(".") }.isEmpty)
            }
        }

        /// A renaming loop. The listing must end though each step adds an entry (btrfs once had
        /// that fault).
        @Test func `entries that stay are listed once while others come and go`() throws {
            try withMount { mount throws in
                let stay = (0..<2000).map { "stay\($0)" }
                for name in stay { try write("", to: mount.path(name)) }
                let names = try list(mount.directory) { index, _ in
                    close(open(mount.path("new\(index)"), O_CREAT, 0o600))
                    unlink(mount.path("new\(index - 7)"))
                }
                #expect(names.filter { $0.hasPrefix("stay") }.sorted() == stay.sorted())
                #expect(names.count < 2 * stay.count)
            }
        }

        @Test func `. and .. come first`() throws {
            try withMount { mount throws in
                #expect(mkdir(mount.path("d"), 0o700) == 0)
                #expect(try list(mount.path("d")) == [".", ".."])
                #expect(try status(mount.path("d/..")).st_ino == status(mount.directory).st_ino)
                #expect(try status(mount.path("d")).st_nlink == 2)
            }
        }

        @Test func `names of 255 bytes are listed`() throws {
            try withMount { mount throws in
                let name = String(repeating: "ä", count: 127) + "x"
                try write("x", to: mount.path(name))
                #expect(try list(mount.directory).contains(name))
                #expect(failure { Int(open(mount.path(name + "y"), O_CREAT, 0o600)) } == ENAMETOOLONG)
            }
        }

        /// READDIR and READDIRPLUS requests while `body` runs.
        private func readings(_ mount: MountedLibrary, _ body: () throws -> Void) throws -> Int {
            func count() throws -> Int {
                let counts = try mount.requestCounts()
                return counts["readdir", default: 0] + counts["readdirplus", default: 0]
            }
            let before = try count()
            try body()
            // A handle from before a change, whose RELEASEDIR is still to come, keeps the next listing from being kept.
            let isClosed = try eventually {
                let counts = try mount.requestCounts()
                return counts["opendir"] == counts["releasedir"]
            }
            #expect(isClosed)
            return try count() - before
        }

        @Test func `a listing is requested once, and again after a change`() throws {
            try withMount { mount throws in
                let names = (0..<500).map { "\($0)" }
                for name in names { try write("", to: mount.path(name)) }
                func expectListing(_ expected: [String]) throws {
                    let listed = try list(mount.directory).filter { !$0.hasPrefix(".") }
                    #expect(listed.sorted() == expected.sorted())
                }
                #expect(try readings(mount) { try expectListing(names) } > 0)
                #expect(try readings(mount) { try expectListing(names) } == 0)
                unlink(mount.path("7"))
                let rest = names.filter { $0 != "7" }
                #expect(try readings(mount) { try expectListing(rest) } > 0)
                #expect(try readings(mount) { try expectListing(rest) } == 0)
            }
        }

        /// Thunar reads all names first, and then the attributes of each.
        @Test func `what was listed is known, though nothing was looked up before all of it was`() throws {
            try withMount { mount throws in
                let parent = UInt64(try status(mount.directory).st_ino)
                let caller = Caller(uid: getuid(), gid: getgid())
                // Past the kernel, which knows what is made by it.
                for index in 0..<1000 {
                    _ = try mount.library.makeNode(
                        parent, Name("\(index)"), mode: S_IFREG | 0o600, rdev: 0, caller)
                }
                let names = try list(mount.directory).filter { !$0.hasPrefix(".") }
                #expect(names.count == 1000)
                let before = try mount.requestCounts()["lookup", default: 0]
                for name in names { #expect(try status(mount.path(name)).st_size == 0) }
                #expect(try mount.requestCounts()["lookup", default: 0] - before < 10)
            }
        }

        /// Names that no request for the directory changed: a photo that classification puts into its day, and its
        /// names in albums that go when it is removed from moments.
        @Test func `a listing is requested again after a change by another directory`() throws {
            try withMount { mount throws in
                let photo = Data(jpeg("2024-05-01"))
                let day = mount.mountPoint + "/moments/2024-05-01"
                func names(_ path: String) throws -> [String] {
                    try list(path).filter { !$0.hasPrefix(".") }.sorted()
                }
                try photo.write(to: URL(fileURLWithPath: mount.path("a.jpg")))
                #expect(try names(day) == ["a.jpg"])
                let again = try readings(mount) { _ = try names(day) }
                #expect(again == 0)
                try (photo + Data([0])).write(to: URL(fileURLWithPath: mount.path("b.jpg")))
                #expect(try names(day) == ["a.jpg", "b.jpg"])
                #expect(try names(mount.directory) == ["a.jpg", "b.jpg"])
                #expect(unlink(day + "/a.jpg") == 0)
                #expect(try names(mount.directory) == ["b.jpg"])
                #expect(try names(day) == ["b.jpg"])
            }
        }

        /// The handle stays open, so no OPENDIR tells the kernel: the notification does, which may come a moment later.
        @Test(.waiting) func `an open directory that is read again shows what changed elsewhere`() throws {
            try withMount { mount throws in
                let photo = Data(jpeg("2024-05-01"))
                let day = mount.mountPoint + "/moments/2024-05-01"
                try photo.write(to: URL(fileURLWithPath: mount.path("a.jpg")))
                let stream = try #require(opendir(day))
                defer { closedir(stream) }
                func count() -> Int {
                    rewinddir(stream)
                    var count = 0
                    while let entry = readdir(stream) { count += entry.pointee.d_name.0 == 0x2E ? 0 : 1 }
                    return count
                }
                #expect(count() == 1)
                try (photo + Data([0])).write(to: URL(fileURLWithPath: mount.path("b.jpg")))
                let limit = Date(timeIntervalSinceNow: 300)
                while count() != 2, Date() < limit { usleep(10_000) }
                #expect(count() == 2)
            }
        }
    }
}
