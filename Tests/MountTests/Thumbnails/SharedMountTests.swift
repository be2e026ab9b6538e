import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A mount of root's that other users may enter: `-o allow_other`.
@Suite("Thumbnails: other users", .serialized, .waiting) struct SharedMountTests {
    private static let (owner, stranger, group) = (54_321, 54_322, 54_323)

    /// Runs a line of the shell as a user.
    private func run(_ place: Place, as user: Int, groups: [Int] = [], _ line: String) throws -> Ended {
        let list =
            groups.isEmpty ? "--clear-groups" : "--groups=\(groups.map(String.init).joined(separator: ","))"
        return try place.run(
            ["setpriv", "--reuid=\(user)", "--regid=\(user)", list, "/bin/bash", "-ec", line])
    }

    private func makePlace() throws -> Place {
        let place = try Place()
        for (number, name) in ["open", "closed", "group", "secret"].enumerated() {
            let taken = "2024:0\(number + 1):01 12:00:00"
            try place.source(
                "\(name).jpg", Photo(width: 300, height: 200, taken: taken, seed: UInt8(number + 1)).bytes)
        }
        try place.mount(options: "allow_other")
        try place.shell(
            """
            chmod 755 . D/moments; cd D/albums; mkdir Trip private
            cp ../../source/{open,closed,group}.jpg Trip; cp ../../source/secret.jpg private
            chown -R \(Self.owner):\(Self.group) Trip private
            chmod 755 Trip; chmod 644 Trip/open.jpg; chmod 600 Trip/closed.jpg; chmod 640 Trip/group.jpg
            chmod 600 private/secret.jpg; chmod 700 private
            """)
        return place
    }

    @Test func `thumbnails show nobody more than the photos do`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        #expect(
            try place.shell(
                """
                cd D; stat -c %u:%g:%a .thumbs/albums/private .thumbs/albums/private/secret.jpg \
                    .thumbs/512/albums/Trip/group.jpg albums/Trip/.thumbs/open.jpg albums/Trip/.thumbs/sheet.jpg
                """)
                == ["500", "400", "440", "444", "444"].map { "\(Self.owner):\(Self.group):\($0)\n" }.joined())
        // Root has read all of them: no other user sees the kernel's copies.
        try place.shell(
            "cd D; cat .thumbs/albums/private/* .thumbs/512/albums/*/*.jpg >/dev/null 2>&1 || true")
        for line in [
            "ls D/.thumbs/albums/private", "stat D/.thumbs/albums/private/secret.jpg",
            "cat D/.thumbs/512/albums/private/secret.jpg", "cat D/.thumbs/moments/2024-04-01/secret.jpg",
            "cat D/moments/2024-04-01/.thumbs/1024x768/secret.jpg", "ls D/.thumbs/fast/albums/private",
            "cat D/albums/Trip/.thumbs/closed.jpg", "cat D/albums/Trip/.thumbs/group.jpg",
            "cat D/moments/2024-02-01/.thumbs/sheet.jpg",
            "cat D/albums/Trip/.sh_thumbnails/large/$(printf ./closed.jpg | md5sum | cut -c1-32).png",
        ] {
            #expect(try run(place, as: Self.stranger, line).status != 0, "\(line)")
            #expect(try run(place, as: Self.owner, line).status == 0, "\(line)")
        }
        for line in [
            "cat D/albums/Trip/.thumbs/open.jpg", "ls D/.thumbs/albums/Trip",
            "cat D/moments/2024-01-01/.thumbs/stack.jpg",
        ] {
            #expect(try run(place, as: Self.stranger, line).status == 0, "\(line)")
        }
        let member = try run(
            place, as: Self.stranger, groups: [Self.group], "cat D/albums/Trip/.thumbs/group.jpg")
        #expect(member.status == 0)
    }

    @Test func `a cover leaves out what its reader may not read`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        let digest = "cat D/albums/Trip/.thumbs/sheet.jpg | sha256sum"
        let all = try place.shell(digest)
        #expect(try run(place, as: Self.owner, digest).output == all)
        let others = try run(place, as: Self.stranger, digest).output
        let member = try run(place, as: Self.stranger, groups: [Self.group], digest).output
        #expect(Set([all, others, member]).count == 3)
        // All users see them once the others are gone.
        try place.shell("rm D/albums/Trip/closed.jpg")
        #expect(try place.shell(digest) == member)
        try place.shell("rm D/albums/Trip/group.jpg")
        #expect(try place.shell(digest) == others)
        #expect(try run(place, as: Self.stranger, digest).output == others)
    }

    @Test func `pictures are decoded without capabilities`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        try place.shell("cat D/albums/Trip/.thumbs/open.jpg >/dev/null")
        let daemon = try #require(place.daemon)
        let sets = try place.shell(
            "grep -h ^Cap $(pgrep -P \(daemon) -x obscura-worker | sed 's|.*|/proc/&/status|')")
        let lines = sets.split(separator: "\n")
        #expect(lines.count >= 5 && lines.allSatisfy { $0.hasSuffix("\t0000000000000000") }, "\(sets)")
    }
}
