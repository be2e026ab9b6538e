import Foundation
import PhotoLibrary
import Testing

extension RealMounts {
    @Suite struct DirectoryTests {
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

        @Test func aDirectoryIsListedWholeWhileItIsEmptied() throws {
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

        /// What a renaming loop does. The listing must end though each step adds an entry (btrfs once had
        /// that fault).
        @Test func entriesThatStayAreListedOnceWhileOthersComeAndGo() throws {
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

        @Test func dotAndDotDotComeFirst() throws {
            try withMount { mount throws in
                #expect(mkdir(mount.path("d"), 0o700) == 0)
                #expect(try list(mount.path("d")) == [".", ".."])
                #expect(try status(mount.path("d/..")).st_ino == status(mount.directory).st_ino)
                #expect(try status(mount.path("d")).st_nlink == 2)
            }
        }

        @Test func namesOf255BytesAreListed() throws {
            try withMount { mount throws in
                let name = String(repeating: "ä", count: 127) + "x"
                try write("x", to: mount.path(name))
                #expect(try list(mount.directory).contains(name))
                #expect(failure { Int(open(mount.path(name + "y"), O_CREAT, 0o600)) } == ENAMETOOLONG)
            }
        }
    }
}
