import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Copies of a mount's photos that file managers keep in clear do not outlive the mount.
@Suite("Secrets: the desktop's thumbnails", .serialized, .waiting) struct CacheSweepTests {
    private let place: Place

    init() throws { place = try Place() }

    /// Mounts, and waits for the end of the sweep that follows: later additions of a test are the next one's.
    private func mount(options: String = "rw") throws {
        try place.mount(options: options)
        try expectNoSweep()
    }

    private func expectNoSweep(location: SourceLocation = #_sourceLocation) throws {
        let sweeps = ["pgrep", "-f", "--", "--swee[p] .*\(place.root)/"]
        #expect(try eventually { try place.run(sweeps).status == 1 }, sourceLocation: location)
    }

    /// Puts an entry for a file below the mount, and one for another, into a cache; both paths.
    private func fill(_ cache: String = ".cache", below directory: String? = nil) throws -> [String] {
        let normal = "\(place.root)/\(cache)/thumbnails/normal"
        try FileManager.default.createDirectory(atPath: normal, withIntermediateDirectories: true)
        let files = ["\(directory ?? place.mountPoint)/albums/a.jpg", place.root + "/source/a.jpg"]
        return try files.enumerated().map { index, file in
            let path = "\(normal)/\(index).png"
            try Data(cacheEntry("file://" + file)).write(to: URL(fileURLWithPath: path))
            return path
        }
    }

    private func expectSwept(_ entries: [String], location: SourceLocation = #_sourceLocation) {
        #expect(!exists(entries[0]) && exists(entries[1]), sourceLocation: location)
    }

    @Test func `when unmount returns, the pictures are gone`() throws {
        try mount()
        let entries = try fill()
        try place.unmount()
        expectSwept(entries)
    }

    @Test func `pictures are gone also by fusermount3, by a signal, and when idle`() throws {
        for end in ["patiently fusermount3 -u D", "kill -TERM $(pgrep -f -- \"--daemon .*$PWD/D$\")", "true"]
        {
            try mount(options: end == "true" ? "idle=10s" : "rw")
            let entries = try fill()
            try place.shell(end)
            #expect(eventually { place.daemon == nil })
            expectSwept(entries)
        }
    }

    @Test func `after a crash the next mount removes the pictures`() throws {
        try mount()
        let entries = try fill()
        kill(try #require(place.daemon), SIGKILL)
        #expect(eventually { place.daemon == nil })
        #expect(exists(entries[0]))
        try place.mount()
        #expect(eventually { !exists(entries[0]) })
        #expect(exists(entries[1]))
        try place.unmount()
    }

    @Test func `under every name of the mount point, in the cache that the environment names`() throws {
        try place.shell(
            """
            mkdir elsewhere; ln -s ../D elsewhere/Photos
            printf 'one\\n' | XDG_CACHE_HOME=$PWD/caches '\(obscura)' mount V elsewhere/Photos --password-stdin
            """)
        try expectNoSweep()
        let other = try fill()
        let entries = try fill("caches")
        let linked = try fill("caches", below: place.root + "/elsewhere/Photos")
        try place.unmount()
        expectSwept(entries)
        expectSwept(linked)
        #expect(exists(other[0]))
    }

    @Test func `root mounts for a user: it is the user's cache`() throws {
        guard geteuid() == 0 else {
            // For anyone else the option is not about caches.
            try mount(options: "uid=1")
            let entries = try fill()
            try place.unmount()
            return expectSwept(entries)
        }
        let user = 65_534
        let own = try fill()
        let entries = try fill("ada/.cache")
        // In a namespace where that user has a home.
        try place.shell(
            """
            chmod 755 .; chown -R \(user) ada
            sed 's|^nobody:.*|nobody:x:\(user):\(user)::'$PWD'/ada:/bin/sh|' /etc/passwd >passwd
            unshare -m --propagation slave /bin/bash -e <<'END'
            mount --bind passwd /etc/passwd
            cd ada/.cache/thumbnails/normal
            cp 0.png '\(place.root)'
            printf 'one\\n' | '\(obscura)' mount '\(place.vault)' '\(place.mountPoint)' --password-stdin -o uid=\(user)
            while pgrep -f -- "--swee[p] .*\(place.root)/" >/dev/null; do sleep 0.1; done
            setpriv --reuid=\(user) --regid=\(user) --clear-groups cp '\(place.root)/0.png' new.png
            cp '\(place.root)/0.png' roots.png
            '\(obscura)' unmount '\(place.mountPoint)'
            END
            """)
        let normal = place.root + "/ada/.cache/thumbnails/normal"
        #expect(!exists(normal + "/new.png") && exists(normal + "/roots.png") && exists(entries[1]))
        #expect(exists(own[0]))
    }
}
