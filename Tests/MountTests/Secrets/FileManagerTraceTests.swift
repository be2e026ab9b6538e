import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// Real programs look at a mount, and leave nothing that tells of it once it is unmounted.
@Suite("Secrets: traces of file managers", .serialized, .waiting) struct FileManagerTraceTests {
    /// nobody.
    private static let user = 65_534
    /// In no other file or argument of this machine.
    private let word = "Zanzibar" + String(UInt32.random(in: 0...UInt32.max), radix: 16)

    /// `scripts/test` installs the first three; the others are tried where they are.
    static let programs =
        ["thunar", "pcmanfm", "caja"] + ["nemo", "dolphin", "eog"].filter { exists("/usr/bin/" + $0) }

    @Test(arguments: programs) func `a file manager, after the unmount`(program: String) throws {
        let (display, place) = (try Display(), try Place())
        let session = try session(place, display)
        try show(program == "eog" ? "/\(word).jpg" : "", program, session, place, display)
        // Thumbnails and lists come after the window; later ones than the unmount are not compared.
        let listed = try session.ask("ls D/albums/\(word)")
        #expect(listed == word + ".jpg")
        try endProgram(session)
        #expect(try place.traces(of: word) == [])
        try end(session, place)
    }

    /// `scripts/test` does not install Dolphin, which takes some hundred megabytes.
    @Test(.enabled(if: ["dolphin", "xdotool"].allSatisfy { exists("/usr/bin/" + $0) }))
    func `what Dolphin deletes is in the vault's trash after the unmount, and nowhere else`() throws {
        let (display, place) = (try Display(), try Place())
        let session = try session(place, display)
        try show("", "dolphin", session, place, display)
        // Keys before the photo is shown select nothing: so they are sent until it is gone.
        let left = try session.ask(
            """
            xdotool search --name \(word) windowfocus >/dev/null
            for i in {1..40}; do
                xdotool key ctrl+a; sleep 0.5; xdotool key Delete; sleep 0.5
                [ -e D/albums/\(word)/\(word).jpg ] || break
            done
            ls D/albums/\(word); ls .local/share/Trash/files
            """)
        #expect(left == word + ".jpg")
        try endProgram(session)
        #expect(try place.traces(of: word) == [])
        let kept = try session.ask(
            """
            printf 'one\\n' | bin/obscura mount V D --password-stdin 2>&1
            cat D/.Trash-*/files/\(word).jpg | base64 -w 0; echo; sed -n 's/^Path=//p' D/.Trash-*/info/*
            bin/obscura unmount D
            """)
        #expect(kept?.hasSuffix("\(photo)\nalbums/\(word)/\(word).jpg") == true, "\(kept ?? "")")
        try end(session, place)
    }

    private let photo = Data(Photo(width: 300, height: 200).bytes).base64EncodedString()

    /// A session of a user on a screen, with a bus of its own.
    private func session(_ place: Place, _ display: Display) throws -> Session {
        try place.shell(
            "mkdir bin; cp '\(obscura)' '\(obscura)'-{worker,desktop,guard,sleep} bin; chmod 755 .; mkdir -m 700 run"
        )
        let isRoot = geteuid() == 0
        if isRoot { try place.shell("chown -R \(Self.user):\(Self.user) .") }
        // The bus is ended by a signal, which this process's threads block and their children with them.
        let unblocked = "use POSIX; sigprocmask(SIG_SETMASK, POSIX::SigSet->new); exec @ARGV"
        // Some of these programs refuse to run as root.
        let asUser =
            isRoot ? ["setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups"] : []
        return try Session(
            place,
            ["env", "XDG_RUNTIME_DIR=\(place.root)/run", "perl", "-e", unblocked] + asUser + [
                "/bin/bash", "-c",
                // Programs that the bus starts may outlive it, and must not hold this process's pipes.
                "exec 8<&0 9>&1; dbus-run-session -- /bin/bash -c 'exec /bin/bash <&8 >&9 8<&- 9>&-' &>/dev/null",
            ],
            display: display.name)
    }

    /// Mounts, puts a photo into an album, and waits for the window of a program that is started there.
    private func show(
        _ name: String, _ program: String, _ session: Session, _ place: Place, _ display: Display
    ) throws {
        let said = try session.ask(
            """
            cd '\(place.root)'
            printf 'one\\n' | bin/obscura mount V D --password-stdin
            mkdir D/albums/\(word) && base64 -d >D/albums/\(word)/\(word).jpg <<<\(photo)
            \(program) "$PWD/D/albums/\(word)\(name)" &>/dev/null & program=$!
            """)
        let isShown = try display.waitForWindow(place, word)
        #expect(isShown, "\(program): \(said ?? "the session has ended")")
    }

    /// Ends the program, and unmounts.
    private func endProgram(_ session: Session) throws {
        // PCManFM 1.3.2 may wait for a thread of its own for ever.
        let ended = try session.ask(
            """
            kill $program; for i in {1..100}; do kill -0 $program || break; sleep 0.1; done 2>/dev/null
            kill -KILL $program 2>/dev/null; wait $program 2>/dev/null; bin/obscura unmount D 2>&1; echo $?
            """)
        #expect(ended?.hasSuffix("0") == true, "\(ended ?? "")")
    }

    /// Ends the session, and the programs of its bus that outlive it: GStreamer, when it has looked for its plugins,
    /// would make the directories of the home directory anew to list them there.
    private func end(_ session: Session, _ place: Place) throws {
        _ = try session.end()
        let home = Array("\0HOME=\(place.root)\0".utf8)
        let areGone = eventually {
            let left = Self.processes { ([0] + $0).contains(home) }
            for process in left { Glibc.kill(process, SIGKILL) }
            return left.isEmpty
        }
        #expect(areGone)
    }

    /// Those whose variables are so.
    private static func processes(_ isWanted: ([UInt8]) -> Bool) -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter {
            isWanted(contents(ofFile: "/proc/\($0)/environ") ?? [])
        }
    }
}
