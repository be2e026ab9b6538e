import Glibc
import LinuxIO
import Synchronization
import VaultFormat

/// The segments of one space, addressed by linear sector: above a `SegmentHost`, below everything else. Nothing is
/// written without the claim.
///
/// Unchecked Sendable: its variables are set before the first write.
final class SpaceDisk: @unchecked Sendable {
    let layout: SegmentLayout
    let host: any SegmentHost
    let sectorsPerSegment: Int
    /// Page slots of a pair of segments.
    let slotsPerPair: Int
    /// By segment, the number under which it is found, if that is another segment's; see `SegmentExchange`. Only for
    /// reading; set before anything is read.
    var exchanged: [Int: Int] = [:]
    /// Closed by an error with which the host refuses all writing. Nil where nothing is written.
    var gate: WriteGate?
    /// Checked before every write. Nil if no other mount can write.
    var claim: ClaimKeeper?
    private let reads = Mutex(ReadStreams())
    /// Whether a program tells its next reads.
    private let isTold = Atomic<Bool>(false)

    init(_ host: any SegmentHost, _ layout: SegmentLayout) {
        (self.host, self.layout) = (host, layout)
        sectorsPerSegment = Int(layout.segmentBytes) / Geometry.sectorBytes
        slotsPerPair = Int(layout.segmentBytes) / Geometry.pageBytes
    }

    var segmentBytes: UInt64 { layout.segmentBytes }

    /// The linear sectors of a segment.
    func sectors(of segment: Int) -> Range<UInt64> {
        let first = UInt64(segment) * UInt64(sectorsPerSegment)
        return first..<first + UInt64(sectorsPerSegment)
    }

    /// The segment that a linear sector lies in.
    func segment(of sector: UInt64) -> Int { Int(sector / UInt64(sectorsPerSegment)) }

    /// The parts of a range of sectors, one for each segment: no extent crosses the end of a segment, but a joined run
    /// may span the end of one and the start of the next.
    func split(_ range: Range<UInt64>) -> [Range<UInt64>] {
        var parts: [Range<UInt64>] = []
        var sector = range.lowerBound
        while sector < range.upperBound {
            let end = min(range.upperBound, sectors(of: segment(of: sector)).upperBound)
            parts.append(sector..<end)
            sector = end
        }
        return parts
    }

    /// The segment of sectors, by the number under which it is found, and their offset in it. Throws `damaged` if they
    /// cross the segment's end, which no extent does.
    func place(_ sector: UInt64, _ count: Int) throws(StoreError) -> (segment: Int, offset: UInt64) {
        let (number, index) = sector.quotientAndRemainder(dividingBy: UInt64(sectorsPerSegment))
        let offset = index * UInt64(Geometry.sectorBytes)
        guard number < UInt64(Geometry.segmentsMax), offset + UInt64(count) <= segmentBytes else {
            throw .damaged
        }
        return (key(Int(number)), offset)
    }

    private func key(_ segment: Int) -> Int { exchanged[segment] ?? segment }

    // MARK: Reading

    /// Reads consecutive sectors of one segment. Bytes past its end are zeros, which cannot be authenticated.
    ///
    /// - Parameter end: the sector behind those that a program will read next if it reads on. Nil if no program reads.
    func read(_ sector: UInt64, into bytes: UnsafeMutableRawBufferPointer, readingOnTo end: UInt64? = nil)
        throws(StoreError)
    {
        let (segment, offset) = try place(sector, bytes.count)
        if let end { readAhead(sector, bytes.count, upTo: end) }
        try closingIfTaken { () throws(StoreError) in try host.read(segment, at: offset, into: bytes) }
    }

    /// Lends consecutive sectors of one segment to `body`, and returns its result. Nil if the host cannot: then `read`
    /// reads them.
    func lend(
        _ sector: UInt64, _ count: Int, readingOnTo end: UInt64, to body: (UnsafeRawBufferPointer) -> Bool
    ) throws(StoreError) -> Bool? {
        let (segment, offset) = try place(sector, count)
        return host.lend(segment, at: offset, count: count) { bytes in
            readAhead(sector, count, upTo: end)
            return body(bytes)
        }
    }

    /// Asks the host for the sectors that a program will probably read next. Only advice: a missing segment is reported
    /// when it is read.
    private func readAhead(_ sector: UInt64, _ count: Int, upTo end: UInt64) {
        if isTold.load(ordering: .relaxed) { return }
        let sectorBytes = UInt64(Geometry.sectorBytes)
        let first = sector * sectorBytes
        // The row of a forged vault may tell of any end.
        let end = min(end, UInt64(Geometry.segmentsMax) * UInt64(sectorsPerSegment)) * sectorBytes
        let soon = reads.withLock { $0.toReadAhead(of: first..<first + UInt64(count), upTo: end) }
        if let soon { willRead(bytes: soon) }
    }

    /// Asks the host for sectors that will be read soon, as only a program does that tells all that it will read. Only
    /// advice.
    func willRead(_ sectors: Range<UInt64>) {
        isTold.store(true, ordering: .relaxed)
        let sectorBytes = UInt64(Geometry.sectorBytes)
        let all = 0..<UInt64(Geometry.segmentsMax) * UInt64(sectorsPerSegment)
        let some = sectors.clamped(to: all)
        willRead(bytes: some.lowerBound * sectorBytes..<some.upperBound * sectorBytes)
    }

    /// Asks the host for pages that begin at these sectors and will be read soon. Only advice.
    func willReadPages(_ sectors: [UInt64]) {
        let (sectorBytes, pageBytes) = (UInt64(Geometry.sectorBytes), UInt64(Geometry.pageBytes))
        var range: Range<UInt64>?
        for start in sectors.sorted().map({ $0 * sectorBytes }) {
            if let found = range, start <= found.upperBound + Self.pageGapBytes {
                range = found.lowerBound..<start + pageBytes
                continue
            }
            if let range { willRead(bytes: range) }
            range = start..<start + pageBytes
        }
        if let range { willRead(bytes: range) }
    }

    /// Pages that lie as near to each other are asked for together: a request costs more than so many bytes.
    private static let pageGapBytes: UInt64 = 16 << 10

    private func willRead(bytes: Range<UInt64>) {
        var position = bytes.lowerBound
        while position < bytes.upperBound {
            let (number, offset) = position.quotientAndRemainder(dividingBy: segmentBytes)
            guard number < UInt64(Geometry.segmentsMax) else { return }
            let count = min(bytes.upperBound - position, segmentBytes - offset)
            host.willRead(key(Int(number)), offset..<offset + count)
            position += count
        }
    }

    // MARK: Writing

    /// Writes consecutive sectors of one segment.
    func write(
        _ sector: UInt64, _ bytes: UnsafeRawBufferPointer, _ kind: WriteKind = .other
    ) throws(StoreError) {
        let (segment, offset) = try place(sector, bytes.count)
        try checkingRefusal { () throws(StoreError) in
            try claim?.willWrite()
            try host.write(segment, at: offset, bytes, kind)
        }
    }

    /// As above, past all caches. Returns false if the host refuses such a write.
    func write(
        _ sector: UInt64, _ bytes: UnsafeRawBufferPointer, by direct: any DirectSegments
    ) throws(StoreError) -> Bool {
        let (segment, offset) = try place(sector, bytes.count)
        return try checkingRefusal { () throws(StoreError) in
            try claim?.willWrite()
            return try direct.write(segment, at: offset, bytes)
        }
    }

    /// Closes the gate if the host refuses all writing.
    private func checkingRefusal<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        do throws(StoreError) { return try closingIfTaken(body) } catch {
            if case .io(let number) = error, number.refusesWriting { gate?.close(for: .io(number)) }
            throw error
        }
    }

    /// Closes the gate once another computer has the vault.
    private func closingIfTaken<R>(_ body: () throws(StoreError) -> R) throws(StoreError) -> R {
        do throws(StoreError) { return try body() } catch {
            if error == .io(Errno(ESHUTDOWN)) { gate?.close(for: .claimLost) }
            throw error
        }
    }

    /// Makes everything durable that was written since the last call that succeeded.
    func sync() throws(StoreError) { try checkingRefusal { () throws(StoreError) in try host.sync() } }

    /// Counts the segment of a sector, which an earlier mount wrote, as written.
    func markUnsynced(_ sector: UInt64) {
        host.markUnsynced(key(segment(of: sector)))
    }

    // MARK: Sizes

    /// Sectors of a segment up to the last that was written. Throws `damaged` if it is missing.
    func writtenSectors(_ segment: Int) throws(StoreError) -> Int {
        Int(try host.writtenBytes(key(segment))) / Geometry.sectorBytes
    }

    /// The next sectors of a segment, at or behind `first`, that have a place on the disk; nil if there are none.
    func storedSectors(_ segment: Int, from first: Int) throws(StoreError) -> Range<Int>? {
        let sector = UInt64(Geometry.sectorBytes)
        let end = try writtenSectors(segment)
        guard first < end, let stored = try host.storedRange(key(segment), from: UInt64(first) * sector)
        else { return nil }
        let start = Int(stored.lowerBound / sector)
        let sectors =
            Int((stored.lowerBound + sector - 1) / sector)..<max(start + 1, Int(stored.upperBound / sector))
        return sectors.lowerBound < end ? sectors.clamped(to: first..<end) : nil
    }

    /// The fault of a segment that makes these sectors unavailable; nil if there is none.
    func fault(at sector: UInt64, _ count: Int) -> SegmentFault? {
        let number = segment(of: sector)
        do throws(StoreError) {
            let end = Int(sector % UInt64(sectorsPerSegment)) + count
            return try writtenSectors(number) < end ? .short(number) : nil
        } catch {
            return error == .damaged ? .missing(number) : nil
        }
    }

    func blockBytes(_ segment: Int) -> UInt64 { host.storedBytes(key(segment)) }
    func isHole(_ segment: Int) -> Bool { host.isHole(key(segment)) }
    func exists(_ segment: Int) -> Bool { host.exists(key(segment)) }
    func hasRoom(for segment: Int) -> Bool { host.hasRoom(for: key(segment)) }

    /// Checks that segments can be written and have at least so many bytes, in this order. Throws `segmentMissing`,
    /// `segmentShort`, or the host's error.
    func requireWritable(_ segments: [(number: Int, bytes: UInt64)]) throws(StoreError) {
        try checkingRefusal { () throws(StoreError) in try host.requireWritable(segments) }
    }

    /// Checks that segments can be created.
    func requireMayCreate() throws(StoreError) {
        try closingIfTaken { () throws(StoreError) in try host.requireMayCreate() }
    }

    /// Bytes that the host has left for this user.
    func availableBytes() throws(StoreError) -> UInt64 {
        try closingIfTaken { () throws(StoreError) in try host.availableBytes() }
    }

    // MARK: Room

    func create(_ segment: Int) throws(StoreError) {
        try checkingRefusal { () throws(StoreError) in try host.create(segment) }
    }

    /// Reserves room for the first `bytes` of a segment. Returns false if the host reserves nothing.
    @discardableResult
    func reserve(_ segment: Int, bytes: UInt64) throws(StoreError) -> Bool {
        try checkingRefusal { () throws(StoreError) in try host.reserve(segment, bytes: bytes) }
    }

    /// Gives the room of whole pages within these sectors back to the host. Best effort.
    func giveBack(_ segment: Int, sectors: Range<Int>) {
        let page = Geometry.sectorsPerPage
        let (first, end) = ((sectors.lowerBound + page - 1) / page * page, sectors.upperBound / page * page)
        guard first < end, (try? checkingRefusal { () throws(StoreError) in try claim?.willWrite() }) != nil
        else { return }
        host.giveBack(
            segment, UInt64(first * Geometry.sectorBytes)..<UInt64(end * Geometry.sectorBytes))
    }

    /// Removes a segment; returns false if the host refuses or the claim is lost.
    func remove(_ segment: Int) -> Bool { isStillOurs && host.remove(segment) }

    /// Cuts a segment; returns false if the host refuses or the claim is lost.
    func shorten(_ segment: Int, to bytes: UInt64) -> Bool {
        isStillOurs && host.shorten(segment, to: bytes)
    }

    /// Whether this mount still holds the claim, by reading it. For operations that would do the most harm otherwise.
    private var isStillOurs: Bool {
        guard let claim else { return true }
        return (try? claim.verify()) != nil
    }

    /// Tells the host how many segments every space of the vault has.
    func limit(to segments: Int) { if layout.isShared { host.limit(to: segments) } }

    /// Has the host open all segments anew.
    func reopenAll() { host.reopenAll() }
}
