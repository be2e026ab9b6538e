import Foundation
import TestSupport
import TestThreads
import Testing

/// `mount --remember`, with a script in the place of secret-tool(1).
@Suite("Passwords: the keyring", .serialized, .waiting)
struct KeyringTests {
    private let place: Place

    /// The script keeps the password in `kept` and notes its arguments in `asked`. `answer` types for the user; no
    /// program of this computer's desktop is in PATH.
    init() throws { place = try Self.makePlace(spaces: 1) }

    private static func makePlace(spaces: Int) throws -> Place {
        let place = try Place(spaces: spaces)
        try place.shell(
            """
            mkdir bin; : >asked
            cat >bin/secret-tool <<'END'
            #!/bin/sh
            printf '%s\\n' "$@" >>asked; env >>asked
            [ ! -e broken ] || exit 1
            case $1 in
            store) cat >kept ;;
            lookup) cat kept 2>/dev/null ;;
            esac
            END
            printf '#!/bin/sh\\necho typed >>asked; cat answer\\n' >ask
            chmod +x ask bin/*; echo one >answer
            for name in sh cat env fusermount3; do ln -s "$(command -v $name)" bin/; done
            """)
        return place
    }

    private func mount(
        _ options: [String] = ["--remember"], at place: Place? = nil, input: String = ""
    ) throws -> Ended {
        let place = place ?? self.place
        try place.shell(": >asked")
        return try place.run(
            [
                "/usr/bin/env", "-i", "PATH=\(place.root)/bin", "OBSCURA_ASKPASS=\(place.root)/ask", obscura,
                "mount", place.vault, place.mountPoint,
            ] + options, input)
    }

    private func lines(_ name: String) throws -> [String] {
        String(decoding: try place.bytes("\(place.root)/\(name)"), as: UTF8.self).split(separator: "\n")
            .map(String.init)
    }

    private var steps: [String] {
        get throws { try lines("asked").filter { ["store", "lookup", "typed"].contains($0) } }
    }

    private var kept: String {
        get throws { String(decoding: try place.bytes(place.root + "/kept"), as: UTF8.self) }
    }

    @Test func `a typed password is kept and then found`() throws {
        let typed = try mount()
        #expect(typed.status == 0 && typed.errors.contains("secret-tool clear application obscura vault"))
        #expect(try steps == ["lookup", "typed", "store"])
        #expect(try lines("asked").contains(place.vault))
        #expect(try !lines("asked").contains { $0 == "one" || $0.hasSuffix("=one") })
        #expect(try kept == "one")
        try place.unmount()
        let found = try mount()
        #expect(found.status == 0 && found.errors.isEmpty, "\(found.errors)")
        #expect(try steps == ["lookup"])
        try place.unmount()
    }

    @Test func `a mount that does not ask for it uses no keyring`() throws {
        #expect(try mount([]).status == 0)
        #expect(try steps == ["typed"])
        try place.unmount()
    }

    @Test func `an outdated password is replaced, and a wrong one is not kept`() throws {
        #expect(try mount().status == 0)
        try place.unmount()
        #expect(
            try place.run([obscura, "passwd", place.vault, "--password-stdin"], "one\ntwo\n").status == 0)
        let wrong = try mount()
        #expect(wrong.status == 4 && wrong.errors.contains("the password in the keyring opens no space"))
        #expect(try !steps.contains("store") && kept == "one")
        try place.shell("echo two >answer")
        #expect(try mount().status == 0)
        #expect(try kept == "two")
        try place.unmount()
    }

    @Test func `a given password comes first and is kept`() throws {
        let given = try mount(["--remember", "--password-stdin"], input: "one\n")
        #expect(given.status == 0, "\(given.errors)")
        #expect(try steps == ["store"] && kept == "one")
        try place.unmount()
    }

    @Test func `of a vault that it makes, with a key file`() throws {
        try place.shell("rm -r V; head -c 100 /dev/urandom >key")
        let words = ["--remember", "--key-file", "key", "--create", "--kdf-memory=8M", "--kdf-passes=1"]
        let several = try mount(words)
        #expect(several.status == 2 && several.errors.contains("--spaces 1"), "\(several.errors)")
        #expect(!exists(place.vault))
        let made = try mount(words + ["--spaces=1", "--password-stdin"], input: "one\n")
        #expect(made.status == 0, "\(made.errors)")
        #expect(try kept == "one")
        try place.unmount()
        #expect(try mount(["--remember", "--key-file", "key"]).status == 0)
        #expect(try steps == ["lookup"])
        try place.unmount()
    }

    @Test func `never of a vault of several spaces`() throws {
        let place = try Self.makePlace(spaces: 2)
        let refused = try mount(at: place)
        #expect(refused.status == 2 && refused.errors.contains("in use"), "\(refused.errors)")
        #expect(try place.bytes(place.root + "/asked").isEmpty)
        #expect(!exists(place.root + "/kept"))
    }

    @Test func `without a keyring`() throws {
        try place.shell("touch broken")
        let failed = try mount()
        #expect(failed.status == 0 && failed.errors.contains("could not be kept"), "\(failed.errors)")
        try place.unmount()
        try place.shell("rm bin/secret-tool")
        let missing = try mount()
        #expect(missing.status == 1 && missing.errors.contains("libsecret-tools"), "\(missing.errors)")
        #expect(try steps.isEmpty)
    }
}
