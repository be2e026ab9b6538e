import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestFixtures
import TestSupport
import Testing
import VaultCatalogue
import VaultStore

/// Edits of photos while a system call fails: the former bytes are in the photo or in its version.
@Suite("Crashes: a version that cannot be kept") struct VersionFaultTests {
    private static let path = "albums/n.jpg"
    private static let version = "albums/.versions/n.jpg/original"
    private let old = jpeg("2024-06-01", more: 9) + noise(400_000, seed: 4)

    private func edit(_ session: FaultSession, isWhole: Bool) throws {
        let file = try session.open(Self.path, isWhole ? O_RDWR | O_TRUNC : O_RDWR)
        defer { session.library.release(file) }
        try session.write(file, noise(140_000, seed: 10), at: isWhole ? 0 : 100_000)
        try session.library.flush(file)
    }

    private func edited(isWhole: Bool) -> [UInt8] {
        let new = noise(140_000, seed: 10)
        if isWhole { return new }
        var bytes = old
        bytes.replaceSubrange(100_000..<240_000, with: new)
        return bytes
    }

    /// What a mount has: the photo as it was, or any state of the edit, with the version.
    private func expectNothingLost(
        _ user: some LibraryUser, isWhole: Bool, failed: Bool, _ comment: Comment
    ) throws {
        let photo = try user.get(Self.path)
        if photo == old {
            #expect(failed, comment)
            return
        }
        let isKept = try user.get(Self.version) == old
        #expect(isKept, comment)
        if !failed { #expect(photo == edited(isWhole: isWhole), comment) }
    }

    @Test(arguments: [false, true], [FaultyCalls.Fault.error(.inputOutput), .error(.noSpace)])
    func `the edit is refused or goes on, and nothing is lost`(isWhole: Bool, fault: FaultyCalls.Fault) throws
    {
        var (number, isOver) = (0, false)
        while !isOver {
            let comment: Comment = "call \(number), \(fault)"
            let session = try FaultSession(try MemoryVault(spaces: isWhole ? 2 : 1, .least))
            defer { session.kill() }
            try session.put(Self.path, old)
            try session.makeDurable()
            session.calls.inject(fault, after: number)
            var failed = false
            do {
                try edit(session, isWhole: isWhole)
                try session.makeDurable()
            } catch is FileError { failed = true }
            isOver = session.calls.isFaultDue
            session.calls.injectNothing()
            if isOver { #expect(!failed, comment) }
            try expectNothingLost(session, isWhole: isWhole, failed: failed, comment)
            // Killed now, and mounted again.
            session.kill()
            try session.mount()
            try expectNothingLost(session, isWhole: isWhole, failed: failed, comment)
            // The next attempt keeps it.
            try edit(session, isWhole: isWhole)
            try session.makeDurable()
            try expectNothingLost(session, isWhole: isWhole, failed: false, comment)
            number += 3
        }
        #expect(number > 3)
    }

    /// The catalogue cannot be read when the version is to be made.
    @Test func `an edit is refused where no version can be made`() throws {
        let session = try FaultSession(try MemoryVault(spaces: 2, .least))
        defer { session.kill() }
        try session.put(Self.path, old)
        try session.makeDurable()
        let ino = try session.ino(Self.path)
        let row = try session.library.session.change { change throws(FileError) in
            let inode = try change.tree.inode(ino)
            let row = try change.tree.photos.photo(inode)
            try change.tree.tables.photos.delete(ino)
            return row
        }
        expectError(.damaged) { try edit(session, isWhole: false) }
        #expect(try session.get(Self.path) == old)
        #expect(!session.exists("albums/.versions"))
        try session.library.session.change { change throws(FileError) in
            try change.tree.tables.photos.store(row)
        }
        try edit(session, isWhole: false)
        try expectNothingLost(session, isWhole: false, failed: false, "after the failure")
    }

    /// The room for the edit is that of the version's own bytes.
    @Test func `an edit in a full space is refused or goes on, and nothing is lost`() throws {
        let session = try FaultSession(try MemoryVault(spaces: 2, .usual))
        defer { session.kill() }
        try session.put(Self.path, old)
        try session.makeDurable()
        var count = 0
        while true {
            do { try session.put("albums/f\(count)", noise(200_000, seed: count)) } catch FileError.noRoom {
                break
            }
            count += 1
        }
        while true {
            do { try session.put("albums/g\(count)", noise(3000, seed: count)) } catch FileError.noRoom {
                break
            }
            count += 1
        }
        var isRefused = false
        do { try edit(session, isWhole: false) } catch FileError.noRoom { isRefused = true }
        let photo = try session.get(Self.path)
        if isRefused && photo != old { #expect(try session.get(Self.version) == old) }
        try session.makeDurable()
        for number in 0..<count where session.exists("albums/f\(number)") {
            try session.rm("albums/f\(number)")
        }
        for _ in 0..<3 { try session.makeDurable() }
        try edit(session, isWhole: false)
        #expect(try session.get(Self.path) == edited(isWhole: false))
    }
}
