import Foundation
import TestSupport
import TestThreads
import Testing

/// Trees that `scripts/install` makes of the programs that were built for the tests.
@Suite("Commands: installed programs", .serialized, .waiting) struct InstallTests {
    private let place: Place
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent().path

    init() throws {
        place = try Place()
        // An empty program stands for the window, which is built only for packages.
        try place.shell(
            """
            mkdir built; ln -s '\(obscura)' '\(obscura)'-* built/
            printf '#!/bin/sh\\n' >window; chmod +x window; ln -sf ../window built/obscura-window
            """)
    }

    /// - Parameter variables: `NAME=value` each.
    private func install(_ prefix: String, _ variables: [String] = []) throws {
        let words = ["env", "OBSCURA_BUILT=\(place.root)/built"] + variables
        let ended = try place.run(words + [Self.root + "/scripts/install", prefix])
        try #require(ended.status == 0, "\(ended.errors)")
    }

    /// All files of the packages of that name, as debhelper's lists have them.
    private func listed(_ package: String) throws -> [String] {
        try place.shell("cat '\(Self.root)/scripts/debian/\(package).install'").split(separator: "\n")
            .map(String.init)
    }

    private func installed() throws -> [String] {
        try place.shell("cd tree; find . ! -type d -printf '%P\\n'").split(separator: "\n").map(String.init)
            .sorted()
    }

    @Test func `the files are those of the packages`() throws {
        try install("/usr", ["DESTDIR=\(place.root)/tree"])
        #expect(try installed() == listed("obscura").sorted())
        try install("/usr", ["DESTDIR=\(place.root)/tree", "OBSCURA_WINDOW=1"])
        #expect(try installed() == (listed("obscura") + listed("obscura-desktop")).sorted())
        #expect(try place.shell("find tree -type f -perm /022; find -L tree -type l").isEmpty)
    }

    @Test func `program and helpers work however they are started`() throws {
        let tree = place.root + "/tree"
        try install(tree)
        try place.source("p.jpg", Photo().bytes)
        try place.shell(
            """
            printf 'one\\n' >pw; chmod 600 pw
            ln -s tree/bin/obscura linked
            for start in ./linked tree/bin/obscura '\(tree)/lib/obscura/obscura' \
                'env PATH=\(tree)/bin:/usr/bin:/bin obscura'
            do
                $start mount V D --password-file pw 2>said
                [ ! -s said ] || { cat said >&2; exit 1; }
                [ -e D/albums/p.jpg ] || cp source/p.jpg D/albums/
                [ "$(head -c 2 D/albums/.thumbs/512/p.jpg | od -An -tx1)" = ' ff d8' ]
                $start status D --json | grep -qF '"missing_helpers": []'
                $start unmount D
            done
            tree/sbin/mount.obscura V D -o passfile=pw
            tree/bin/obscura unmount D
            """)
    }

    @Test func `a helper that is missing is named by mount and status`() throws {
        let tree = place.root + "/tree"
        try install(tree)
        func mount(_ options: String) throws -> Ended {
            try place.run(
                [tree + "/bin/obscura", "mount", "V", "D", "--password-stdin", "-o", options], "one\n")
        }
        func status() throws -> (text: String, missing: [String]?) {
            let text = try place.run([tree + "/bin/obscura", "status", "D"]).output
            let json = try place.run([tree + "/bin/obscura", "status", "D", "--json"]).output
            return (text, try jsonObject(json)["missing_helpers"] as? [String])
        }
        try place.shell("cd tree/lib/obscura; mkdir away; mv obscura-worker obscura-receiver away")
        let mounted = try mount("rw")
        #expect(mounted.status == 0)
        let loss = "obscura-worker (no thumbnails), obscura-receiver (no photos from phones): install"
        #expect(mounted.errors.contains(loss), "\(mounted.errors)")
        #expect(try status().text.contains("Missing         " + loss))
        #expect(try status().missing == ["obscura-worker", "obscura-receiver"])
        // The mount has begun without thumbnails.
        try place.shell("mv tree/lib/obscura/away/* tree/lib/obscura")
        #expect(try status().missing == ["obscura-worker"])
        try place.unmount()
        try place.shell("cd tree/lib/obscura; chmod a-x obscura-*")
        #expect(try mount("thumbs=off,suspend=keep,sweep=off").status == 0)
        #expect(try status().missing == ["obscura-guard", "obscura-archive", "obscura-receiver"])
        try place.unmount()
    }
}
