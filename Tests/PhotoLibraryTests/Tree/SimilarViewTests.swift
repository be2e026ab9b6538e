import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultCatalogue

/// Groups of similar photos in `views/similar`.
@Suite("The tree: similar photos in views") struct SimilarViewTests {
    private let fixture: Fixture

    init() throws {
        fixture = try Fixture()
        try reopen()
    }

    /// Opens the library anew with a new maker of pictures.
    @discardableResult
    private func reopen(trashDays: Int = 30) throws -> StandInMaker {
        let maker = StandInMaker()
        try fixture.close()
        try fixture.reopen {
            $0.views = true
            $0.pictureMaker = maker
            $0.settleMilliseconds = 0
            $0.workerCount = 1
            $0.trashDays = trashDays
        }
        return maker
    }

    private static let first: UInt64 = 0x1234_5678_9ABC_DEF0
    private static let second: UInt64 = 0xF0F0_1111_2222_4444

    /// A photo whose picture has that hash.
    private func photo(_ hash: UInt64, _ day: String = "2024-05-01", more: Int) -> [UInt8] {
        var bytes = jpeg(day, more: more)
        let digits = String(hash, radix: 16)
        let text = Array("alike \(String(repeating: "0", count: 16 - digits.count))\(digits)".utf8)
        bytes.insert(contentsOf: [0xFF, 0xFE, 0, UInt8(text.count + 2)] + text, at: 2)
        return bytes
    }

    private func awaitHashes(_ count: Int) throws {
        let isDone = eventually {
            // Photos that were removed lose theirs.
            _ = try? self.fixture.ls("views/recent")
            let found = try? self.fixture.library.session.locked { tree throws(FileError) in
                var count = 0
                _ = try tree.tables.likenesses.eachHash(from: 0, blocks: 1000) { _, _ in count += 1 }
                return count
            }
            return found == count
        }
        try #require(isDone)
    }

    /// Three photos that are similar, two others that are, and one that is like none.
    private func fill() throws {
        for number in 1...3 {
            try fixture.put("albums/a\(number).jpg", photo(Self.first ^ UInt64(number), more: number))
        }
        for number in 1...2 {
            try fixture.put(
                "albums/b\(number).jpg", photo(Self.second, "2023-02-0\(number)", more: 10 + number))
        }
        try fixture.put("albums/c.jpg", photo(0xFFFF << 20, more: 20))
        try fixture.put("albums/flat.jpg", jpeg(more: 30))
        try awaitHashes(6)
    }

    private func names(_ path: String) throws -> [String] { try fixture.list(path).map(\.name.description) }

    @Test func `groups are listed, the largest first, and hold the photos themselves`() throws {
        try fill()
        #expect(try names("views/similar") == ["0001 a1.jpg", "0002 b1.jpg"])
        #expect(try fixture.ls("views/similar/0001 a1.jpg") == ["a1.jpg", "a2.jpg", "a3.jpg"])
        #expect(try fixture.ls("views/similar/0002 b1.jpg") == ["b1.jpg", "b2.jpg"])
        let path = "views/similar/0002 b1.jpg/b2.jpg"
        #expect(try fixture.stat(path) == fixture.stat("moments/2023-02-02/b2.jpg"))
        #expect(try fixture.get(path) == fixture.get("albums/b2.jpg"))
        #expect(try fixture.stat("views/similar").mode == 0o40700)
        #expect(try fixture.stat("views/similar/0001 a1.jpg").mode == 0o40700)
        for missing in [
            "0001 a1.jpg/b1.jpg", "0001 c.jpg", "a1.jpg", "1 a1.jpg", "0001a1.jpg", ".hidden", "x",
        ] {
            expectError(.noEntry) { _ = try fixture.stat("views/similar/" + missing) }
        }
        let picture = try fixture.get("moments/2024-05-01/.thumbs/a2.jpg")
        #expect(try fixture.get("views/similar/0001 a1.jpg/.thumbs/a2.jpg") == picture)
        #expect(try fixture.ls("views/similar/0001 a1.jpg/.thumbs") == ["a1.jpg", "a2.jpg", "a3.jpg"])
        // They are there in the next session without being hashed again.
        let maker = try reopen()
        #expect(try names("views/similar") == ["0001 a1.jpg", "0002 b1.jpg"])
        try fixture.put("albums/new.jpg", photo(0xFFFF << 30, more: 99))
        try awaitHashes(7)
        #expect(maker.hashed == 1)
        try fixture.close()
        try fixture.reopen {
            $0.views = true
            $0.readOnly = true
        }
        #expect(try fixture.ls("views/similar/0002 b1.jpg") == ["b1.jpg", "b2.jpg"])
        expectError(.readOnly) { try fixture.rm("views/similar/0002 b1.jpg/b1.jpg") }
        try fixture.close()
    }

    @Test func `removing a photo there removes it as in moments, and nothing else`() throws {
        try fill()
        try fixture.put("albums/a2.jpg.xmp", Array("<x/>".utf8))
        try fixture.put("moments/2024-05-01/a2.jpg.xmp", Array("<y/>".utf8))
        #expect(try names("views/similar").count == 2)
        try fixture.rm("views/similar/0001 a1.jpg/a2.jpg")
        #expect(!fixture.exists("moments/2024-05-01/a2.jpg") && !fixture.exists("albums/a2.jpg"))
        #expect(try fixture.ls(".Trash-0/files").contains("a2.jpg"))
        #expect(try fixture.ls("moments/2024-05-01") == ["a1.jpg", "a3.jpg", "c.jpg", "flat.jpg"])
        #expect(try fixture.ls("albums").contains("a3.jpg"))
        // The group keeps its name and its other photos; the first one may go too.
        #expect(try names("views/similar") == ["0001 a1.jpg", "0002 b1.jpg"])
        try fixture.rm("views/similar/0001 a1.jpg/a1.jpg")
        #expect(try fixture.ls("views/similar/0001 a1.jpg") == ["a3.jpg"])
        #expect(try names("views/similar") == ["0001 b1.jpg"])
        expectError(.notEmpty) { try fixture.rmdir("views/similar/0001 a1.jpg") }
        try fixture.rm("views/similar/0001 a1.jpg/a3.jpg")
        try fixture.rmdir("views/similar/0001 a1.jpg")
        #expect(try fixture.ls("moments/2024-05-01") == ["c.jpg", "flat.jpg"])
        #expect(try fixture.ls("moments/2023-02-01") == ["b1.jpg"])
        expectError(.noEntry) { try fixture.rm("views/similar/0001 b1.jpg/a3.jpg") }
        // Back from the trash, a photo is similar again.
        for name in ["a1.jpg", "a3.jpg"] { try fixture.mv(".Trash-0/files/\(name)", "albums/\(name)") }
        try awaitHashes(5)
        #expect(try fixture.ls("views/similar/0001 a1.jpg") == ["a1.jpg", "a3.jpg"])
        try fixture.close()
    }

    @Test func `a file manager's trash takes a photo as from moments`() throws {
        try fill()
        #expect(try names("views/similar").count == 2)
        try fixture.rm("moments/2024-05-01/c.jpg")
        try fixture.mv("views/similar/0002 b1.jpg/b2.jpg", ".Trash-0/files/b2.jpg")
        #expect(!fixture.exists("moments/2023-02-02/b2.jpg") && !fixture.exists("albums/b2.jpg"))
        #expect(try fixture.ls("views/similar/0002 b1.jpg") == ["b1.jpg"])
        try fixture.mv(".Trash-0/files/b2.jpg", "moments/2023-02-02/b2.jpg")
        #expect(fixture.exists("albums/b2.jpg"))
        // Nowhere else, and nothing else.
        expectError(.readOnly) { try fixture.mv("views/similar/0001 a1.jpg/a2.jpg", "albums/x.jpg") }
        expectError(.readOnly) { try fixture.mv("albums/a1.jpg", "views/similar/0001 a1.jpg/c.jpg") }
        expectError(.readOnly) { try fixture.mv("views/recent/a2.jpg", ".Trash-0/files/a2.jpg") }
        expectError(.readOnly) { try fixture.mv("views/similar/0001 a1.jpg", ".Trash-0/files/a") }
        expectError(.readOnly) { try fixture.rm("views/recent/a2.jpg") }
        expectError(.readOnly) { try fixture.put("views/similar/0001 a1.jpg/new.jpg", [1]) }
        expectError(.readOnly) { try fixture.mkdir("views/similar/new") }
        expectError(.readOnly) { try fixture.rmdir("views/similar") }
        try fixture.close()
    }

    @Test(arguments: [0, 30])
    func `groups keep their names while others grow beyond them`(trashDays: Int) throws {
        try reopen(trashDays: trashDays)
        try fill()
        #expect(try names("views/similar") == ["0001 a1.jpg", "0002 b1.jpg"])
        for number in 3...5 {
            try fixture.put("albums/b\(number).jpg", photo(Self.second ^ 2, "2022-01-01", more: 40 + number))
        }
        try awaitHashes(9)
        // By the name of before too: a window shows it.
        #expect(try fixture.ls("views/similar/0001 a1.jpg") == ["a1.jpg", "a2.jpg", "a3.jpg"])
        #expect(try names("views/similar") == ["0001 b1.jpg", "0002 a1.jpg"])
        #expect(
            try fixture.stat("views/similar/0001 a1.jpg").ino == fixture.stat("views/similar/0002 a1.jpg").ino
        )
        try fixture.rm("views/similar/0001 a1.jpg/a1.jpg")
        #expect(fixture.exists("moments/2023-02-01/b1.jpg"))
        // Another photo comes, and the first one is gone: still the same group.
        try awaitHashes(8)
        try fixture.put("albums/a9.jpg", photo(Self.first ^ 8, more: 60))
        try awaitHashes(9)
        #expect(try names("views/similar") == ["0001 b1.jpg", "0002 a1.jpg"])
        #expect(try fixture.ls("views/similar/0002 a1.jpg") == ["a2.jpg", "a3.jpg", "a9.jpg"])
        try fixture.close()
    }

    /// The bytes that were hashed are not the photo's any more, and the search has passed it.
    @Test func `a photo that changes while its picture is made is hashed`() throws {
        let maker = try reopen()
        maker.holdUp()
        try fixture.put("albums/a1.jpg", photo(Self.first, more: 1))
        try #require(eventually { maker.orders.count == 1 })
        let handle = try fixture.open("albums/a1.jpg", O_RDWR)
        try fixture.write(handle, photo(Self.second, more: 2))
        try fixture.library.fsync(handle, dataOnly: false)
        try fixture.close(handle)
        maker.letGo()
        try awaitHashes(1)
        let ino = try fixture.ino("albums/a1.jpg")
        let found = try fixture.library.session.locked { tree throws(FileError) in
            try tree.likenesses.likeness(of: ino)
        }
        #expect(found == .hash(Self.second))
        try fixture.close()
    }

    /// As by a program that syncs it and keeps it open.
    @Test func `a photo that is passed over while it is edited is hashed at its close`() throws {
        try fixture.put("albums/a1.jpg", photo(Self.first, more: 1))
        try awaitHashes(1)
        let handle = try fixture.open("albums/a1.jpg", O_RDWR)
        try fixture.write(handle, photo(Self.second, more: 2))
        try fixture.library.fsync(handle, dataOnly: false)
        try #require(
            eventually {
                (try? self.fixture.library.session.locked { tree throws(FileError) in
                    try tree.pendingPictures.hasThumbnailPending()
                }) == false
            })
        try awaitHashes(0)
        try fixture.close(handle)
        try awaitHashes(1)
        try fixture.close()
    }

    /// The client's request takes the place of the one whose picture was to be hashed.
    @Test func `a photo is hashed although a client asks for its picture meanwhile`() throws {
        let maker = try reopen()
        maker.holdUp()
        try fixture.put("albums/a1.jpg", photo(Self.first, more: 1))
        try #require(eventually { maker.orders.count == 1 })
        let asked = Background { try? self.fixture.get("albums/.thumbs/a1.jpg") }
        try #require(eventually { maker.orders.count == 2 && maker.cancellations == 1 })
        maker.letGo()
        #expect(asked.result()?.isEmpty == false)
        try awaitHashes(1)
        try fixture.close()
    }

    @Test func `an edited photo is hashed anew`() throws {
        try fill()
        #expect(try fixture.ls("views/similar/0002 b1.jpg").count == 2)
        try fixture.put("albums/b2.jpg", photo(Self.first, "2023-02-02", more: 70))
        try awaitHashes(6)
        try #require(eventually { (try? self.names("views/similar").count) == 1 })
        #expect(try fixture.ls("views/similar/0001 a1.jpg") == ["a1.jpg", "a2.jpg", "a3.jpg", "b2.jpg"])
        try fixture.close()
    }

    @Test func `a raw file and its picture are no group, two of them with another are`() throws {
        let digits = String(Self.first, radix: 16)
        let rawBytes = raw("2024-05-01", more: 1) + Array("alike \(digits)".utf8)
        try fixture.put("albums/r.dng", rawBytes)
        try fixture.put("albums/r.jpg", photo(Self.first, more: 2))
        try awaitHashes(2)
        #expect(try names("views/similar").isEmpty)
        try fixture.put("albums/s.jpg", photo(Self.first, "2024-05-02", more: 3))
        try awaitHashes(3)
        #expect(try fixture.ls("views/similar/0001 r.dng") == ["r.dng", "r.jpg", "s.jpg"])
        try fixture.close()
    }

    @Test func `the smallest limits show fewer groups, and lose nothing`() throws {
        let fixture = try Fixture(limits: .least)
        try fixture.close()
        try fixture.reopen {
            $0.views = true
            $0.pictureMaker = StandInMaker()
            $0.settleMilliseconds = 0
        }
        for number in 0..<12 {
            let hash = Self.first ^ UInt64(number / 2) &* 0x9E37_79B9_7F4A_7C15
            try fixture.put("albums/p\(number).jpg", photo(hash, more: number))
        }
        let isDone = eventually { ((try? fixture.list("views/similar").count) ?? 0) == 4 }
        try #require(isDone)
        let names = try fixture.list("views/similar").map(\.name.description)
        for name in names {
            let photos = try fixture.ls("views/similar/" + name)
            #expect(photos.count == 2)
            try fixture.rm("views/similar/\(name)/\(photos[0])")
        }
        #expect(try fixture.ls("moments/2024-05-01").count == 8)
        try fixture.close()
    }
}
