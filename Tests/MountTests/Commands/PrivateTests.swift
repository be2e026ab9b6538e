import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// A private session that is going on: a shell inside runs the lines of its standard input.
final class Session {
    private let process: Child

    /// - Parameter words: the program and its arguments, run with the place as home directory.
    init(_ place: Place, _ words: [String], display: String? = nil) throws {
        process = try Child(
            words,
            environment: Child.plainEnvironment.merging(["HOME": place.root, "DISPLAY": display ?? ""]) {
                $1
            },
            input: .written, output: .collected, errors: .collected, asSession: true)
    }

    /// Sends a signal to the process of `obscura private`.
    func kill(_ signal: Int32) { process.kill(signal) }

    func write(_ text: String) throws { try process.write(text) }

    /// The output of the shell inside for a line, up to the end of it; nil when the session is over.
    func ask(_ line: String) throws -> String? {
        try write("\(line)\necho; echo =\n")
        return process.output?.next(upTo: "\n=\n")?.trimmingCharacters(in: .newlines)
    }

    /// Ends the shell's input and waits; returns the exit status and the errors.
    func end() throws -> Ended {
        process.closeInput()
        return try waitForEnd()
    }

    func waitForEnd() throws -> Ended { try process.finish(isAlone: true) }
}

/// Sessions that only their own programs see.
@Suite("Commands: private", .serialized, .waiting) struct PrivateTests {
    /// nobody.
    private static let user = 65_534
    /// In no other file or argument of this machine.
    private let word = "Zanzibar" + String(UInt32.random(in: 0...UInt32.max), radix: 16)

    private func makePlace(asUser: Bool) throws -> Place {
        let place = try Place()
        try place.shell(
            """
            mkdir bin; cp '\(obscura)' '\(obscura)'-{worker,guard,sleep,desktop,archive,receiver} bin
            mkdir .themes; echo kept >.themes/theme
            printf 'one\\n' >pw; chmod 600 pw; chmod 755 .
            """)
        if asUser { try place.shell("chown -R \(Self.user):\(Self.user) .") }
        return place
    }

    private func words(_ place: Place, asUser: Bool, _ command: [String]) -> [String] {
        (asUser ? ["setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups"] : [])
            + [place.root + "/bin/obscura", "private", place.vault, "--password-file", place.root + "/pw"]
            + (command.isEmpty ? [] : ["--"] + command)
    }

    private func run(_ place: Place, asUser: Bool = false, _ command: String...) throws -> Ended {
        try place.run(words(place, asUser: asUser, command))
    }

    /// A shell inside that reads its commands from standard input, so that no process's arguments have them.
    private func open(_ place: Place, asUser: Bool = false, display: String? = nil) throws -> Session {
        try Session(place, words(place, asUser: asUser, ["/bin/bash"]), display: display)
    }

    /// Things that end with the session: processes, the mount, the vault's lock.
    private func expectGone(_ place: Place, location: SourceLocation = #_sourceLocation) throws {
        let isGone = try eventually {
            try place.run(["pgrep", "-f", "[-]-private-(daemon|session).*\(place.root)"]).status == 1
        }
        #expect(isGone, sourceLocation: location)
        #expect(try FileManager.default.contentsOfDirectory(atPath: place.mountPoint) == [])
        #expect(!exists(place.root + "/Photos"), sourceLocation: location)
    }

    @Test(arguments: [false, true])
    func `a session's files are not seen outside, and its photos are kept`(asUser: Bool)
        throws
    {
        guard geteuid() == 0 || !asUser else { return }
        let place = try makePlace(asUser: asUser)
        let session = try open(place, asUser: asUser)
        #expect(
            try session.ask("pwd; ls; id -u; echo $HOME") == "\(place.root)/Photos\nalbums\nmoments\n"
                + "\(asUser ? Self.user : Int(getuid()))\n\(place.root)")
        // The home directory is another; of the old one the vault is there, and the settings of file managers.
        #expect(try session.ask("cd; ls -A") == ".themes\nPhotos\nV\nbin")
        #expect(try session.ask("cat .themes/theme; ls V | head -1") == "kept\nobscura.vault")
        #expect(try session.ask("touch .themes/x bin/x 2>/dev/null || echo no") == "no")
        let photo = Data(Photo(width: 300, height: 200).bytes).base64EncodedString()
        _ = try session.ask(
            """
            umask 077; mkdir -p .local/share .cache/thumbnails/normal
            mkdir Photos/albums/\(word); base64 -d >Photos/albums/\(word)/\(word).jpg <<<\(photo)
            echo "<bookmark href='file://$HOME/Photos/albums/\(word)/\(word).jpg'/>" >.local/share/recently-used.xbel
            for directory in .cache/thumbnails/normal /tmp /var/tmp /dev/shm $XDG_RUNTIME_DIR; do
                echo \(word) >$directory/\(word)
            done
            logger <.local/share/recently-used.xbel; exec -a thunar sleep 1000 & cd Photos/albums/\(word)
            """)
        #expect(try session.ask("ls ~/Photos/moments/*") == "\(word).jpg")
        #expect(try session.ask("head -c 2 .thumbs/\(word).jpg | od -An -tx1") == " ff d8")
        // A bus of its own, where there is one to be had.
        #expect(try session.ask("echo ${DBUS_SESSION_BUS_ADDRESS%%:*}") == "unix")
        // It has processes of its own, and none that could undo the hiding.
        #expect(try session.ask("cat /proc/1/cmdline | tr '\\0' ' ' | cut -d' ' -f2") == "--private-session")
        if asUser {
            #expect(
                try session.ask("umount ~ 2>&1 | wc -l; grep -c 'CapEff:.*[1-9a-f]' /proc/self/status")
                    == "1\n0")
        }
        #expect(try place.traces(of: word) == [])
        let ended = try session.end()
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        try expectGone(place)
        #expect(try place.traces(of: word) == [])
        try place.mount()
        #expect(try place.files(place.albums) == ["\(word)/\(word).jpg"])
        try place.unmount()
    }

    @Test func `the command's exit status is the session's`() throws {
        let place = try makePlace(asUser: false)
        #expect(try run(place, "/bin/sh", "-c", "exit 7", "").status == 7)
        #expect(try run(place, "/bin/sh", "-c", "kill -9 $$").status == 137)
        let none = try run(place, "no-such-program")
        #expect(none.status == 1 && none.errors.contains("no such program here"), "\(none.errors)")
        let wrong = try place.run(
            [obscura, "private", place.vault, "--password-stdin", "--", "true"], "two\n")
        #expect(wrong.status == 4 && wrong.errors.split(separator: "\n").count == 1)
        #expect(try place.run([obscura, "private", place.root, "--", "true"]).status == 3)
        #expect(try place.run([obscura, "private", place.vault, "--", "true"]).status == 2)
        try place.mount()
        #expect(try run(place, "true").status == 5)
        try place.unmount()
        try expectGone(place)
    }

    @Test(arguments: [false, true])
    func `another vault may be mounted at the same place outside`(asUser: Bool) throws {
        guard geteuid() == 0 || !asUser else { return }
        let place = try makePlace(asUser: asUser)
        let other = try Place()
        let photos = place.root + "/Photos"
        try place.shell(
            "mkdir Photos; printf 'one\\n' | '\(obscura)' mount '\(other.vault)' Photos --password-stdin")
        defer { umount2(photos, Int32(MNT_DETACH)) }
        try place.shell("echo outside >Photos/albums/outside")
        let session = try open(place, asUser: asUser)
        #expect(try session.ask("ls albums; echo inside >albums/inside; ls ~/Photos/albums") == "inside")
        #expect(try place.shell("ls Photos/albums") == "outside\n")
        // Where `/` is no shared mount, as in containers, the mount outside would end with the session only.
        let ended = try session.end()
        #expect(ended.status == 0 && ended.errors.isEmpty, "\(ended.errors)")
        #expect(try place.shell("ls Photos/albums") == "outside\n")
        try place.shell("'\(obscura)' unmount Photos")
        try place.shell("rmdir Photos")
        try expectGone(place)
    }

    @Test func `the session ends with all that the command started`() throws {
        let place = try makePlace(asUser: false)
        let name = "sleep-\(UUID().uuidString)"
        let stubborn = "trap '' TERM HUP; exec -a \(name) sleep 1000"
        let ended = try run(
            place, "/bin/bash", "-c",
            """
            setsid bash -c \"\(stubborn)\" & (exec -a \(name) sleep 1000 &) ; echo a >albums/a
            until [ $(pgrep -fc '^\(name)') -ge 2 ]; do sleep 0.01; done
            """)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try place.run(["pgrep", "-f", "^\(name)"]).status == 1)
        try expectGone(place)
    }

    @Test(arguments: [(SIGTERM, false), (SIGKILL, true)])
    func `a signal ends it in order`(signal: Int32, asUser: Bool) throws {
        let asUser = asUser && geteuid() == 0
        let place = try makePlace(asUser: asUser)
        let session = try open(place, asUser: asUser)
        #expect(try session.ask("echo before >albums/note; exec 9>>albums/open; echo more >&9") == "")
        session.kill(signal)
        let ended = try session.waitForEnd()
        #expect(ended.status == (signal == SIGKILL ? -SIGKILL : 128 + SIGTERM), "\(ended.errors)")
        try expectGone(place)
        try place.mount()
        #expect(try place.shell("cat D/albums/note D/albums/open") == "before\nmore\n")
        try place.unmount()
    }

    @Test func `with the daemon the session ends`() throws {
        let place = try makePlace(asUser: false)
        let session = try open(place)
        #expect(try session.ask("echo in") == "in")
        let found = try place.run(["pgrep", "-f", "[-]-private-daemon.*\(place.root)"]).lines
        #expect(kill(try #require(found.first.flatMap { pid_t($0) }), SIGKILL) == 0)
        let ended = try session.waitForEnd()
        #expect(ended.status == 1 && ended.errors.contains("Photos: "), "\(ended.errors)")
        try expectGone(place)
    }

    @Test func `where namespaces are forbidden it says so before it asks`() throws {
        let place = try Place()
        let ended = try place.run([
            "unshare", "-Ur", "/bin/sh", "-c",
            "echo 0 >/proc/sys/user/max_mnt_namespaces; exec '\(obscura)' private '\(place.vault)'",
        ])
        #expect(ended.status == 1 && ended.errors.contains("namespaces of their own"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1)
        let inside = try place.run(["env", "HOME=\(place.vault)/segments", obscura, "private", place.vault])
        #expect(inside.status == 2 && inside.errors.contains("home directory"), "\(inside.errors)")
    }

    @Test func `a file manager leaves no trace`() throws {
        let asUser = geteuid() == 0
        let display = try Display()
        let place = try makePlace(asUser: asUser)
        let session = try open(place, asUser: asUser, display: display.name)
        let photo = Data(Photo(width: 300, height: 200).bytes).base64EncodedString()
        _ = try session.ask(
            """
            mkdir albums/\(word) && cd albums/\(word) && base64 -d >\(word).jpg <<<\(photo)
            recent=~/.local/share/recently-used.xbel; mkdir -p ~/.local/share
            echo "<bookmark href='file://$PWD/\(word).jpg'/>" >$recent
            thunar &>/tmp/thunar &
            """)
        // Its window has the folder's name: visible to all who see the screen.
        let isShown = try display.waitForWindow(place, word)
        let complaint = isShown ? nil : try session.ask("cat /tmp/thunar; ps ax")
        #expect(isShown, "\(complaint ?? "the session has ended")")
        #expect(try place.traces(of: word) == [])
        let ended = try session.end()
        #expect(ended.status == 0, "\(ended.errors)")
        try expectGone(place)
        #expect(try place.traces(of: word) == [])
    }
}
