import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Pictures of formats that only installed programs can draw.
@Suite("Thumbnails: videos by installed programs, through a mount", .serialized, .waiting)
struct InstalledThumbnailerMountTests {
    /// nobody, in every Debian.
    private static let user = 65_534

    /// A place of an ordinary user, also if root runs the tests, with a copy of the program.
    private func makePlace() throws -> Place {
        let place = try Place()
        try place.shell(
            """
            mkdir -p bin data/thumbnailers; cp '\(obscura)' '\(obscura)-worker' bin
            printf 'one\\n' >pw; chmod 600 pw; chmod 755 .
            """)
        if geteuid() == 0 { try place.shell("chown -R \(Self.user):\(Self.user) .") }
        return place
    }

    /// Lines of a shell that is the user's, with thumbnailers of its own.
    @discardableResult
    private func shell(_ place: Place, _ line: String) throws -> String {
        let words =
            geteuid() == 0
            ? ["setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups"] : []
        let environment = ["env", "XDG_DATA_HOME=\(place.root)/data", "XDG_DATA_DIRS=/nonexistent"]
        let ended = try place.run(words + environment + ["/bin/bash", "-ec", line])
        #expect(ended.status == 0, "\(line): \(ended.errors)")
        return ended.output
    }

    /// Registers a script as the thumbnailer of MP4.
    private func install(_ script: String, _ place: Place) throws {
        let program = place.root + "/draw.sh"
        try "#!/bin/sh\n\(script)\n".write(toFile: program, atomically: true, encoding: .utf8)
        try "[Thumbnailer Entry]\nExec=\(program) %i %o\nMimeType=video/mp4\n".write(
            toFile: place.root + "/data/thumbnailers/draw.thumbnailer", atomically: true, encoding: .utf8)
        #expect(chmod(program, 0o755) == 0)
    }

    private func video(_ number: Int = 0) -> [UInt8] {
        [0, 0, 0, 16] + Array("ftypisom".utf8) + [0, 0, 0, 0] + Array("video \(number)".utf8)
    }

    private func drawing() -> String {
        let jpeg = Data(Photo(width: 320, height: 240).bytes).base64EncodedString()
        return "grep -q video \"$1\" && base64 -d >\"$2\" <<'END'\n\(jpeg)\nEND"
    }

    @Test func `a video has the picture that an installed program draws`() throws {
        let place = try makePlace()
        try place.source("v.mp4", video())
        try shell(place, "bin/obscura mount V D --password-file pw; cp source/v.mp4 D/albums")
        #expect(try shell(place, "ls D/albums/.thumbs") == "fast\n")
        #expect(try shell(place, "cat D/albums/.thumbs/v.mp4.jpg 2>&1 || true").contains("No such file"))
        try shell(place, "bin/obscura unmount D")
        try install(drawing(), place)
        try shell(place, "bin/obscura mount V D --password-file pw")
        #expect(try shell(place, "ls D/albums/.thumbs") == "fast\nv.mp4.jpg\n")
        try shell(
            place, "stat -c %s D/albums/.thumbs/v.mp4.jpg >size; cat D/albums/.thumbs/v.mp4.jpg >made.jpg")
        let bytes = try place.bytes(place.root + "/made.jpg")
        let told = try place.bytes(place.root + "/size")
        #expect(String(decoding: told, as: UTF8.self) == "\(bytes.count)\n")
        let picture = try #require(Decoded(bytes))
        #expect((picture.width, picture.height) == (256, 192))
        #expect(picture.isRed(2, 2))
        // It stays when the program goes, and is of the right video.
        try shell(place, "bin/obscura unmount D; rm draw.sh; bin/obscura mount V D --password-file pw")
        #expect(
            try shell(place, "cmp made.jpg D/albums/.thumbs/v.mp4.jpg; ls D/albums/.thumbs")
                == "fast\nv.mp4.jpg\n")
        try shell(place, "bin/obscura unmount D")
    }

    /// More at once than there were threads at first: everything else goes on, and the end of the mount ends them.
    @Test func `those that hang hold up nothing but their own pictures`() throws {
        let place = try makePlace()
        let nap = Int.random(in: 100_000...999_999)
        try install("exec sleep \(nap)", place)
        for number in 0..<20 { try place.source("\(number).mp4", video(number)) }
        try shell(
            place,
            """
            bin/obscura mount V D --password-file pw
            # The kernel looks up one name at a time in a directory.
            for i in {0..19}; do mkdir D/albums/$i; cp source/$i.mp4 D/albums/$i; done
            # Foundation's Process takes a program for running while anybody has what it was given.
            for fd in /proc/$BASHPID/fd/*; do fd=${fd##*/}; if [ $fd -gt 2 ]; then eval "exec $fd>&-"; fi; done
            for i in {0..19}; do cat D/albums/$i/.thumbs/$i.mp4.jpg >/dev/null 2>&1 & done
            for try in {1..600}; do if pgrep -fx 'sleep \(nap)' >/dev/null; then break; fi; sleep 0.05; done
            pgrep -fx 'sleep \(nap)' >/dev/null
            timeout 120 sh -ec 'echo hello >D/albums/a.txt; cat D/albums/a.txt; ls D/moments; rm D/albums/a.txt'
            """)
        kill(try #require(place.daemon), SIGTERM)
        #expect(eventually { place.daemon == nil })
        #expect(try place.run(["pgrep", "-fx", "sleep \(nap)"]).status == 1)
        // They were not undecodable.
        try install(drawing(), place)
        #expect(
            try shell(
                place,
                """
                bin/obscura mount V D --password-file pw
                for i in 0 9 19; do cat D/albums/$i/.thumbs/$i.mp4.jpg >/dev/null && echo there; done
                bin/obscura unmount D
                """) == String(repeating: "there\n", count: 3))
    }

    /// Root may have the environment of somebody else.
    @Test func `root runs only programs of the system`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        try install(drawing(), place)
        try place.source("v.mp4", video())
        try place.shell(
            "export XDG_DATA_HOME=$PWD/data; '\(obscura)' mount V D --password-file pw; cp source/v.mp4 D/albums"
        )
        let ended = try place.run(["cat", place.albums + "/.thumbs/v.mp4.jpg"])
        #expect(ended.status == 1 && ended.output.isEmpty)
        try place.unmount()
    }
}
