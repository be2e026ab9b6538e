import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// The reader in Tests/Reader, which follows the format's specification and shares no code with the program, finds in a
/// vault the same files as a mount.
@Suite("Format: a reader that shares no code", .serialized, .waiting) struct ReaderTests {
    private static let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent()
        .deletingLastPathComponent().path

    // MARK: Reading and comparing

    private func read(_ place: Place, _ words: [String], password: String = "one") throws -> Ended {
        try place.run(
            ["/usr/bin/python3", "-B", Self.tests + "/Reader/read_vault.py"] + words, password + "\n")
    }

    /// The output of find(1) and sha256sum(1) for a directory that has `moments` and `albums`, as the reader lists it.
    private func manifest(_ place: Place, _ directory: String) throws -> String {
        try place.shell(manifestLine(directory))
    }

    private func manifestLine(_ directory: String) -> String {
        """
        cd '\(directory)'; find moments albums \\( -type f -printf '%p\\t%y\\t%m\\t%n\\t%s\\t%T@\\t' \
        -exec sha256sum {} \\; -o -type d -printf '%p\\t%y\\t%m\\t%n\\t-\\t%T@\\t-\\n' \
        -o -type l -printf '%p\\t%y\\t%m\\t%n\\t%s\\t%T@\\t%l\\n' \
        -o -printf '%p\\t%y\\t%m\\t%n\\t%s\\t%T@\\t-\\n' \\) |
        sed -E 's/(\\.[0-9]{9})0\\t/\\1\\t/; s/\\t([0-9a-f]{64})  .*$/\\t\\1/' | LC_ALL=C sort
        """
    }

    /// Compares the reader's listing and files with those of a mount of the vault as it is now.
    ///
    /// - Parameters:
    ///   - keyFile: a path, where the vault needs one.
    ///   - extracting: false where the host has no room for the attributes.
    private func compare(
        _ place: Place, keyFile: String? = nil, extracting: Bool = true,
        location: SourceLocation = #_sourceLocation
    ) throws {
        let key = keyFile.map { ["--key-file", $0] } ?? []
        let listed = try read(place, ["list", "V"] + key)
        #expect(listed.status == 0, "\(listed.errors)", sourceLocation: location)
        #expect(listed.errors.isEmpty, sourceLocation: location)
        try place.mount(options: "ro" + (keyFile.map { ",keyfile=" + $0 } ?? ""), location: location)
        let shown = try manifest(place, "D")
        #expect(listed.output == shown, sourceLocation: location)
        if extracting {
            let extracted = try read(place, ["extract", "V", "X"] + key)
            #expect(extracted.status == 0, "\(extracted.errors)", sourceLocation: location)
            #expect(try manifest(place, "X") == shown, sourceLocation: location)
            try place.shell("chmod -R u+rwx X; rm -rf X")
        }
        try place.unmount(location: location)
    }

    /// Photos by day and album, a copy, hard and symbolic links, a pipe, holes, rewritten bytes, modes, times,
    /// attributes, and photos that were removed.
    private func fill(_ place: Place) throws {
        for index in 1...4 {
            let photo = Photo(taken: "2019:0\(index):04 05:06:07", seed: UInt8(index))
            try place.source("p\(index).jpg", photo.bytes)
        }
        try place.source("large", noise(700_000, seed: 5))
        try place.shell(
            """
            mkdir -p D/albums/Trip/Deep; cp -a source/*.jpg D/albums/Trip; cp source/large D/albums/large
            cd D/albums; ln Trip/p1.jpg Trip/Deep/again.jpg; cp Trip/p2.jpg copy.jpg; ln -s ../nowhere link
            mkfifo pipe; : > empty; truncate -s 50000000 sparse; printf end >> sparse
            dd if=/dev/zero of=large bs=1000 count=33 seek=77 conv=notrunc status=none
            chmod 400 empty; touch -d '1960-01-02 03:04:05.25' empty; setfattr -n user.one -v two Trip/p1.jpg
            rm Trip/p4.jpg ../moments/2019-03-04/p3.jpg
            """)
    }

    @Test func `the reader comes to the verdicts of the vectors`() throws {
        let place = try Place()
        let ended = try place.run(["/usr/bin/python3", "-B", Self.tests + "/Reader/check_vectors.py"])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }

    // MARK: Vaults

    @Test(arguments: GoldenTests.kept) func `the reader reads every golden vault`(name: String) throws {
        let place = try Place()
        try place.shell("rm -rf V; mkdir V; tar -C V -xSzf '\(Self.tests)/Golden/\(name).tar.gz'")
        try GoldenArchive(place.vault).unpack()
        try compare(place)
    }

    @Test(arguments: [1, 2, 3]) func `the reader reads what was just written`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        let empty = try read(place, ["list", "V"])
        #expect(empty.status == 0 && empty.output.isEmpty, "\(empty.errors)")
        try place.mount()
        try fill(place)
        try place.unmount()
        try compare(place)

        let extracted = try read(place, ["extract", "V", "X"])
        #expect(extracted.status == 0, "\(extracted.errors)")
        #expect(try status(place.root + "/X/albums/sparse").st_blocks < 2048)
        try place.shell("getfattr -n user.one --only-values X/albums/Trip/p1.jpg | grep -qx two")

        let wrong = try read(place, ["list", "V"], password: "two")
        #expect(wrong.status == 2 && wrong.output.isEmpty)
        #expect(wrong.errors.split(separator: "\n").count == 1)
    }

    @Test(arguments: [2, 3]) func `the reader reads what lies in rows that grow made`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        #expect(try place.run([obscura, "grow", "V", "64M"]).status == 0)
        try place.mount()
        try fill(place)
        // More than there was room for before.
        try place.shell("head -c 52000000 /dev/urandom > D/albums/much")
        try place.unmount()
        try compare(place)

        // As an interrupted grow leaves it.
        let before = try read(place, ["list", "V"])
        try place.shell("head -c 5000000 /dev/urandom >> V/spaces")
        let after = try read(place, ["list", "V"])
        #expect(after.status == 0 && after.output == before.output, "\(after.errors)")
    }

    @Test func `the reader takes a key file`() throws {
        let place = try Place(spaces: 2)
        let keyFile = try place.source("key", noise(3000, seed: 3))
        let changed = try place.run(
            [obscura, "passwd", "V", "--password-stdin", "--new-key-file=" + keyFile], "one\none\n")
        #expect(changed.status == 0, "\(changed.errors)")
        try place.mount(options: "keyfile=" + keyFile)
        try fill(place)
        try place.unmount()
        #expect(try read(place, ["list", "V"]).status == 2)
        try compare(place, keyFile: keyFile)
    }

    /// Changes after the last durable root are only in a soft one, and in the deltas since.
    @Test(arguments: [1, 3]) func `the reader goes on from soft roots after a kill`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        try place.mount()
        try fill(place)
        try place.shell(
            """
            sync D/albums/large; cd D/albums
            for i in 1 2 3 4 5 6; do head -c ${i}0000 /dev/urandom > late$i; rm -f late$((i - 2)); sleep 0.1; done
            """)
        #expect(try eventually { try read(place, ["list", "V"]).output.contains("albums/late6\t") })
        kill(try #require(place.daemon), SIGKILL)
        #expect(eventually { place.daemon == nil })
        while umount2(place.mountPoint, Int32(MNT_DETACH)) == 0 {}
        #expect(try read(place, ["list", "V"]).output.contains("albums/late6\t"))
        try compare(place)

        // The state goes on from there.
        try place.mount()
        try place.shell("cp source/large D/albums/more; rm D/albums/late5")
        try place.unmount()
        try compare(place)
    }

    /// The pages of such a root were never synced, and may be lost.
    @Test(arguments: [1, 3]) func `the reader passes over soft roots of another boot`(spaces: Int) throws {
        let place = try Place(spaces: spaces)
        try place.mount()
        try fill(place)
        try place.unmount()
        // Soft roots come every few hundredths of a second, durable ones every few seconds: one may be the newest.
        var rounds = 0
        var (here, there) = ("", "")
        repeat {
            rounds += 1
            try place.mount()
            try place.shell(
                """
                cd D/albums; cp ../../source/large saved\(rounds); sync saved\(rounds)
                for i in 1 2 3 4 5 6; do head -c ${i}0000 /dev/urandom >late\(rounds)-$i; sleep 0.1; done
                """)
            kill(try #require(place.daemon), SIGKILL)
            #expect(eventually { place.daemon == nil })
            while umount2(place.mountPoint, Int32(MNT_DETACH)) == 0 {}
            let listed = try read(place, ["list", "V"])
            #expect(listed.status == 0 && listed.errors.isEmpty, "\(listed.errors)")
            here = listed.output
            there = try compareInAnotherBoot(place)
            #expect(there.contains("albums/saved\(rounds)\t"))
        } while here == there && rounds < 20
        // The durable root that counts instead is the one that `sync` made, or came after it.
        #expect(here != there)

        // In its own boot it counts all the same.
        try compare(place)
    }

    /// Compares the reader's listing with a mount's, under another boot id than the kernel's. To the reader
    /// and to a check all must be whole. Returns the listing.
    private func compareInAnotherBoot(_ place: Place) throws -> String {
        let unshare = "unshare \(geteuid() == 0 ? "" : "--user --map-root-user") --mount --propagation slave"
        try place.shell(
            """
            echo 01234567-89ab-4cde-8f01-23456789abcd >boot_id
            \(unshare) /bin/bash -e <<'END'
            mount --bind boot_id /proc/sys/kernel/random/boot_id
            echo one | /usr/bin/python3 -B '\(Self.tests)/Reader/read_vault.py' list V >listed 2>errors
            echo one | '\(obscura)' check V --password-stdin
            trap 'umount -l D 2>/dev/null || true' EXIT
            echo one | '\(obscura)' mount V D -o ro --password-stdin
            (\(manifestLine("D"))) >shown
            '\(obscura)' unmount D
            END
            """)
        let (listed, shown, errors) = (
            try place.shell("cat listed"), try place.shell("cat shown"), try place.shell("cat errors")
        )
        try #require(listed == shown)
        #expect(errors.isEmpty, "\(errors)")
        return listed
    }

    /// A map of two levels holds 12,544 pages; these attributes alone take 15 pages each.
    @Test func `the reader follows maps of three levels`() throws {
        let place = try Place()
        try place.mount()
        try place.shell(
            """
            value=$(head -c 60000 /dev/zero | tr '\\0' x); cd D/albums
            for i in $(seq 900); do echo $i > f$i; setfattr -n user.large -v "$value" f$i; done
            """)
        try place.unmount()
        try compare(place, extracting: false)
    }

    @Test func `the reader says what is damaged, and leaves the rest`() throws {
        let place = try Place()
        try place.mount()
        try fill(place)
        try place.unmount()
        // In the middle of the largest file's extents, behind the pages' two segments.
        try place.shell(
            """
            dd if=/dev/urandom of=V/segments/000002.seg bs=1000 seek=300 count=8 conv=notrunc status=none
            """)
        #expect(try place.run([obscura, "check", "V", "--password-stdin"], "one\n").status == 6)
        let listed = try read(place, ["list", "V"])
        #expect(listed.status == 1)
        #expect(listed.errors.contains("albums/large"))
        #expect(listed.output.contains("\tdamaged\n"))
        let extracted = try read(place, ["extract", "V", "X"])
        #expect(extracted.status == 1)
        #expect(try status(place.root + "/X/albums/large").st_size == 700_000)
    }
}
