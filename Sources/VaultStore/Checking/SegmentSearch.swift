import LinuxIO
import VaultCrypto
import VaultFormat

/// Searches for the files of segments whose own files have other bytes. A segment's bytes open only with the identity
/// that the roots, the maps or the catalogue give for their place, so a match is certain.
///
/// Searches roots first, then pages, then content: each gives the expected places of the next.
struct SegmentSearch {
    /// The vault's files under their own names.
    private let disk: SpaceDisk
    private let extents: ExtentCodec
    private let codec: PageCodec
    /// Numbers in the names of files.
    private let numbers: [Int]
    /// By segment, the file in which its bytes were found.
    private(set) var found: [Int: Int] = [:]
    /// Files in `found`.
    private var taken: Set<Int> = []
    /// How often each segment was searched for in all files.
    private var searches: [Int: Int] = [:]

    /// More than one, because a single page or extent may be damaged.
    private static let searchesMax = 3

    init(disk: SpaceDisk, keys: SpaceKeys, numbers: [Int]) {
        self.disk = disk
        extents = ExtentCodec(keys)
        codec = PageCodec(key: keys.page)
        self.numbers = numbers.sorted()
    }

    /// Nil if every segment searched for has its own file, or none.
    var exchange: SegmentExchange? { SegmentExchange(found) }

    private mutating func note(_ segment: Int, in file: Int) {
        found[segment] = file
        taken.insert(file)
    }

    // MARK: Roots

    /// Finds segments 0 and 1 by their roots. Returns the newest root.
    mutating func findRoots() -> RootRecord? {
        var newest: RootRecord?
        for copy in 0..<2 {
            for file in [copy] + numbers.filter({ $0 != copy }) {
                guard let root = root(in: file, copy) else { continue }
                note(copy, in: file)
                if root.generation > newest?.generation ?? 0 { newest = root }
                break
            }
        }
        return newest
    }

    /// The newest durable root of a copy in a file.
    private func root(in file: Int, _ copy: Int) -> RootRecord? {
        let roots = RootLayout.durableSlots.compactMap { slot -> RootRecord? in
            let page = readPage(file, slot * Geometry.sectorsPerPage)
            let identity = PageIdentity(role: .root, index: UInt32(slot))
            return page.flatMap { open($0, as: identity, copy: copy, expected: nil) }.flatMap { plain in
                plain.withUnsafeBytes { RootRecord(decoding: $0) }
            }
        }
        return roots.max { $0.generation < $1.generation }
    }

    // MARK: Pages

    /// Finds the segments of pages by the pages that a root refers to.
    mutating func findPages(of root: RootRecord) {
        let segments = Set(root.pairs.flatMap { [Int($0.a), Int($0.b)] })
        for object in MapObject.allCases where !segments.isSubset(of: found.keys) {
            let stored = root.objects[object.rawValue]
            guard stored.levels > 0 else { continue }
            descend(object, NodeKey(level: stored.levels - 1, index: 0), stored.reference, root, segments)
        }
    }

    private mutating func descend(
        _ object: MapObject, _ key: NodeKey, _ reference: Reference, _ root: RootRecord,
        _ wanted: Set<Int>
    ) {
        guard !reference.isAbsent, let plain = page(reference, as: .node(object, key), root) else { return }
        for place in 0..<MapLayout.fanout {
            if wanted.isSubset(of: found.keys) { return }
            let child = plain.withUnsafeBytes {
                Reference(decoding: $0.slice(place * MapLayout.referenceBytes, MapLayout.referenceBytes))
            }
            if child.isAbsent { continue }
            let index = key.index * MapLayout.fanout + place
            if key.level > 0 {
                descend(object, NodeKey(level: key.level - 1, index: index), child, root, wanted)
            } else if !isKnown(child, root) {
                _ = page(child, as: .page(object, index), root)
            }
        }
    }

    private func isKnown(_ reference: Reference, _ root: RootRecord) -> Bool {
        let pair = Int(reference.slot) / slotsPerPair
        guard pair < root.pairs.count else { return true }
        return found[Int(root.pairs[pair].a)] != nil && found[Int(root.pairs[pair].b)] != nil
    }

    private var slotsPerPair: Int { disk.slotsPerPair }

    /// Opens a page, and notes in which files the segments of its two copies are.
    private mutating func page(
        _ reference: Reference, as identity: PageIdentity, _ root: RootRecord
    ) -> [UInt8]? {
        let (pair, slot) = Int(reference.slot).quotientAndRemainder(dividingBy: slotsPerPair)
        guard pair < root.pairs.count else { return nil }
        let copies = [(root.pairs[pair].a, reference.tagA), (root.pairs[pair].b, reference.tagB)]
        var plain: [UInt8]?
        for (copy, (segment, tag)) in copies.enumerated() {
            let (segment, sector) = (Int(segment), slot * Geometry.sectorsPerPage)
            if plain != nil, found[segment] != nil { continue }
            for file in candidates(for: segment) {
                guard let sealed = readPage(file, sector, unlessTagIsNot: tag),
                    let opened = open(sealed, as: identity, copy: copy, expected: tag)
                else { continue }
                note(segment, in: file)
                plain = opened
                break
            }
        }
        return plain
    }

    /// The files that may have a segment's bytes: the one where it was found; else its own and then, the first few
    /// times, all files not matched to another segment.
    private mutating func candidates(for segment: Int) -> [Int] {
        if let file = found[segment] { return [file] }
        let count = searches[segment, default: 0]
        searches[segment] = count + 1
        if count >= Self.searchesMax { return [segment] }
        return [segment] + numbers.filter { $0 != segment && !taken.contains($0) }
    }

    // MARK: Content

    /// Finds content segments by some extents that the catalogue has in each. A segment whose own file has one of them
    /// is in place.
    mutating func findContent(_ samples: [CheckedRun]) {
        let perSegment = UInt64(disk.sectorsPerSegment)
        let bySegment = Dictionary(grouping: samples) { Int($0.run.sector / perSegment) }
        var lost: [Int] = []
        for (segment, runs) in bySegment where found[segment] == nil {
            if runs.contains(where: { begins($0, in: segment) }) {
                note(segment, in: segment)
            } else {
                lost.append(segment)
            }
        }
        for segment in lost.sorted() {
            let file = numbers.first { file in
                !taken.contains(file) && bySegment[segment]?.contains { begins($0, in: file) } == true
            }
            if let file { note(segment, in: file) }
        }
    }

    /// Whether the first extent of a run lies in `file` at its offset in the segment.
    private func begins(_ checked: CheckedRun, in file: Int) -> Bool {
        let index = Int(checked.run.sector % UInt64(disk.sectorsPerSegment))
        guard let head = read(file, index, Geometry.extentHeaderBytes),
            let descriptor = head.withUnsafeBytes({ extents.openDescriptor($0) })
        else { return false }
        let run = checked.run
        return checked.roles.contains(descriptor.role) && descriptor.content == checked.content
            && descriptor.offset == run.offset && descriptor.length == UInt32(run.plainBytes(ofChunk: 0))
            && descriptor.generation == run.generation && descriptor.epoch == run.epoch
    }

    // MARK: Bytes

    private func open(
        _ sealed: [UInt8], as identity: PageIdentity, copy: Int, expected: Tag?
    ) -> [UInt8]? {
        var plain = [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
        let isOpen = plain.withUnsafeMutableBytes { plain in
            sealed.withUnsafeBytes {
                codec.open($0, as: identity, copy: UInt8(copy), expected: expected, into: plain)
            }
        }
        return isOpen ? plain : nil
    }

    /// The page at a sector of a file; nil if it cannot be read or does not end with `tag`.
    private func readPage(_ file: Int, _ sector: Int, unlessTagIsNot tag: Tag? = nil) -> [UInt8]? {
        guard let tag else { return read(file, sector, Geometry.pageBytes) }
        // Most files do not match, which the last sector shows.
        let last = sector + Geometry.sectorsPerPage - 1
        guard let end = read(file, last, Geometry.sectorBytes) else { return nil }
        let own = end.withUnsafeBytes {
            Tag($0.slice(Geometry.sectorBytes - Geometry.tagBytes, Geometry.tagBytes))
        }
        return own == tag ? read(file, sector, Geometry.pageBytes) : nil
    }

    private func read(_ file: Int, _ sector: Int, _ count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        let first = UInt64(file) * UInt64(disk.sectorsPerSegment) + UInt64(sector)
        let isRead = bytes.withUnsafeMutableBytes { bytes in
            (try? disk.read(first, into: bytes)) != nil
        }
        return isRead ? bytes : nil
    }
}

extension UnlockedSpace {
    /// Searches for exchanged segments among those of roots and pages, and those of `samples`: some extents of every
    /// content segment. Nil if there are none.
    public func findExchange(_ samples: [CheckedRun] = []) throws(VaultError) -> SegmentExchange? {
        // In the file of all spaces segments have no names.
        if layout.isShared { return nil }
        let (disk, keys, _) = try parts(readOnly: true)
        var search = SegmentSearch(disk: disk, keys: keys, numbers: try vault.listing(layout).numbers)
        guard let root = search.findRoots() else { return nil }
        search.findPages(of: root)
        search.findContent(samples)
        return search.exchange
    }
}
