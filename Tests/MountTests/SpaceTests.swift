import Foundation
import Glibc
import Testing

/// Spaces and passwords, from outside.
@Suite(.serialized) struct SpaceTests {
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
        #expect(try place.run([obscura, "space", "remove", "V", "--password-stdin"], "two\n").status == 0)
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

    @Test func `a password file that others may read is refused`() throws {
        let place = try Place()
        for mode in ["640", "604"] {
            try place.shell("printf 'one\\n' > pw; chmod \(mode) pw")
            let ended = try place.run([obscura, "mount", "V", "D", "--password-file", "pw"])
            #expect(ended.status == 1 && ended.errors.contains("chmod 600"))
        }
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
