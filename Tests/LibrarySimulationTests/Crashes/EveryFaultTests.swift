import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestFixtures
import TestSupport
import Testing
import VaultStore

/// Each system call of each operation fails once, in every way it can.
@Suite("Crashes: each system call fails") struct EveryFaultTests {
    /// Something that a user does.
    struct Deed: Sendable, CustomTestStringConvertible {
        let name: String
        /// Paths it may change, or leave half done where it fails; all else must stay as it was.
        let touched: [String]
        /// One of so many calls is tried.
        let distance: Int
        let prepare: @Sendable (FaultSession) throws -> Void
        let body: @Sendable (FaultSession) throws -> Void

        var testDescription: String { name }

        init(
            _ name: String, touches touched: [String] = [], one distance: Int = 1,
            after prepare: @escaping @Sendable (FaultSession) throws -> Void = { _ in },
            _ body: @escaping @Sendable (FaultSession) throws -> Void
        ) {
            self.name = name
            self.touched = touched
            self.distance = distance
            self.prepare = prepare
            self.body = body
        }
    }

    private static let large: @Sendable (FaultSession) throws -> Void = {
        try $0.put("albums/n", noise(300_000, seed: 2))
    }

    private static let photo: @Sendable (FaultSession) throws -> Void = {
        try $0.put("albums/n.jpg", jpeg("2024-06-01", more: 9))
    }

    private static let largePhoto: @Sendable (FaultSession) throws -> Void = {
        try $0.put("albums/n.jpg", jpeg("2024-06-01", more: 9) + noise(300_000, seed: 3))
    }

    static let deeds = [
        Deed("a small file", touches: ["/albums/n"]) { try $0.put("albums/n", noise(2000, seed: 7)) },
        Deed("a large file", touches: ["/albums/n"]) { try $0.put("albums/n", noise(500_000, seed: 8)) },
        Deed("a photo", touches: ["/albums/n.jpg", "/moments/2024-06-01"]) {
            try $0.put("albums/n.jpg", jpeg("2024-06-01", more: 9, size: 30_000))
        },
        Deed("another file over it", touches: ["/albums/n", "/albums/m"], after: large) {
            try $0.put("albums/m", noise(200_000, seed: 9))
            try $0.mv("albums/m", "albums/n")
        },
        Deed("in the middle of it", touches: ["/albums/n"], after: large) { session in
            let file = try session.open("albums/n")
            defer { session.library.release(file) }
            try session.write(file, noise(140_000, seed: 10), at: 100_000)
            try session.library.fsync(file, dataOnly: false)
        },
        Deed("a cut", touches: ["/albums/n"], after: large) { try $0.truncate("albums/n", 150_001) },
        Deed("a removal", touches: ["/albums/n"], after: large) { try $0.rm("albums/n") },
        Deed(
            "a part of a photo", touches: ["/albums/n.jpg", "/albums/.versions", "/moments/2024-06-01"],
            one: 3,
            after: largePhoto
        ) { session in
            let file = try session.open("albums/n.jpg")
            defer { session.library.release(file) }
            try session.write(file, noise(140_000, seed: 10), at: 100_000)
            try session.library.fsync(file, dataOnly: false)
        },
        Deed("a photo's end", touches: ["/albums/n.jpg", "/moments/2024-06-01"], after: photo) {
            try $0.rm("moments/2024-06-01/n.jpg")
            for _ in 0..<3 {
                $0.commit(durable: true)
                $0.library.session.space.eraser.overwrite(most: 1 << 20)
            }
        },
        Deed("an import", touches: ["/moments/2024-06-01"]) {
            try $0.bring("i.jpg", jpeg("2024-06-01", size: 60_000))
        },
        Deed("a thumbnail") { _ = try $0.get("albums/.thumbs/kept.jpg") },
        Deed("reading") { _ = try $0.dump() },
        Deed("a soft commit", touches: ["/albums/n"]) {
            try $0.put("albums/n", noise(30_000, seed: 11))
            $0.commit(durable: false)
        },
        Deed("an unmount and a mount", touches: ["/albums/n"], one: 7) {
            try $0.put("albums/n", noise(30_000, seed: 12))
            try $0.unmount()
            try $0.mount()
        },
    ]

    /// Each fault with a number of spaces, and a kind of vault.
    static let faults: [(FaultyCalls.Fault, spaces: Int, size: MemoryVault.SizeClass)] = [
        (.error(.inputOutput), 3, .least), (.error(.noSpace), 1, .usual), (.error(.quotaExceeded), 2, .usual),
        (.short, 1, .least),
    ]

    @Test(arguments: deeds) func `each call fails once, and nothing else is harmed`(deed: Deed) throws {
        var count = 0
        for (fault, spaces, size) in Self.faults {
            let session = try FaultSession(try MemoryVault(spaces: spaces, size))
            defer { session.kill() }
            try session.put("albums/kept", noise(200_000))
            try session.put("albums/kept.jpg", jpeg("2024-05-01", more: 1, size: 20_000))
            // With the least limits the same is done by many more calls, of which some are tried.
            let distance = (size == .least ? 13 : 1) * deed.distance
            var number = 0
            while try suffer(deed, fault, number, session) {
                number += distance
                count += 1
            }
            #expect(number > 0)
        }
        print("faults: \(count) in \(deed.name)")
    }

    /// Does the deed, and makes it durable, with a fault at its call of that number; false where it has fewer.
    private func suffer(
        _ deed: Deed, _ fault: FaultyCalls.Fault, _ number: Int, _ session: FaultSession
    ) throws -> Bool {
        let comment: Comment = "\(deed.name), call \(number), \(fault)"
        try deed.prepare(session)
        try session.makeDurable()
        let before = try session.dump()
        session.calls.inject(fault, after: number)
        var failure: (any Error)?
        do {
            try deed.body(session)
            try session.makeDurable()
        } catch { failure = error }
        let isOver = session.calls.isFaultDue
        session.calls.injectNothing()
        if !session.isMounted { try session.mount() }
        // A short count is no error.
        if fault == .short || isOver { #expect(failure == nil, comment) }
        // A segment whose sync fails when it is closed is told of by the next commit.
        if failure == nil, !isOver { try? session.makeDurable() }
        let after = try session.dump()
        #expect(others(after, deed).difference(from: others(before, deed)) == "", comment)
        // The space can be written again, and its state can be made durable.
        try session.put("albums/after", noise(5000, seed: number))
        try session.makeDurable()
        if number % 4 == 0 {
            let now = try session.dump()
            #expect(try session.treeAfterPowerCut().difference(from: now) == "", comment)
        }
        try session.rm("albums/after")
        for path in deed.touched where session.exists(path) {
            if path.hasPrefix("/moments") {
                for name in try session.ls(path) { try session.rm(path + "/" + name) }
            } else {
                try session.rm(path)
            }
        }
        return !isOver
    }

    /// The files that the operation does not touch.
    private func others(_ tree: TreeDump, _ deed: Deed) -> TreeDump {
        TreeDump(entries: tree.entries.filter { path, _ in !deed.touched.contains { path.hasPrefix($0) } })
    }

    // MARK: Mounting

    /// A fault at each call of a mount: it fails and says so, or it succeeds; the next one finds all files.
    @Test(arguments: [1, 2], [true, false])
    func `each call of a mount fails once`(spaces: Int, isSoft: Bool) throws {
        let vault = try MemoryVault(spaces: spaces, segments: 6)
        let session = try FaultSession(vault)
        defer { session.kill() }
        try session.put("albums/kept", noise(200_000))
        try session.put("albums/p.jpg", jpeg("2024-05-01", more: 1))
        try session.makeDurable()
        try session.put("albums/last", noise(200_000, seed: 3))
        let tree = try session.dump()
        if isSoft {
            session.commit(durable: false)
            session.kill()
        } else {
            try session.unmount()
        }
        for (index, (fault, _, _)) in Self.faults.enumerated() {
            // The others are tried by the other cases.
            var (number, isOver) = (index + (isSoft ? 4 : 0) + spaces, false)
            while !isOver {
                session.calls.inject(fault, after: number)
                try? session.mount()
                isOver = session.calls.isFaultDue
                session.calls.injectNothing()
                session.kill()
                try session.mount()
                #expect(try session.dump() == tree, "call \(number), \(fault)")
                session.kill()
                number += 5
            }
        }
    }
}
