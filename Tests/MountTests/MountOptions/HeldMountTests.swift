import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Mounts that are bound at a second place too, or that programs still use.
@Suite("Commands: mounts that are held", .serialized, .waiting) struct HeldMountTests {
    private func run(_ place: Place, _ words: String..., input: String = "one\n") throws -> Ended {
        try place.run([obscura] + words, input)
    }

    /// A mount whose albums are bound at B.
    private func makePlace() throws -> Place {
        let place = try Place()
        try place.mount()
        try place.shell("mkdir B; mount --bind D/albums B; echo text >D/albums/note")
        return place
    }

    private func end(_ place: Place) { _ = umount2(place.root + "/B", Int32(MNT_DETACH)) }

    @Test func `a bind mount is named, and cut off if asked`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        defer { end(place) }
        let refused = try run(place, "unmount", "D")
        let held = "held by the mount at \(place.root)/B"
        #expect(refused.status == 1, "\(refused.errors)")
        // A namespace of another test may have a copy of B for a moment, and is named too.
        #expect(refused.errors.contains(held), "\(refused.errors)")
        #expect(refused.errors.hasSuffix("obscura unmount --end D\n"))
        #expect(try run(place, "status", "D").output.contains("Also held by    the mount at \(place.root)/B"))
        #expect(try place.shell("cat D/albums/note B/note") == "text\ntext\n")

        let ended = try run(place, "unmount", "--end", "D")
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(ended.output.hasPrefix("D: unmounted; it was \(held)"), "\(ended.output)")
        #expect(place.daemon == nil)
        #expect(try place.shell("findmnt -n B || true").isEmpty)
        try place.mount()
        #expect(try place.shell("cat D/albums/note") == "text\n")
        try place.unmount()
    }

    @Test func `the mount at a second place can go first`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        defer { end(place) }
        let ended = try run(place, "unmount", "B")
        #expect(ended.status == 0)
        #expect(ended.errors.contains("the mount at \(place.mountPoint)"), "\(ended.errors)")
        try place.unmount()
        #expect(place.daemon == nil)
    }

    @Test func `a bind mount is named when the mount is gone from its directory`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        defer { end(place) }
        try place.shell("patiently umount D")
        let held = "unmounted from \(place.mountPoint), but held by the mount at \(place.root)/B"
        let refused = try run(place, "mount", "V", "D", "--password-stdin")
        // A program of another test that is in a namespace of its own may hold it as well.
        #expect(
            refused.status == 5 && refused.errors.contains("V: the vault is in use: it is \(held)")
                && refused.errors.hasSuffix(": end that first, or cut it off with obscura unmount --end V\n"),
            "\(refused.errors)")
        #expect(try run(place, "import", "V", "B", "--password-stdin").status == 5)
        #expect(try run(place, "status", "V").output.contains("Mounted at      nowhere: \(held)"))
        // Another vault is mounted there meanwhile.
        let other = try Place()
        try other.shell("'\(obscura)' mount V '\(place.mountPoint)' --password-stdin <<<one")
        #expect(try run(place, "status", "V").output.contains(held))
        #expect(try run(place, "unmount", "D").status == 0)
        let named = try run(place, "unmount", "D")
        #expect(named.status == 1 && named.errors.contains(held), "\(named.errors)")
        try place.shell("echo more >B/more")
        let ended = try run(place, "unmount", "--end", "V")
        #expect(ended.status == 0, "\(ended.errors)")
        try place.mount()
        #expect(try place.shell("cat D/albums/note D/albums/more") == "text\nmore\n")
        // The last one that is left ends it like any other.
        try place.shell("mount --bind D/albums B; patiently umount D; '\(obscura)' unmount B")
        #expect(place.daemon == nil)
    }

    @Test func `a program in a mount that is gone is named`() throws {
        guard geteuid() == 0 else { return }
        let place = try Place()
        try place.mount()
        try place.shell(
            """
            echo text >D/albums/note
            exec 3<D/albums/note; umount -l D
            '\(obscura)' unmount D 2>errors && exit 1 || test $? = 1
            grep -qF "held by bash (process $$)" errors
            '\(obscura)' unmount --end V
            ! cat <&3 2>/dev/null
            """)
        #expect(place.daemon == nil)
    }

    @Test func `copies that go with the mount do not hold it`() throws {
        guard geteuid() == 0 else { return }
        let place = try Place()
        try place.shell(
            """
            mkdir S; mount --bind S S; mount --make-private S; mount --make-shared S; mkdir S/D
            trap 'umount -l S' EXIT
            for kind in unchanged slave; do
                '\(obscura)' mount V S/D --password-stdin <<<one
                mkfifo ready
                unshare -m --propagation $kind sh -c 'findmnt S/D >/dev/null; echo >ready; exec sleep 600' &
                cat ready; rm ready
                '\(obscura)' unmount S/D
                kill $!
            done
            """)
    }
}
