import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Passwords without a terminal, by scripts that replace the programs of a desktop.
@Suite("Passwords: windows that ask for them", .serialized, .waiting)
struct AskpassTests {
    private let place: Place

    /// No program of this computer's desktop is in PATH. Scripts in `bin` note their arguments in `asked`; each call of
    /// `answer` prints the next line of `answers`.
    init() throws {
        place = try Place()
        try place.shell(
            """
            mkdir bin run
            cat >answer <<'END'
            head -n 1 '\(place.root)/answers'; sed -i 1d '\(place.root)/answers'
            END
            printf '#!/bin/sh\\nprintf "%%s\\\\n" "$1" >>asked; . ./answer\\n' >ask
            printf '#!/bin/sh\\necho zenity "$@" >>asked; . ./answer\\n' >bin/zenity
            printf '#!/bin/sh\\necho kdialog "$@" >>asked; . ./answer\\n' >bin/kdialog
            chmod +x ask bin/*; touch asked
            for name in sh bash head sed cat env fusermount3; do ln -s "$(command -v $name)" bin/; done
            """)
    }

    private var asked: [String] {
        get throws {
            String(decoding: try place.bytes(place.root + "/asked"), as: UTF8.self).split(separator: "\n")
                .map(String.init)
        }
    }

    /// Runs `obscura mount` without a source of passwords, in an environment of `variables` alone.
    private func mount(
        _ variables: [String], answers: String, program: String = obscura, options: [String] = []
    ) throws -> Ended {
        try place.shell("printf '\(answers)' >answers; : >asked")
        let words = program == obscura ? [obscura, "mount"] : [program]
        return try place.run(
            ["/usr/bin/env", "-i"] + variables + words + [place.vault, place.mountPoint] + options)
    }

    private var path: String { "PATH=\(place.root)/bin" }
    private var prompt: String { "Password for \(place.vault):" }
    private static let refusal = "No space opens with this password."

    @Test func `without a terminal OBSCURA_ASKPASS is asked, and again after a wrong password`() throws {
        let variables = [path, "OBSCURA_ASKPASS=\(place.root)/ask"]
        let mounted = try mount(variables, answers: "wrong\\none\\n")
        #expect(mounted.status == 0, "\(mounted.errors)")
        #expect(try asked == [prompt, Self.refusal, prompt])
        try place.unmount()
        // Three times in all.
        #expect(try mount(variables, answers: "a\\nb\\nc\\none\\n").status == 4)
        #expect(try asked.filter { $0 == prompt }.count == 3)
        // A program that prints the same again is no person.
        #expect(try mount(variables, answers: "a\\na\\none\\n").status == 4)
        #expect(try asked.filter { $0 == prompt }.count == 2)
        let cancelled = try mount(["OBSCURA_ASKPASS=/bin/false"], answers: "")
        #expect(cancelled.status == 1 && cancelled.errors.contains("no password was given"))
        #expect(try place.files(place.mountPoint).isEmpty)
    }

    @Test func `for mount(8), which clears PATH and HOME, and by the command of askpass=`() throws {
        try place.shell("ln -s '\(obscura)' mount.obscura")
        let helper = place.root + "/mount.obscura"
        let mounted = try mount(["OBSCURA_ASKPASS=\(place.root)/ask"], answers: "one\\n", program: helper)
        #expect(mounted.status == 0, "\(mounted.errors)")
        try place.unmount()
        let again = try mount(
            [path], answers: "wrong\\none\\n", program: helper, options: ["-o", "askpass=. ./answer"])
        #expect(again.status == 0, "\(again.errors)")
        try place.unmount()
    }

    @Test func `where a display answers, SSH_ASKPASS comes before pinentry, zenity and kdialog`() throws {
        let display = try ListeningSocket(at: place.root + "/run/wayland-7")
        defer { display.close() }
        let desktop = [path, "WAYLAND_DISPLAY=wayland-7", "XDG_RUNTIME_DIR=\(place.root)/run"]
        #expect(try mount(desktop + ["SSH_ASKPASS=\(place.root)/ask"], answers: "one\\n").status == 0)
        #expect(try asked == [prompt])
        try place.unmount()
        #expect(try mount(desktop, answers: "one\\n").status == 0)
        #expect(try asked.map { $0.prefix(6) } == ["zenity"])
        try place.unmount()
        try place.shell("rm bin/zenity")
        #expect(try mount(desktop, answers: "one\\n").status == 0)
        #expect(try asked.map { $0.prefix(7) } == ["kdialog"])
        try place.unmount()
        // Nothing listens there.
        let none = try mount(
            [path, "WAYLAND_DISPLAY=wayland-8", "SSH_ASKPASS=\(place.root)/ask"], answers: "one\\n")
        #expect(none.status == 2 && none.errors.contains("no terminal"), "\(none.errors)")
        #expect(try asked.isEmpty)
    }

    @Test func `a pinentry is spoken to in its protocol, and left for the next if it cannot show itself`()
        throws
    {
        let display = try ListeningSocket(at: place.root + "/run/wayland-7")
        defer { display.close() }
        let desktop = [path, "WAYLAND_DISPLAY=\(place.root)/run/wayland-7"]
        #expect(
            try place.run(
                [obscura, "passwd", place.vault, "--password-stdin"], "one\nper%cent\n"
            ).status == 0)
        func pinentry(_ answer: String) throws {
            try place.shell(
                """
                cat >bin/pinentry <<'END'
                #!/bin/bash
                echo "OK ready"
                while read -r line; do
                    echo "$line" >>asked
                    if [ "$line" = GETPIN ]; then \(answer); else echo OK; fi
                done
                END
                chmod +x bin/pinentry
                """)
        }
        try pinentry("echo 'S NOTE'; echo 'D per%25'; echo 'D cent'; echo OK")
        #expect(try mount(desktop, answers: "").status == 0)
        #expect(try asked.contains("SETDESC \(prompt)") && !asked.contains { $0.hasPrefix("SETERROR") })
        try place.unmount()
        try pinentry("echo 'D wrong'; echo OK")
        #expect(try mount(desktop, answers: "").status == 4)
        #expect(try asked.contains("SETERROR \(Self.refusal)"))
        try pinentry("echo 'ERR 83886179 cancelled'")
        #expect(try mount(desktop, answers: "per%%cent\\n").status == 1)
        try pinentry("echo 'ERR 83918950 no tty'")
        #expect(try mount(desktop, answers: "per%%cent\\n").status == 0)
        #expect(try asked.last?.hasPrefix("zenity") == true)
        try place.unmount()
    }
}

/// A socket that accepts connections as a display server does.
private struct ListeningSocket {
    private let descriptor: Int32

    init(at path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && listen(descriptor, 100) == 0)
    }

    func close() { _ = Glibc.close(descriptor) }
}
