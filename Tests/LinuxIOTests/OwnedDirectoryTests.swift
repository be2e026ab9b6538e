import CShims
import Foundation
import Glibc
import LinuxIO
import Synchronization
import Testing

/// Directories outside the vault: no link, no mount and no name leads out of them, and only the file that was meant is
/// removed or replaced. With openat2(2) and without.
@Suite("System calls: directories of one user") struct OwnedDirectoryTests {
    private let room = Room()

    /// A directory of its own, removed when it is let go.
    private final class Room {
        let path = "/tmp/obscura-owned-\(UUID().uuidString)"

        init() { make("home") }
        deinit { try? FileManager.default.removeItem(atPath: path) }

        func make(_ directory: String) {
            try? FileManager.default.createDirectory(
                atPath: path + "/" + directory, withIntermediateDirectories: true)
        }

        func put(_ name: String, _ text: String) {
            try? Data(text.utf8).write(to: URL(fileURLWithPath: path + "/" + name))
        }

        func text(_ name: String) -> String? {
            (try? Data(contentsOf: URL(fileURLWithPath: path + "/" + name)))
                .map { String(decoding: $0, as: UTF8.self) }
        }

        func names(_ directory: String) -> [String] {
            ((try? FileManager.default.contentsOfDirectory(atPath: path + "/" + directory)) ?? []).sorted()
        }
    }

    private func open(_ usesBeneath: Bool, of owner: uid_t? = geteuid()) throws -> OwnedDirectory {
        try OwnedDirectory(bytes(room.path + "/home"), of: owner, usesBeneath: usesBeneath)
    }

    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    private func error(_ body: () throws -> Void) -> Int32? {
        do { try body() } catch { return (error as? Errno)?.rawValue ?? -1 }
        return nil
    }

    @Test(arguments: [true, false]) func `names that lead out are refused`(usesBeneath: Bool) throws {
        let home = try open(usesBeneath)
        room.make("home/a/b")
        room.put("home/a/f", "f")
        for name in ["", ".", "..", "a/b", "../home", "/tmp", "a\0", String(repeating: "n", count: 256)] {
            let name = bytes(name)
            #expect(error { _ = try home.directory(name) } == EINVAL)
            #expect(error { _ = try home.file(name) } == EINVAL)
            #expect(error { _ = try home.status(name) } == EINVAL)
            #expect(error { _ = try home.linkTarget(name) } == EINVAL)
            #expect(error { _ = try home.makeFile(name, mode: 0o600) } == EINVAL)
            #expect(error { _ = try home.makeDirectory(name, mode: 0o700) } == EINVAL)
            #expect(error { try home.move(name, to: home, as: bytes("x")) } == EINVAL)
            #expect(error { try home.move(bytes("a"), to: home, as: name) } == EINVAL)
            #expect(error { try home.removeEmptyDirectory(name) } == EINVAL)
            #expect(!home.removeAll(name) && !home.remove(name, ifUnchangedSince: home.status))
            #expect(!home.remove(name, ifSameAs: home.status))
            #expect(!home.removeDirectory(name, ifSameAs: home.status))
        }
        #expect(try home.directory(below: [bytes("a"), bytes("b")]).names().isEmpty)
        #expect(try home.directory(bytes("a")).contents(bytes("f"), countMax: 1)?.bytes == bytes("f"))
        #expect(try home.directory(bytes("a")).contents(bytes("f"), countMax: 0) == nil)
        #expect(throws: Errno.self) { try OwnedDirectory(bytes("home"), of: nil) }
    }

    @Test(arguments: [true, false]) func `links are not followed`(usesBeneath: Bool) throws {
        room.make("home/real")
        room.put("home/real/f", "f")
        for (name, target) in [
            ("up", ".."), ("near", "real"), ("far", room.path + "/home/real"), ("magic", "/proc/self/cwd"),
        ] {
            symlink(target, room.path + "/home/" + name)
        }
        symlink("real/f", room.path + "/home/link")
        let home = try open(usesBeneath)
        for name in ["up", "near", "far", "magic", "link"] {
            #expect(throws: Errno.self, "\(name)") { try home.directory(bytes(name)) }
            #expect(throws: Errno.self, "\(name)") { try home.file(bytes(name)) }
            #expect(home.contents(bytes(name), countMax: 10) == nil)
        }
        #expect(try home.linkTarget(bytes("link")) == bytes("real/f"))
        // A link itself is what a name is of.
        #expect(home.remove(bytes("link"), ifUnchangedSince: try home.status(bytes("link"))))
        #expect(room.text("home/real/f") == "f")
    }

    @Test(arguments: [true, false]) func `no other mount is entered`(usesBeneath: Bool) throws {
        let root = try OwnedDirectory(bytes("/"), of: nil, usesBeneath: usesBeneath)
        #expect(error { _ = try root.directory(bytes("proc")) } == EXDEV)
        #expect(error { _ = try root.directory(bytes("dev")) } == EXDEV)
        #expect(try root.directory(bytes("usr")).names().contains(bytes("bin")))
    }

    @Test(arguments: [true, false]) func `another user's files count as missing`(usesBeneath: Bool) throws {
        room.put("home/f", "f")
        #expect(error { _ = try open(usesBeneath, of: geteuid() + 1) } == EACCES)
        let root = try OwnedDirectory(
            bytes(room.path), of: geteuid() + 1, isOwned: false, usesBeneath: usesBeneath)
        #expect(error { _ = try root.directory(bytes("home")) } == EACCES)
        let home = try root.directory(bytes("home"), isOwned: false)
        #expect(error { _ = try home.file(bytes("f")) } != nil)
    }

    @Test func `a FIFO, a device or a directory is no file`() throws {
        mkfifo(room.path + "/home/fifo", 0o600)
        room.make("home/d")
        let home = try open(true)
        #expect(error { _ = try home.file(bytes("fifo")) } == EINVAL)
        #expect(error { _ = try home.file(bytes("d")) } == EINVAL)
        let devices = try OwnedDirectory(bytes("/dev"), of: nil)
        #expect(error { _ = try devices.file(bytes("null")) } == EINVAL)
    }

    @Test func `only the file that was meant is removed`() throws {
        let home = try open(true)
        room.put("home/f", "old")
        let old = try home.status(bytes("f"))
        room.put("home/g", "new")
        rename(room.path + "/home/g", room.path + "/home/f")
        #expect(!home.remove(bytes("f"), ifUnchangedSince: old) && room.text("home/f") == "new")
        let new = try home.status(bytes("f"))
        room.put("home/h", "")
        #expect(home.remove(bytes("f"), ifUnchangedSince: new))
        #expect(room.names("home") == ["h"])
        room.make("home/d/e")
        let directory = try home.status(bytes("d"))
        #expect(!home.removeDirectory(bytes("d"), ifSameAs: directory))
        #expect(try home.directory(bytes("d")).removeDirectory(bytes("e"), ifSameAs: directory) == false)
        #expect(home.removeAll(bytes("d")) && room.names("home") == ["h"])
    }

    @Test func `a file is replaced unless another program did so`() throws {
        let home = try open(true)
        room.put("home/f", "one")
        chmod(room.path + "/home/f", 0o640)
        let one = try home.status(bytes("f"))
        home.replace(bytes("f"), ifUnchangedSince: one, with: bytes("two"))
        #expect(room.text("home/f") == "two")
        #expect(try home.status(bytes("f")).st_mode & 0o777 == 0o640)
        home.replace(bytes("f"), ifUnchangedSince: one, with: bytes("three"))
        #expect(room.text("home/f") == "two" && room.names("home") == ["f"])
    }

    /// Another process exchanges two files all the time.
    @Test func `in a race nothing but the file that was meant goes`() throws {
        let home = try open(true)
        room.make("else")
        let isOver = Atomic<Bool>(false)
        let path = room.path
        let racer = Thread {
            while !isOver.load(ordering: .relaxed) {
                _ = obscura_move(AT_FDCWD, path + "/home/f", AT_FDCWD, path + "/else/f", 1)
            }
            isOver.store(false, ordering: .releasing)
        }
        room.put("else/f", "victim")
        room.put("home/f", "trace")
        racer.start()
        for round in 0..<300 {
            if room.text("home/f") == nil { room.put("home/f", "trace") }
            guard let (text, status) = home.contents(bytes("f"), countMax: 10), text == bytes("trace") else {
                continue
            }
            if round % 2 == 0 {
                home.remove(bytes("f"), ifUnchangedSince: status)
            } else {
                home.replace(bytes("f"), ifUnchangedSince: status, with: bytes("trace"))
            }
        }
        isOver.store(true, ordering: .relaxed)
        while isOver.load(ordering: .acquiring) { usleep(1000) }
        let left = (room.names("home").map { "home/" + $0 } + ["else/f"]).compactMap { room.text($0) }
        #expect(left.filter { $0 == "victim" }.count == 1, "\(left) \(room.names("home"))")
    }
}
