import FileRequests
import LibraryFixtures
import PhotoLibrary
import PhotoRules
import Testing
import VaultFormat

@Suite("Albums: extents, and numbers of names") struct ExtentMapTests {
    private func run(_ offset: UInt64, _ length: UInt64, _ sector: UInt64) -> ExtentRun {
        ExtentRun(offset: offset, length: length, sector: sector, generation: 1, epoch: 1)
    }
    private let chunk = Chunk.bytes

    @Test func `runs that follow each other become one`() {
        var map = ExtentMap()
        #expect(map.replace(0, chunk, with: [run(0, chunk, 0)]).isEmpty)
        #expect(map.replace(chunk, 3 * chunk, with: [run(chunk, 2 * chunk, 257)]).isEmpty)
        #expect(map.replace(3 * chunk, 4 * chunk, with: [run(3 * chunk, 10, 771)]).isEmpty)
        #expect(map.pieces.map(\.run) == [run(0, 3 * chunk + 10, 0)])
        #expect(map.allocated == 3 * chunk + 10)
    }

    @Test func `replacing the middle splits`() {
        var map = ExtentMap(saved: [run(0, 4 * chunk, 1000)])
        let removed = map.replace(chunk, 2 * chunk, with: [run(chunk, chunk, 9000)])
        #expect(removed.map(\.run) == [run(chunk, chunk, 1257)])
        #expect(
            map.pieces.map(\.run) == [
                run(0, chunk, 1000), run(chunk, chunk, 9000), run(2 * chunk, 2 * chunk, 1514),
            ])
        let saved = map.markSaved(chunk, 2 * chunk)
        #expect(saved.adopted == [run(chunk, chunk, 9000)])
        #expect(saved.first == 0 && saved.last >= 2 * chunk)
        #expect(saved.rows.count == 3)
    }

    @Test func `cutting the end removes pieces`() {
        var map = ExtentMap(saved: [run(0, 4 * chunk, 0)])
        let removed = map.replace(chunk, UInt64(Int64.max) / chunk * chunk)
        #expect(removed.map(\.run) == [run(chunk, 3 * chunk, 257)])
        #expect(map.pieces.map(\.run) == [run(0, chunk, 0)])
        #expect(map.storedBytes(inChunk: 0) == chunk)
        #expect(map.storedBytes(inChunk: 1) == 0)
    }

    @Test func `names are numbered within their length`() {
        #expect(numberedName(Array("a.jpg".utf8), 2) == Array("a (2).jpg".utf8))
        #expect(numberedName(Array("a".utf8), 12) == Array("a (12)".utf8))
        #expect(numberedName(Array(".a".utf8), 2) == Array(".a (2)".utf8))
        let long = Array(String(repeating: "é", count: 127).utf8) + [65]
        let numbered = numberedName(long, 2)
        #expect(numbered.count <= 255)
        #expect(String(validating: numbered, as: UTF8.self) != nil)
        #expect(isNumberedForm(Array("a (2).jpg".utf8), of: Array("a.jpg".utf8)))
        #expect(!isNumberedForm(Array("b (2).jpg".utf8), of: Array("a.jpg".utf8)))
    }

    /// Numbers that grew by an eighth each time came to an end after some hundred names, and the daemon with them.
    @Test(arguments: ["a.jpg", String(repeating: "é", count: 127)])
    func `thousands of files have one name`(name: String) throws {
        var taken: Set<[UInt8]> = []
        for _ in 0..<3000 {
            var tries = 0
            let free = firstFreeName(Array(name.utf8)) { candidate in
                tries += 1
                return !taken.contains(candidate)
            }
            #expect(tries < 64)
            #expect(free.count <= 255)
            #expect(taken.insert(free).inserted)
        }
    }

    @Test func `days are named and read`() {
        #expect(dayName(20_240_501) == Array("2024-05-01".utf8))
        #expect(dayName(10_101) == Array("0001-01-01".utf8))
        #expect(dayNumber(named: Array("2024-02-29".utf8)) == 20_240_229)
        #expect(dayNumber(named: Array("2023-02-29".utf8)) == nil)
        #expect(backupOriginal(Array("a.jpg_original".utf8)) == Array("a.jpg".utf8))
        #expect(isWorkingName(Array("a.crdownload".utf8)) && !isWorkingName(Array("a.jpg".utf8)))
    }
}
