import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// `check`, `status` and `speed`, from outside.
@Suite("Commands: check, status and speed", .serialized, .waiting) struct CheckCommandTests {
    /// A place with two photos, one of them in an album, and a larger file.
    private func filled(spaces: Int = 1) throws -> Place {
        let place = try Place(spaces: spaces)
        try place.source("in/a.jpg", Photo(seed: 1).bytes)
        try place.source("in/b.jpg", Photo(seed: 2).bytes)
        try place.shell("head -c 1000000 /dev/urandom > source/big")
        try place.mount()
        try place.shell("mkdir D/albums/Trip; cp source/in/*.jpg D/albums/Trip; cp source/big D/albums")
        try place.unmount()
        return place
    }

    private func check(_ place: Place, _ words: [String] = [], vault: String = "V") throws -> Ended {
        try place.run([obscura, "check", vault, "--password-stdin"] + words, "one\n")
    }

    /// The contents of the vault: names, sizes, times and bytes of all files.
    private func state(_ place: Place) throws -> String {
        try place.shell(
            "cd V; find . -printf '%p %s %T@ %m\\n' | sort; find . -type f | sort | xargs cksum")
    }

    /// When each segment was read last, by the host.
    private func readTimes(_ place: Place) throws -> String {
        try place.shell("cd V; find segments spaces -type f -printf '%p %A@\\n' 2>/dev/null | sort")
    }

    @Test(arguments: [1, 2]) func `a whole vault is left as it is`(spaces: Int) throws {
        let place = try filled(spaces: spaces)
        let before = try state(place)
        try place.shell("find V -type f -exec touch -a -d 2001-01-01 {} +")
        let readBefore = try readTimes(place)
        let ended = try check(place)
        #expect(ended.status == 0 && ended.errors == "", "\(ended.errors)")
        #expect(ended.output.hasPrefix("V: nothing is damaged: 3 files, "))
        #expect(try readTimes(place) == readBefore)
        #expect(try state(place) == before)
        #expect(try place.run([obscura, "check", "V", "--password-stdin"], "wrong\n").status == 4)
        #expect(try state(place) == before)
        // Nothing to do for a repair.
        #expect(try check(place, ["--repair"]).status == 0)
        #expect(try state(place) == before)
    }

    /// The mount's process ends a little later than umount(8).
    @Test(arguments: ["check V", "export V out --quiet", "import V source/in --quiet"])
    func `commands right after umount wait for the end of the mount`(command: String) throws {
        let place = try filled()
        for number in 0..<5 {
            try place.mount()
            try place.shell("head -c 3000000 /dev/urandom > D/albums/more\(number)")
            try place.shell(
                "patiently umount D; rm -rf out; echo one | '\(obscura)' \(command) --password-stdin")
        }
    }

    /// Of four roots the newest is lost, once each for every root.
    @Test func `a mount that shows an older state says so`() throws {
        // Those of a vault of one space end with commits that change nothing, whose loss shows nothing older.
        let place = try filled(spaces: 2)
        var told: [String] = []
        for slot in 0..<4 {
            try place.shell("rm -rf C; cp -a V C")
            for space in 0..<2 {
                for number in 0..<2 {
                    try SegmentFile("\(place.root)/C", space: space, number)
                        .write(Data("XXXXXXXX".utf8), at: UInt64(slot * 4096 + 50))
                }
            }
            let exported = try place.run([obscura, "export", "C", "X\(slot)", "--password-stdin"], "one\n")
            let mounted = try place.run([obscura, "mount", "C", "D", "--password-stdin"], "one\n")
            #expect(mounted.status == 0)
            #expect(exported.status == (mounted.errors.isEmpty ? 0 : 6), "\(exported.errors)")
            #expect(exported.errors.contains("an older one is exported") == !mounted.errors.isEmpty)
            // So does a check, for as long as it is mounted.
            let checked = try place.run([obscura, "check", "D"])
            #expect(checked.status == (mounted.errors.isEmpty ? 0 : 6))
            #expect(checked.output.contains("an older one is shown") == !mounted.errors.isEmpty)
            if !mounted.errors.isEmpty { told.append(mounted.errors) }
            try place.unmount()
        }
        #expect(told.count == 1)
        let line = "D: the newest state of the space cannot be read: an older one is shown"
        #expect(told.first?.contains(line) == true)
    }

    @Test func `a read-only copy, and a read-only file system`() throws {
        let place = try filled(spaces: 2)
        try place.shell("cp -a V C; chmod -R a-w C; mkdir R; mount -t tmpfs -o size=128M none R; cp -a V R/V")
        defer { _ = try? place.run(["/usr/bin/umount", "R"]) }
        try place.shell("mount -o remount,ro R")
        #expect(try check(place, vault: "C").status == 0)
        #expect(try check(place, vault: "R/V").status == 0)
        #expect(try check(place, ["--repair"], vault: "R/V").status == 0)
        try place.shell(
            "mount -o remount,rw R; printf XXXXXXXX | dd of=R/V/obscura.vault bs=1 seek=99 conv=notrunc")
        try place.shell("mount -o remount,ro R")
        let refused = try check(place, ["--repair"], vault: "R/V")
        #expect(refused.status == 6 && refused.errors.contains("cannot be written, so nothing was repaired"))
    }

    @Test func `a user who may not write checks a copy of files 0400`() throws {
        let place = try filled()
        try place.shell(
            "chown -R nobody V; find V -type f | xargs chmod 400; find V -type d | xargs chmod 500; chmod 755 ."
        )
        let words = [
            "/usr/sbin/runuser", "-u", "nobody", "--", obscura, "check", place.vault, "--password-stdin",
        ]
        guard access("/usr/sbin/runuser", X_OK) == 0,
            try place.run(["/usr/sbin/runuser", "-u", "nobody", "--", "/usr/bin/test", "-x", obscura]).status
                == 0
        else { return }
        let ended = try place.run(words, "one\n")
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test func `damage is named by path, and the status is 6`() throws {
        let place = try filled()
        try place.mount()
        try place.shell("ln D/albums/big D/albums/Trip/$'big\\xff'")
        try place.unmount()
        try place.shell("cp -a V whole")
        // All content lies in the third segment. More bytes than fill the end of a chunk's last sector.
        try place.shell(
            "head -c 600 /dev/urandom | dd of=V/segments/000002.seg bs=1 seek=300000 conv=notrunc status=none"
        )
        let ended = try check(place)
        #expect(ended.status == 6)
        #expect(
            ended.lines.count == 1 && ended.output.hasPrefix("albums/big, albums/Trip/big\u{FFFD}: bytes "))
        #expect(ended.output.hasSuffix("cannot be authenticated\n"))
        #expect(ended.errors.split(separator: "\n").count == 1)
        #expect(ended.errors.hasPrefix("obscura: V: damage found: 1 line above"))
        let object = try jsonObject(check(place, ["--json"]).output)
        let expected =
            [
                "kind": "file", "path": "albums/big", "other_paths": [#"albums/Trip/big\xff"#],
                "text": ended.lines[0],
            ] as NSDictionary
        #expect(object["findings"] as? [NSDictionary] == [expected])
        #expect(object["complete"] as? Bool == true && object["files"] as? Int == 3)
        // Nothing can be done for it, and the rest is served.
        let repaired = try check(place, ["--repair"])
        #expect(repaired.status == 6 && repaired.errors.contains("nothing can be repaired"))
        try place.mount()
        try place.shell("cmp D/albums/Trip/a.jpg source/in/a.jpg")
        #expect(try place.run(["/bin/cat", "D/albums/big"]).errors.contains("Input/output error"))
        let mounted = try place.run([obscura, "check", "D"])
        #expect(mounted.status == 6 && mounted.output == ended.output)
        let told = try place.run([obscura, "check", "D", "--json"])
        #expect(told.status == 6 && told.errors.contains("1 finding; unmount it"))
        #expect(try jsonObject(told.output)["findings"] as? [NSDictionary] == [expected])
        try place.unmount()
        // A segment that is gone.
        try place.shell("mv V/segments/000002.seg .")
        let gone = try check(place)
        #expect(gone.status == 6)
        #expect(
            gone.lines.prefix(2) == ["segments: 000002.seg is missing", "segment 000002: missing"]
                || gone.lines.contains("segment 000002: missing"))
        #expect(gone.output.contains("albums/Trip/a.jpg: bytes 0 to "))
        try place.mount()
        #expect(try place.files(place.mountPoint).count == 6)
    }

    @Test func `a copy of a page and of the header are repaired`() throws {
        let place = try filled()
        // Copy A of the pages behind the roots.
        try place.shell(
            "head -c 200000 /dev/urandom | dd of=V/segments/000000.seg bs=65536 seek=1 conv=notrunc status=none"
        )
        try place.shell(
            "head -c 16 /dev/urandom | dd of=V/obscura.vault bs=1 seek=66000 conv=notrunc status=none")
        let found = try check(place)
        #expect(found.status == 6)
        #expect(found.lines.first == "obscura.vault: copy B is damaged; the other is intact")
        #expect(
            found.lines.contains {
                $0.contains(" of the catalogue") && $0.hasSuffix(": one copy of two is damaged (A)")
            })
        try place.shell("cp -a V C")
        let told = try check(place, ["--repair", "--json"], vault: "C")
        let object = try jsonObject(told.output)
        #expect(told.status == 0 && told.errors.isEmpty && object["repaired"] as? Bool == true)
        #expect((object["repairs"] as? [String])?.contains { $0.contains("one damaged copy") } == true)
        #expect((object["still_damaged"] as? [Any])?.isEmpty == true)
        #expect((object["findings"] as? [Any])?.count == found.lines.count)
        let ended = try check(place, ["--repair"])
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(
            ended.output.contains("To be repaired:\n")
                && ended.output.contains(" pages with one damaged copy"))
        #expect(ended.lines.last == "V: repaired; nothing is damaged now")
        #expect(try check(place).status == 0)
        try place.mount()
        try place.shell("cmp D/albums/big source/big")
    }

    /// The first check could not read files, because it did not know them.
    @Test func `a repair without the catalogue tells which of the files that it found are damaged`() throws {
        let place = try filled()
        // Both copies of all pages, and a part of one file.
        try place.shell(
            """
            for file in V/segments/00000[01].seg; do
                head -c 800000 /dev/urandom | dd of=$file bs=65536 seek=1 conv=notrunc status=none
            done
            printf damage | dd of=V/segments/000002.seg bs=1 seek=500000 conv=notrunc status=none
            """)
        // Before anything is repaired, the names that a mount does not show; they are those of all files.
        let hidden = try check(place)
        #expect(hidden.status == 6)
        #expect(hidden.output.contains("6 of 6 names cannot be shown or read: "), "\(hidden.output)")
        #expect(hidden.output.contains("albums/Trip/a.jpg") && hidden.output.contains("--repair brings back"))
        let repaired = try check(place, ["--repair"])
        #expect(repaired.output.contains("rebuild the catalogue"))
        #expect(repaired.status == 6 && repaired.errors.contains(": repaired, except what is lost: "))
        let later = try check(place)
        #expect(later.status == 6)
        #expect(later.output.contains("albums/big: bytes "))
        for line in later.output.split(separator: "\n") { #expect(repaired.output.contains(line)) }
    }

    /// As a power cut may leave it: no damage, and a mount that writes, or a repair, makes it whole.
    @Test(arguments: ["--repair", "mount"]) func `one copy of two is a note`(way: String) throws {
        let place = try filled()
        // Copy A of the first pages behind the roots.
        try place.shell(
            "head -c 65536 /dev/urandom | dd of=V/segments/000000.seg bs=65536 seek=1 conv=notrunc status=none"
        )
        let found = try check(place)
        #expect(found.status == 0, "\(found.output)")
        #expect(
            found.lines.contains { $0.hasPrefix("note: ") && $0.contains(": one copy of two is damaged (A)") }
        )
        #expect(found.output.contains("nothing is lost") && found.lines.last?.contains("--repair") == true)
        let told = try jsonObject(check(place, ["--json"]).output)
        #expect((told["findings"] as? [Any])?.isEmpty == true && (told["notes"] as? [Any])?.isEmpty == false)
        if way == "mount" {
            try place.mount()
            try place.shell("cmp source/big D/albums/big; ls -lR D > list")
            let mounted = try place.run([obscura, "check", "D"])
            #expect(mounted.status == 0, "\(mounted.output)")
            try place.unmount()
        } else {
            #expect(try check(place, [way]).status == 0)
        }
        let later = try check(place)
        #expect(later.status == 0 && later.output.hasPrefix("V: nothing is damaged"), "\(later.output)")
    }

    @Test func `a segment that grew past its size is cut`() throws {
        let place = try filled()
        try place.shell("cp V/segments/000002.seg whole; truncate -s 3G V/segments/000002.seg")
        let found = try check(place)
        #expect(found.status == 6 && found.output == "segments/000002.seg: is longer than a segment\n")
        let repaired = try check(place, ["--repair"])
        #expect(repaired.status == 0, "\(repaired.output) \(repaired.errors)")
        #expect(try check(place).status == 0)
        try place.shell("cmp -n $(stat -c %s whole) whole V/segments/000002.seg")
        try place.mount()
        try place.shell("cmp source/big D/albums/big")
    }

    @Test func `a vault that is mounted, and its mount`() throws {
        let place = try filled(spaces: 2)
        try place.mount()
        #expect(try check(place).status == 5)
        let ended = try place.run([obscura, "check", "D"])
        #expect(ended.status == 0 && ended.output.hasPrefix("D: nothing is damaged: "), "\(ended.errors)")
        #expect(try place.run([obscura, "check", "D", "--repair"]).status == 2)
        #expect(try place.run([obscura, "check", place.root]).status == 3)
        try place.shell("! getfattr -d -m - D | grep -q obscura")
    }

    @Test func `status counts photos and pending writes`() throws {
        let place = try filled()
        #expect(try place.run([obscura, "status", "D"]).status == 1)
        try place.mount()
        let ended = try place.run([obscura, "status", "D"])
        #expect(ended.status == 0)
        #expect(ended.output.contains("Photos          2\n"))
        #expect(ended.output.contains("Pending writes  none, everything is safe on disk"))
    }

    @Test func `speed measures sealing, hashing, keys and thumbnails`() throws {
        let place = try Place()
        let ended = try place.run([obscura, "speed"])
        #expect(ended.status == 0)
        #expect(
            ended.lines.map { $0.split(separator: " ").first.map(String.init) }
                == ["Sealing", "Opening", "Hashing", "Key", "Thumbnails"])
        #expect(ended.output.contains("a second of JPEGs of 12 megapixels"))
    }
}
