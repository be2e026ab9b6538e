import LibraryFixtures
import LinuxIO
import TestFixtures
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import TestSupport
@testable import VaultStore

/// The cost of an import, counted in the bytes that it writes.
@Suite("Commands: import, the bytes it writes") struct ImportBytesTests {
    /// Small photos of 20 days, in no order, each different.
    private func bring(_ count: Int, _ user: MemoryUser) throws -> Int {
        var bytes = 0
        for number in 0..<count {
            let day = "2024-05-\(10 + number * 7 % 20)"
            let photo = jpeg(day, more: number, size: 4096)
            try #require(try user.bring("IMG_\(number).jpg", photo) != nil)
            bytes += photo.count
        }
        return bytes
    }

    private func writtenBytes(_ disk: MemoryDisk) -> Int {
        disk.log.reduce(0) { sum, event in
            guard case .wrote(_, let pages) = event else { return sum }
            return sum + pages.reduce(0) { $0 + $1.sectors.count * Geometry.sectorBytes }
        }
    }

    @Test(arguments: [1, 2]) func `small photos cost at most three times their bytes`(spaces: Int) throws {
        let vault = try MemoryVault(spaces: spaces, .usual)
        let disk = MemoryDisk(vault.empty)
        let user = try MemoryUser(vault, disk) {
            $0.commitsByHand = false
            $0.commitsSeldom = true
        }
        let bytes = try bring(1000, user)
        try user.close()
        #expect(writtenBytes(disk) <= 3 * bytes)
    }

    /// Soft commits take slots in turns that the host's page cache still holds, so the disk gets few of their pages.
    @Test(arguments: [1, 2])
    func `pages that change in every soft commit are few places`(spaces: Int) throws {
        let vault = try MemoryVault(spaces: spaces, .usual)
        let disk = MemoryDisk(vault.empty)
        let user = try MemoryUser(vault, disk)
        _ = try bring(20, user)
        user.library.session.committer.commitByHand(durable: true)
        let start = disk.eventCount
        for number in 20..<60 {
            try #require(try user.bring("IMG_\(number).jpg", jpeg("2024-05-10", more: number)) != nil)
            user.library.session.committer.commitByHand(durable: false)
        }
        var (count, places) = (0, Set<[Int]>())
        for case .wrote(let file, let pages) in disk.log[start...] {
            count += pages.count
            for page in pages { places.insert([file, page.index]) }
        }
        #expect(places.count <= count / 3)
        try user.close()
    }

    /// With the least limits every photo finds the page of another waiting, so commits follow each other without end.
    @Test(arguments: [1, 2]) func `an import that must wait for its commits ends, whole`(spaces: Int) throws {
        let vault = try MemoryVault(spaces: spaces, .least)
        let disk = MemoryDisk(vault.empty, isRecording: false)
        let seldom: (inout LibraryOptions) -> Void = {
            $0.limits = .least
            $0.commitsByHand = false
            $0.commitsSeldom = true
        }
        let user = try MemoryUser(vault, disk, seldom)
        let before = user.library.session.space.newestDurable
        _ = try bring(60, user)
        #expect(eventually { user.library.session.space.newestDurable > before })
        try user.close()
        let again = try MemoryUser(vault, disk)
        #expect(try again.library.walk.photoCount() == 60)
        try again.close()
    }

    /// More changed inodes than may be cached are no reason to look through all of them before each operation.
    @Test func `changed inodes that fill the cache are written, so that it can drop them`() throws {
        let vault = try MemoryVault(spaces: 1, .least)
        let disk = MemoryDisk(vault.empty, isRecording: false)
        let user = try MemoryUser(vault, disk) { $0.limits = .least }
        _ = try bring(20, user)
        // No commit was made: `MemoryUser` makes them by hand.
        let waiting = try user.library.session.locked { tree in tree.cachedInodeCount }
        #expect(waiting <= 2)
        try user.close()
    }
}
