import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Spaces and passwords, from outside.
@Suite("Passwords: spaces and their passwords, through mounts", .serialized, .waiting)
struct PasswordMountTests {
    @Test func `two passwords give two unrelated trees, a third gives exit 4`() throws {
        let place = try Place(spaces: 2)
        #expect(try place.run([obscura, "space", "add", "V", "--password-stdin"], "two\none\n").status == 0)
        for password in ["one", "two"] {
            try place.mount(password: password)
            #expect(try place.files(place.mountPoint).isEmpty)
            try place.shell("echo \(password) > D/albums/\(password)")
            try place.unmount()
        }
        for password in ["one", "two"] {
            try place.mount(password: password)
            #expect(try place.files(place.mountPoint) == ["albums/" + password])
            try place.unmount()
        }
        let third = try place.run([obscura, "mount", "V", "D", "--password-stdin"], "three\n")
        #expect(third.status == 4)
        #expect(third.errors.split(separator: "\n").count == 1)
        // Destroying one leaves the other.
        let removal = [obscura, "space", "remove", "V", "--yes", "--password-stdin"]
        #expect(try place.run(removal, "two\n").status == 0)
        #expect(try place.run([obscura, "mount", "V", "D", "--password-stdin"], "two\n").status == 4)
        try place.mount()
        #expect(try place.files(place.mountPoint) == ["albums/one"])
    }

    @Test(arguments: [
        "--password-fd 7 7<pw", "--password-file pw", "--password-file=pw", "--password-command 'cat pw'",
        "--password-stdin <pw", "-o passfile=pw", "-o 'askpass=cat pw'",
    ])
    func `every password source opens the space`(source: String) throws {
        let place = try Place()
        try place.shell("printf 'one\\n' > pw; chmod 600 pw")
        // The helper of mount(8) has its own words for it.
        let isHelper = source.hasPrefix("-o")
        try place.shell("ln -s '\(obscura)' mount.obscura")
        let command =
            isHelper ? "./mount.obscura \(place.vault) \(place.mountPoint)" : "'\(obscura)' mount V D"
        try place.shell("\(command) \(source)")
        #expect(exists(place.moments))
        try place.unmount()
    }

    @Test func `one space of a vault is open at a time, with any password`() throws {
        let place = try Place(spaces: 2)
        #expect(try place.run([obscura, "space", "add", "V", "--password-stdin"], "two\none\n").status == 0)
        try place.shell("mkdir E")
        for options in ["rw", "ro"] {
            try place.mount(options: options)
            var told: Set<String> = []
            for password in ["one", "two", "wrong"] {
                for other in ["rw", "ro"] {
                    let words = [obscura, "mount", "V", "E", "-o", other, "--password-stdin"]
                    let ended = try place.run(words, password + "\n")
                    #expect(ended.status == 5)
                    told.insert(ended.errors)
                }
                for command in [["passwd", "V"], ["space", "add", "V"], ["space", "remove", "V", "--yes"]] {
                    let words = [obscura] + command + ["--password-stdin"]
                    let ended = try place.run(
                        words, password + "\n" + (command[0] == "passwd" ? "new\n" : ""))
                    #expect(ended.status == 5)
                    told.insert(ended.errors)
                }
            }
            let directory = place.mountPoint
            #expect(told == ["obscura: V: mounted at \(directory): obscura unmount \(directory)\n"])
            // These need no password, and no unmounting.
            #expect(try place.run([obscura, "info", "V"]).status == 0)
            #expect(try place.run([obscura, "header", "export", "V", "H-\(options)"]).status == 0)
            #expect(try place.run([obscura, "grow", "V", options == "rw" ? "64M" : "80M"]).status == 0)
            try place.unmount()
        }
    }

    @Test func `a key file goes with the password, also for mount(8)`() throws {
        let place = try Place()
        try place.shell(
            "printf 'one\\n' > pw; chmod 600 pw; echo any > key; ln -s '\(obscura)' mount.obscura")
        let changed = try place.run(
            [obscura, "passwd", "V", "--password-stdin", "--new-key-file=key"], "one\none\n")
        #expect(changed.status == 0, "\(changed.errors)")
        #expect(try place.run([obscura, "mount", "V", "D", "--password-stdin"], "one\n").status == 4)
        for command in [
            "'\(obscura)' mount V D --password-file=pw --key-file=key",
            "'\(obscura)' mount V D --password-file=pw -o keyfile=key",
            "./mount.obscura \(place.vault) \(place.mountPoint) -o passfile=pw,keyfile=key",
        ] {
            try place.shell(command)
            #expect(exists(place.moments))
            let daemon = try #require(place.daemon)
            let words = String(decoding: try place.bytes("/proc/\(daemon)/cmdline"), as: UTF8.self)
            #expect(!words.contains("key"))
            try place.unmount()
        }
    }

    /// On a small disk of its own, which other files fill: at any moment, as the kill comes.
    @Test func `a grow that is killed on a disk that is then full leaves spaces equal`() throws {
        let place = try Place(spaces: 2, size: "16M")
        let disk = place.root + "/disk"
        try place.shell("mkdir disk")
        try #require(Glibc.mount("none", disk, "tmpfs", 0, "size=150M") == 0)
        defer { umount2(disk, Int32(MNT_DETACH)) }
        try place.shell("mv V disk/V; ln -s disk/V V")
        let row = 2 * 4 << 20
        func count() throws -> Int {
            let size = try #require(Int(try place.shell("stat -c %s V/spaces").dropLast()))
            #expect(size % row == 0)
            return size / row
        }
        for segment in 5...9 {
            try place.shell(
                """
                '\(obscura)' grow V 64M >/dev/null 2>&1 &
                while [ $(stat -c %s V/spaces) -le \((segment - 1) * row) ] && kill -0 $! 2>/dev/null; do :; done
                kill -9 $! 2>/dev/null || :; wait $! || :; head -c 200M /dev/zero > disk/others 2>/dev/null || :
                """)
            try place.mount()
            try place.unmount()
            #expect(try count() >= segment - 1)
            try place.shell("rm disk/others")
        }
        #expect(try place.run([obscura, "grow", "V", "128M"]).status == 7)
        #expect(try place.run([obscura, "grow", "V", "64M"]).status == 0)
        #expect(try count() == 16)
        try place.mount()
    }

    @Test func `a password file that others may read is refused`() throws {
        let place = try Place()
        for mode in ["640", "604"] {
            try place.shell("printf 'one\\n' > pw; chmod \(mode) pw")
            let ended = try place.run([obscura, "mount", "V", "D", "--password-file", "pw"])
            #expect(ended.status == 1 && ended.errors.contains("chmod 600"))
        }
    }

    @Test func `grow beyond the largest file that may be written changes nothing`() throws {
        let place = try Place(spaces: 2)
        let before = try place.shell("stat -c %s V/spaces")
        let ended = try place.run(["bash", "-c", "ulimit -f 150000; exec '\(obscura)' grow V 1G"])
        #expect(ended.status == 7 && ended.errors.contains("no file of that size"), "\(ended.errors)")
        #expect(try place.shell("stat -c %s V/spaces; ls V") == before + "obscura.vault\nspaces\n")
    }

    @Test func `a vault that is mounted grows, and the room is there at once`() throws {
        let place = try Place(spaces: 2)
        try place.mount()
        func capacity() -> UInt64 {
            var found = statvfs()
            return statvfs(place.mountPoint, &found) == 0
                ? UInt64(found.f_blocks) * UInt64(found.f_frsize) : 0
        }
        let before = capacity()
        #expect(try place.run([obscura, "grow", "V", "96M"]).status == 0)
        #expect(eventually { capacity() >= before + 32 << 20 })
        try place.shell("head -c 40000000 /dev/urandom > big; cp big D/albums; cmp big D/albums/big")
    }

    @Test func `a damaged first copy of the header is repaired from the second, never under ro`() throws {
        let place = try Place()
        let header = place.vault + "/obscura.vault"
        try place.shell("cp -p V/obscura.vault whole")
        try place.shell("head -c 4096 /dev/zero | dd of=V/obscura.vault conv=notrunc status=none")
        let damaged = try place.bytes(header)
        try place.mount(options: "ro")
        try place.unmount()
        #expect(try place.bytes(header) == damaged)
        try place.mount()
        try place.unmount()
        #expect(try place.bytes(header) == place.bytes(place.root + "/whole"))
        try place.shell("dd if=/dev/zero of=V/obscura.vault bs=128K count=1 conv=notrunc status=none")
        #expect(try place.run([obscura, "mount", "V", "D", "--password-stdin"], "wrong\n").status == 6)
    }

    @Test func `a mount that is used is not unmounted`() throws {
        let place = try Place()
        try place.mount()
        let descriptor = open(place.albums, O_RDONLY)
        #expect(descriptor >= 0)
        #expect(try place.run([obscura, "unmount", "D"]).status == 1)
        #expect(try place.run([obscura, "mount", "V", "D", "--password-stdin"], "one\n").status == 5)
        #expect(exists(place.moments))
        close(descriptor)
        try place.unmount()
        #expect(place.daemon == nil)
    }
}
