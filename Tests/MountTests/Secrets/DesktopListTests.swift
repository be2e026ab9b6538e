import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Lists that desktop programs keep outside: entries of the mount go with it, all others stay.
@Suite("Secrets: the desktop's lists", .serialized, .waiting) struct DesktopListTests {
    private let place: Place

    init() throws { place = try Place() }

    /// As eog 43.2 writes it, by GLib 2.74.
    private func bookmark(_ path: String) -> String {
        """
          <bookmark href="file://\(path)" added="2026-11-23T08:33:38.578746Z" modified="2026-11-23T08:33:38.578752Z" \
        visited="2026-11-23T08:33:38.578747Z">
            <info>
              <metadata owner="http://freedesktop.org">
                <mime:mime-type type="image/jpeg"/>
                <bookmark:groups>
                  <bookmark:group>Graphics</bookmark:group>
                </bookmark:groups>
                <bookmark:applications>
                  <bookmark:application name="Image Viewer" exec="&apos;eog %u&apos;" \
        modified="2026-11-23T08:33:38.578750Z" count="1"/>
                </bookmark:applications>
              </metadata>
            </info>
          </bookmark>

        """
    }

    private func list(_ paths: [String]) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <xbel version="1.0"
              xmlns:bookmark="http://www.freedesktop.org/standards/desktop-bookmarks"
              xmlns:mime="http://www.freedesktop.org/standards/shared-mime-info"
        >

        """ + paths.map(bookmark).joined() + "</xbel>"
    }

    private var data: String { place.root + "/.local/share" }

    private func write(_ text: String, _ name: String) throws {
        let path = data + "/" + name
        try FileManager.default.createDirectory(
            atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path,
            withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }

    private func text(_ name: String) throws -> String {
        String(decoding: try place.bytes(data + "/" + name), as: UTF8.self)
    }

    @Test func `recent files`() throws {
        let others = [place.root + "/E/b.jpg", place.root + "/Dx.jpg"]
        let ours = [place.mountPoint, place.albums + "/T/%C3%A4%20b.jpg", place.moments]
        try place.mount(options: "sweep=off")
        try write(list(ours + others), "recently-used.xbel")
        chmod(data + "/recently-used.xbel", 0o600)
        try place.unmount()
        #expect(try text("recently-used.xbel") == list(ours + others))
        try place.mount()
        #expect(try eventually { try text("recently-used.xbel") == list(others) })
        try write(list(others + ours), "recently-used.xbel")
        try place.unmount()
        #expect(try text("recently-used.xbel") == list(others))
        // Nothing of ours in it: not even its time changes.
        let before = try status(data + "/recently-used.xbel").st_ctim.tv_nsec
        try place.mount()
        try place.unmount()
        #expect(try status(data + "/recently-used.xbel").st_ctim.tv_nsec == before)
    }

    /// Eye of GNOME notes a photo that it has just opened seconds later.
    @Test func `recent files that a program notes after the unmount`() throws {
        let others = [place.root + "/E/b.jpg"]
        try place.mount()
        try place.unmount()
        try write(list([place.albums + "/b.jpg"] + others), "recently-used.xbel")
        #expect(try eventually { try text("recently-used.xbel") == list(others) })
    }

    @Test func `of what is on the mount point later, nothing is a trace`() throws {
        let (paths, others) = ([place.mountPoint + "/b.jpg"], [place.root + "/E/b.jpg"])
        try FileManager.default.createDirectory(
            atPath: place.mountPoint, withIntermediateDirectories: true)
        try write(list(paths + others), "recently-used.xbel")
        let sweep = "'\(obscura)' --sweep \(geteuid()) - '\(place.mountPoint)'"
        try Data().write(to: URL(fileURLWithPath: paths[0]))
        try place.shell(sweep + " 1")
        #expect(try text("recently-used.xbel") == list(paths + others))
        try FileManager.default.removeItem(atPath: paths[0])
        try place.shell(sweep + " 1")
        #expect(try text("recently-used.xbel") == list(others))
    }

    @Test func `folders that gThumb has shown`() throws {
        try place.mount()
        let history = "../../.config/gthumb/history.xbel"
        let other = place.root + "/E"
        try write(list([place.albums + "/T", other]), history)
        try place.unmount()
        #expect(try text(history) == list([other]))
    }

    @Test func `a list that is a link, or not there, stays so`() throws {
        try place.mount()
        try write("no list", "recently-used.xbel")
        try place.unmount()
        #expect(try text("recently-used.xbel") == "no list")
        try write(list([place.albums + "/b.jpg"]), "recently-used.xbel")
        try place.mount()
        // The sweep at the beginning is done with the file before it becomes a link.
        try #require(try eventually { try !text("recently-used.xbel").contains("<bookmark ") })
        // The file that a link leads to may be any other program's.
        try write(list([place.albums + "/a.jpg"]), "elsewhere")
        try place.shell("ln -sf elsewhere '\(data)/recently-used.xbel'")
        try place.unmount()
        #expect(try text("elsewhere") == list([place.albums + "/a.jpg"]))
        #expect(try place.shell("readlink '\(data)/recently-used.xbel'") == "elsewhere\n")
    }

    @Test func `KDE's recent documents`() throws {
        try place.mount()
        func entry(_ uri: String) -> String {
            "[Desktop Entry]\nIcon=image-jpeg\nName=a\nType=Link\nURL[$e]=\(uri)\n"
        }
        try write(entry("file:$HOME/D/albums/a.jpg"), "RecentDocuments/a.jpg.desktop")
        try write(entry("file://\(place.albums)/b%20c.jpg"), "RecentDocuments/b.desktop")
        try write(entry("file:$HOME/E/a.jpg"), "RecentDocuments/c.desktop")
        try place.unmount()
        #expect(try place.files(data + "/RecentDocuments") == ["c.desktop"])
    }

    @Test func `Dolphin's and PCManFM's folders and tabs`() throws {
        let config = "../../.config/"
        let views = "dolphin/view_properties/local"
        try place.mount()
        // As Dolphin 22.12 writes it.
        func session(_ path: String) -> String {
            "[1]\nTab Count=1\nTab Data 0=\\x00\\x00.file://\(path)/\\x00\\x01Afile://\(path)/a%20b.jpg\\x00\n"
        }
        try write(session(place.albums), config + "session/dolphin_dolphin_dolphin")
        try write(session(place.mountPoint + "x"), config + "session/dolphin_other")
        try write("URL[$e]=file:$HOME/D/moments/a.jpg\n", config + "session/kate")
        for path in [place.albums + "/Zanzibar", place.root + "/E"] {
            try write("[Dolphin]\nViewMode=1\n", views + path + "/.directory")
        }
        let other = "# libfm\n[\(place.root)/E]\nSort=name;\n"
        try write(
            "# libfm\n[\(place.albums)/Zanzibar]\nSort=name;\n[\(place.root)/E]\nSort=name;\n",
            config + "libfm/dir-settings.conf")
        try place.unmount()
        #expect(try place.files(place.root + "/.config/session") == ["dolphin_other"])
        #expect(!exists("\(data)/\(views)\(place.mountPoint)"))
        #expect(exists("\(data)/\(views)\(place.root)/E/.directory"))
        #expect(try text(config + "libfm/dir-settings.conf") == other)
    }

    @Test func `complaints of programs in an X session's log`() throws {
        let log = "../../.xsession-errors"
        let uri = "eog 'file://\(place.albums)/a.jpg'"
        try place.mount()
        try write("one\n\(uri)\ncopy \(place.albums)/ä.jpg\n\(place.mountPoint)x\n", log)
        let file = try status(data + "/" + log).st_ino
        try place.unmount()
        func mask(_ line: String) -> String { String(repeating: "-", count: line.utf8.count) }
        #expect(
            try text(log)
                == "one\n\(mask(uri))\n\(mask("copy \(place.albums)/ä.jpg"))\n\(place.mountPoint)x\n")
        #expect(try status(data + "/" + log).st_ino == file)
    }

    @Test func `files that Plasma's activity manager knows`() throws {
        // As kactivitymanagerd 5.27 leaves it when it is killed: rows in the log alone.
        try place.source(
            "database.py",
            Array(
                """
                import os, sqlite3, sys
                database = sqlite3.connect(sys.argv[1] + "/kactivitymanagerd/resources/database")
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("CREATE TABLE ResourceEvent (usedActivity TEXT, targettedResource TEXT)")
                database.execute("CREATE TABLE ResourceInfo (targettedResource TEXT PRIMARY KEY, title TEXT)")
                for path in sys.argv[2:]:
                    search = "filenamesearch:?search=a&url=file://" + path + "&title=a"
                    for resource in [path, "file://" + path] + ([] if "'" in path else [search]):
                        database.execute("INSERT INTO ResourceEvent VALUES ('a', ?)", [resource])
                        database.execute("INSERT INTO ResourceInfo VALUES (?, '')", [resource])
                database.commit()
                os._exit(0)
                """.utf8))
        try place.shell("ln -s D/albums \"it's\"")
        func makeDatabase() throws {
            try place.shell(
                """
                rm -rf '\(data)/kactivitymanagerd'; mkdir -p '\(data)/kactivitymanagerd/resources'
                python3 source/database.py '\(data)' '\(place.albums)/Zanzibar/a.jpg' \
                    "$PWD/it's/Zanzibar/b.jpg" '\(place.root)/Marrakesh/a.jpg'
                cd '\(data)/kactivitymanagerd/resources'
                mkdir working-backup
                cp database database-wal working-backup
                """)
        }
        let names = "grep -rl Zanzibar '\(data)' || true"
        // Entries of an earlier session go once the mount is live; later ones at its end.
        try makeDatabase()
        try place.mount()
        #expect(try eventually { try place.shell(names).isEmpty })
        try makeDatabase()
        #expect(try place.shell(names).split(separator: "\n").count == 2)
        try place.unmount()
        #expect(try place.shell(names).isEmpty)
        let rows = "cat '\(data)/kactivitymanagerd/resources/database' | grep -ao Marrakesh | wc -l"
        #expect(try Int(place.shell(rows).trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0 >= 6)
    }

    /// Lines of a shell on a message bus of its own, where gvfs is at hand.
    private func onBus(_ lines: String) throws {
        try place.source("bus.sh", Array("export GVFS_DISABLE_FUSE=1\n\(lines)".utf8))
        let unblocked = "perl -MPOSIX -e 'sigprocmask(SIG_SETMASK, POSIX::SigSet->new); exec @ARGV'"
        try place.shell("\(unblocked) dbus-run-session -- bash -ex source/bus.sh")
    }

    @Test func `folders that gvfs keeps`() throws {
        // The sweep of old traces would take the folder's too, and ends the daemon. It removes this one first.
        try write(list([place.albums + "/b.jpg"]), "recently-used.xbel")
        try onBus(
            """
            printf 'one\\n' | '\(obscura)' mount V D --password-stdin
            while grep -q '<bookmark ' .local/share/recently-used.xbel; do sleep 0.1; done
            while pgrep -f -- "--swee[p] .*$PWD/" >/dev/null; do sleep 0.1; done
            mkdir -p D/albums/Zanzibar Zelt
            gio set -t string D/albums/Zanzibar metadata::view Timbuktu
            gio set -t string Zelt metadata::view Marrakesh
            grep -rq Zanzibar .local/share/gvfs-metadata
            daemon=$(gdbus call --session --dest org.freedesktop.DBus --object-path / \
                --method org.freedesktop.DBus.GetConnectionUnixProcessID org.gtk.vfs.Metadata)
            daemon=$(tr -dc '0-9 ' <<< "$daemon" | cut -d ' ' -f 2)
            kill -0 "$daemon"
            '\(obscura)' unmount D
            # It writes its files only at its end.
            if kill -0 "$daemon"; then exit 1; fi
            if grep -r -e Zanzibar -e Timbuktu .local/share/gvfs-metadata; then exit 1; fi
            gio info -a metadata::view Zelt | grep Marrakesh
            """)
    }

    @Test func `thumbnails without a source, known by their names`() throws {
        try place.mount()
        try place.source("a.jpg", Photo().bytes)
        try place.shell(
            "mkdir D/albums/T; cp source/a.jpg 'D/albums/T/ä b.jpg'; cp source/a.jpg D/albums/gone.jpg")
        // Without Thumb::URI, as PCManFM 1.3.2 has most programs write them; and with a path in its place, as
        // ffmpegthumbnailer 2.2.2 does.
        func put(_ uri: String, _ text: String = "", size: String = "normal") throws -> String {
            let digest = try place.run(["md5sum"], uri).output.prefix(32)
            let path = "\(place.root)/.cache/thumbnails/\(size)/\(digest).png"
            try FileManager.default.createDirectory(
                atPath: URL(fileURLWithPath: path).deletingLastPathComponent().path,
                withIntermediateDirectories: true)
            try Data(cacheEntry(text, hasURI: !text.isEmpty)).write(to: URL(fileURLWithPath: path))
            return path
        }
        let uri = "file://\(place.albums)/T/%C3%A4%20b.jpg"
        let ours = [
            try put(uri), try put(uri, size: "xx-large"), try put(uri, size: "fail/x"),
            try put("file://\(place.moments)/2019-03-04/%C3%A4%20b.jpg", size: "large"),
            try put("file://\(place.albums)/gone.jpg"),
            try put("x", place.albums + "/T/a.mp4"),
        ]
        let others = [try put("file://\(place.root)/E/a.jpg"), try put("y", place.root + "/E/a.mp4")]
        try place.shell("gio trash D/albums/gone.jpg")
        try place.unmount()
        for path in ours { #expect(!exists(path), "\(path)") }
        for path in others { #expect(exists(path), "\(path)") }
    }
}
