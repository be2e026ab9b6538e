import Foundation
import PhotoLibrary
import Testing

/// Ordinary programs' calls, through the kernel.
extension RealMounts {
    @Suite("Permissions, times, names: files, through a mount") struct FileMountTests {
        @Test func `names, links and modes come back`() throws {
            try withMount { mount throws in
                let (file, link) = (mount.path("file"), mount.path("link"))
                #expect(mkdir(mount.path("d"), 0o750) == 0)
                try write("hello", to: file)
                #expect(Glibc.link(file, link) == 0)
                #expect(symlink("file", mount.path("soft")) == 0)
                #expect(chmod(file, 0o604) == 0)
                #expect(mkfifo(mount.path("d/pipe"), 0o600) == 0)
                let (one, two) = (try status(file), try status(link))
                #expect(one.st_ino == two.st_ino && one.st_nlink == 2 && one.st_mode == 0o100604)
                #expect(try status(mount.path("d")).st_mode == 0o040750)
                #expect(try status(mount.path("d/pipe")).st_mode & S_IFMT == S_IFIFO)
                #expect(
                    try FileManager.default.destinationOfSymbolicLink(atPath: mount.path("soft")) == "file")
                #expect(try read(mount.path("soft")) == "hello")
                #expect(unlink(file) == 0 && rmdir(mount.path("d")) == -1 && errno == ENOTEMPTY)
                #expect(try status(link).st_nlink == 1)
            }
        }

        @Test func `times keep their nanoseconds`() throws {
            try withMount { mount throws in
                try write("x", to: mount.path("file"))
                let times = [
                    timespec(tv_sec: 11, tv_nsec: 1), timespec(tv_sec: 1 << 33, tv_nsec: 999_999_999),
                ]
                #expect(utimensat(AT_FDCWD, mount.path("file"), times, 0) == 0)
                let result = try status(mount.path("file"))
                #expect(result.st_atim.tv_sec == 11 && result.st_atim.tv_nsec == 1)
                #expect(result.st_mtim.tv_sec == 1 << 33 && result.st_mtim.tv_nsec == 999_999_999)
            }
        }

        @Test func `renaming honours its flags`() throws {
            let (noReplace, exchange): (UInt32, UInt32) = (1, 2)
            try withMount { mount throws in
                try write("a", to: mount.path("a"))
                try write("b", to: mount.path("b"))
                #expect(rename2(mount.path("a"), mount.path("b"), noReplace) == EEXIST)
                #expect(rename2(mount.path("a"), mount.path("b"), exchange) == 0)
                #expect(try read(mount.path("a")) == "b")
                #expect(rename2(mount.path("a"), mount.path("c"), noReplace) == 0)
                #expect(rename2(mount.path("c"), mount.path("b"), 0) == 0)
                #expect(try read(mount.path("b")) == "b")
                #expect(rename2(mount.path("b"), mount.path("x"), 4) == EINVAL)
            }
        }

        @Test func `a large file comes back in any pieces`() throws {
            try withMount { mount throws in
                let bytes = Data((0..<3_000_001).map { UInt8(truncatingIfNeeded: $0 &* 2_654_435_761 >> 13) })
                try bytes.write(to: URL(fileURLWithPath: mount.path("photo")))
                #expect(try Data(contentsOf: URL(fileURLWithPath: mount.path("photo"))) == bytes)
                let file = try Foundation.FileHandle(path: mount.path("photo"))
                #expect(try file.piece(2_999_990, 100) == bytes[2_999_990...])
                #expect(try file.piece(3_000_001, 100).isEmpty)
                #expect(try file.piece(131_071, 2) == bytes[131_071..<131_073])
            }
        }

        @Test func `an unlinked open file lives until it is closed`() throws {
            try withMount { mount throws in
                try write("still here", to: mount.path("file"))
                let file = try Foundation.FileHandle(path: mount.path("file"))
                #expect(unlink(mount.path("file")) == 0)
                #expect(try file.piece(0, 100) == Data("still here".utf8))
            }
        }

        @Test func `appenders do not overwrite each other`() throws {
            try withMount { mount throws in
                let (writers, lines) = (6, 300)
                DispatchQueue.concurrentPerform(iterations: writers) { writer in
                    let file = open(mount.path("log"), O_WRONLY | O_CREAT | O_APPEND, 0o600)
                    for line in 0..<lines {
                        let text = "\(writer) \(line) \(String(repeating: "x", count: line % 50))\n"
                        _ = Glibc.write(file, text, text.utf8.count)
                    }
                    close(file)
                }
                let read = try read(mount.path("log")).split(separator: "\n").map { $0.split(separator: " ") }
                #expect(read.count == writers * lines)
                for writer in 0..<writers {
                    let own = read.filter { $0[0] == "\(writer)" }.compactMap { Int($0[1]) }
                    #expect(own == Array(0..<lines))
                }
            }
        }

        @Test func `memory maps read and write`() throws {
            try withMount { mount throws in
                let count = 1 << 20
                let descriptor = open(mount.path("mapped"), O_RDWR | O_CREAT, 0o600)
                defer { close(descriptor) }
                #expect(ftruncate(descriptor, count) == 0)
                let map = try #require(mmap(nil, count, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0))
                memset(map + 5000, 0x5a, 100_000)
                #expect(msync(map, count, MS_SYNC) == 0)
                var direct = [UInt8](repeating: 0, count: 100_000)
                #expect(pread(descriptor, &direct, 100_000, 5000) == 100_000)
                #expect(direct.allSatisfy { $0 == 0x5a })
                #expect(pwrite(descriptor, "seen", 4, 200_000) == 4)
                #expect(memcmp(map + 200_000, "seen", 4) == 0)
                munmap(map, count)
            }
        }

        @Test func `direct transfers work`() throws {
            try withMount { mount throws in
                let directFlag: Int32 = 0o40000
                let descriptor = open(mount.path("direct"), O_RDWR | O_CREAT | directFlag, 0o600)
                defer { close(descriptor) }
                let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 << 20, alignment: 4096)
                defer { buffer.deallocate() }
                for index in buffer.indices { buffer[index] = UInt8(truncatingIfNeeded: index / 4096) }
                #expect(pwrite(descriptor, buffer.baseAddress, buffer.count, 4096) == buffer.count)
                memset(buffer.baseAddress!, 0, buffer.count)
                #expect(pread(descriptor, buffer.baseAddress, buffer.count, 4096) == buffer.count)
                #expect(buffer.indices.allSatisfy { buffer[$0] == UInt8(truncatingIfNeeded: $0 / 4096) })
            }
        }

        @Test func `truncating reaches both ways`() throws {
            try withMount { mount throws in
                try write("0123456789", to: mount.path("file"))
                #expect(truncate(mount.path("file"), 4) == 0)
                #expect(truncate(mount.path("file"), 6) == 0)
                #expect(try read(mount.path("file")) == "0123\0\0")
                close(open(mount.path("file"), O_WRONLY | O_TRUNC))
                #expect(try status(mount.path("file")).st_size == 0)
            }
        }
    }
}

/// renameat2(2)'s errno, or 0.
private func rename2(_ old: String, _ new: String, _ flags: UInt32) -> Int32 {
    failure { Int(renameat2(AT_FDCWD, old, AT_FDCWD, new, flags)) }
}

extension Foundation.FileHandle {
    fileprivate convenience init(path: String) throws {
        try self.init(forReadingFrom: URL(fileURLWithPath: path))
    }

    fileprivate func piece(_ offset: UInt64, _ count: Int) throws -> Data {
        try seek(toOffset: offset)
        return try read(upToCount: count) ?? Data()
    }
}
