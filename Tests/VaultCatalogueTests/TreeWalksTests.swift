import CatalogueRows
import TestSupport
import Testing
import VaultFormat

@testable import VaultCatalogue
@testable import VaultStore

/// Pages in memory of a host where each read takes a round trip: it notes which were asked for before they were read.
private final class DistantPages: PageStorage, @unchecked Sendable {
    private var pages: [[UInt8]] = []
    private var asked: Set<UInt32> = []
    private(set) var reads = 0
    private(set) var foreseen = 0
    /// Pages that were asked for, and how often.
    private(set) var requests = 0

    let readsTakeRoundTrips = true
    var pageCount: UInt32 { UInt32(pages.count) }

    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        bytes.copyBytes(from: pages[Int(index)])
        reads += 1
        if asked.contains(index) { foreseen += 1 }
    }

    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {
        while pages.count <= Int(index) { pages.append([UInt8](repeating: 0, count: Geometry.pageBytes)) }
        pages[Int(index)] = Array(bytes)
    }

    func truncatePages(to count: UInt32) { pages = Array(pages.prefix(Int(count))) }

    func willReadPages(_ soon: ArraySlice<UInt32>, later: ArraySlice<UInt32>) {
        asked.formUnion(soon)
        requests += soon.count
    }

    func forget() { (asked, reads, foreseen, requests) = ([], 0, 0, 0) }
}

@Suite("The tree: pages that are asked for ahead") struct TreeWalksTests {
    /// A page of a tree with these children, as a storage numbers them.
    private func interior(_ children: [UInt32], kind: UInt8 = 5, isFirst: Bool = false) -> [UInt8] {
        var page = [UInt8](repeating: 0, count: Geometry.pageBytes)
        let header = isFirst ? 100 : 0
        func set(_ offset: Int, _ value: UInt32, bytes: Int) {
            for index in 0..<bytes {
                page[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * UInt32(bytes - 1 - index)))
            }
        }
        page[header] = kind
        set(header + 3, UInt32(children.count - 1), bytes: 2)
        set(header + 8, children[children.count - 1] &+ 1, bytes: 4)
        for (index, child) in children.dropLast().enumerated() {
            let cell = Geometry.pageBytes - 40 - 8 * (index + 1)
            set(header + 12 + 2 * index, UInt32(cell), bytes: 2)
            set(cell, child &+ 1, bytes: 4)
        }
        return page
    }

    private let leaf = [UInt8](repeating: 13, count: Geometry.pageBytes)

    private func read(_ walks: inout TreeWalks, _ index: UInt32, _ page: [UInt8]) -> [TreeWalks.Next] {
        page.withUnsafeBytes { walks.read(index, $0) }
    }

    @Test(arguments: [2, 5] as [UInt8], [false, true])
    func `children that are read in order are followed by the next ones`(kind: UInt8, isFirst: Bool) {
        var walks = TreeWalks()
        // They lie in any order.
        let children = (0..<200).map { UInt32(1000 + $0 * 37 % 200) }
        let index: UInt32 = isFirst ? 0 : 7
        #expect(read(&walks, index, interior(children, kind: kind, isFirst: isFirst)) == [])
        #expect(read(&walks, children[0], leaf) == [])
        var asked: [UInt32] = []
        for (place, child) in children.enumerated().dropFirst() {
            for next in read(&walks, child, leaf) {
                // Two were read before.
                #expect(next.soon.first == children[asked.count + 2])
                #expect(next.soon.count <= TreeWalks.aheadMax && next.later.count <= TreeWalks.aheadMax)
                // The pages for later come right after them.
                #expect(
                    Array(next.soon + next.later)
                        == Array(
                            children[next.soon.startIndex...].prefix(
                                next.soon.count + next.later.count)))
                asked += next.soon
            }
            #expect(place < 2 || asked.contains(child))
        }
        // Each once.
        #expect(asked == Array(children.dropFirst(2)))
    }

    @Test func `searches are not followed by other pages`() {
        var walks = TreeWalks()
        let children = (0..<200).map { UInt32($0 + 10) }
        #expect(read(&walks, 1, interior(children)) == [])
        for place in [100, 20, 19, 60, 60, 90] { #expect(read(&walks, children[place], leaf) == []) }
    }

    @Test func `a walk goes on in the next page of the tree`() throws {
        var walks = TreeWalks()
        let interiors = (0..<3).map { number in (0..<50).map { UInt32(1000 * (number + 1) + $0) } }
        _ = read(&walks, 1, interior([11, 12, 13]))
        _ = read(&walks, 11, interior(interiors[0]))
        for child in interiors[0] { _ = read(&walks, child, leaf) }
        let next = read(&walks, 12, interior(interiors[1]))
        #expect(next.first?.soon == interiors[1][..<TreeWalks.aheadMax])
        #expect(next.last?.soon == [13])
    }

    @Test func `a page that changes has other children`() {
        var walks = TreeWalks()
        _ = read(&walks, 1, interior([11, 12, 13, 14]))
        _ = read(&walks, 11, leaf)
        walks.wrote(1)
        #expect(read(&walks, 12, leaf) == [])
    }

    @Test func `any bytes may be in a page`() {
        var random = RandomSource(1)
        for _ in 0..<2000 {
            var walks = TreeWalks()
            var page = (0..<Geometry.pageBytes).map { _ in UInt8.random(in: 0...255, using: &random) }
            page[0] = [2, 5].randomElement(using: &random) ?? 2
            page[3] = UInt8.random(in: 0...16, using: &random)
            for index: UInt32 in [0, 1, 2, 1, .max] { _ = read(&walks, index, page) }
        }
    }

    /// All photos are counted and all days are listed by pages of which nearly each was asked for before.
    @Test func `a count of photos and a list of days wait for few pages`() throws {
        let pages = DistantPages()
        let (photos, days) = (30_000, 1000)
        do {
            let catalogue = try Catalogue(storage: pages)
            try catalogue.locked { tables in
                for number in 0..<photos {
                    let ino = UInt64(number + 100_000)
                    try tables.photos.store(PhotoRow(ino: ino, day: 20_240_101))
                    try tables.views.setName(of: ino, Array("IMG_\(number).jpg".utf8))
                    guard number % (photos / days) == 0 else { continue }
                    let name = Array("A day in moments with a name of some length \(number)".utf8)
                    try tables.dentries.insert(
                        DentryRow(parent: 2, id: UInt64(number + 16), name: name, ino: ino))
                }
            }
            _ = try catalogue.commitTransaction(before: { _ in }, freeze: { 0 })
        }
        let catalogue = try Catalogue(storage: pages, readOnly: true)
        pages.forget()
        let counted = try catalogue.locked { tables in try tables.photos.shownCount() }
        #expect(counted == Int64(photos))
        #expect(pages.reads > 50)
        #expect(pages.reads - pages.foreseen < 8, "\(pages.reads) reads, \(pages.foreseen) foreseen")
        #expect(pages.requests <= pages.reads)
        pages.forget()
        try catalogue.locked { tables in
            var count = 0
            try tables.dentries.each(in: 2, after: 0) { _ in
                count += 1
                return true
            }
            #expect(count == days)
        }
        #expect(pages.reads > 15)
        #expect(pages.reads - pages.foreseen < 8, "\(pages.reads) reads, \(pages.foreseen) foreseen")
    }
}
