import CSQLite
import Foundation
import VaultFormat
import VaultStore

/// Features that need the decoy's password.
extension Sample {
    /// Roots and sectors.
    ///
    /// - Parameter sectorsPerSegment: how many of the decoy's segments are tried, from the first; each try costs 1 µs.
    mutating func addOpening(
        _ attacker: Attacker, _ segments: [[SegmentRange]], sectorsPerSegment: Int
    ) throws {
        let decoy = attacker.space
        let heads = try segments.map { ranges in
            try ranges.prefix(2).map { try Self.head($0, RootLayout.rootSlots * Geometry.pageBytes) }
        }
        let roots = heads.map { copies in
            copies.enumerated().flatMap { copy, head in
                head.withUnsafeBytes { head in
                    (0..<RootLayout.rootSlots).compactMap { attacker.root(head, slot: $0, copy: copy) }
                }
            }
        }
        addRoots(roots[decoy])
        let claims = heads.map { copies in
            copies.enumerated().count { copy, head in
                head.withUnsafeBytes { attacker.hasClaim($0, copy: copy) }
            }
        }
        add(.inside, "claims", claims[decoy])
        add(.opens, "claims in other spaces", claims.reduce(0, +) - claims[decoy])
        add(.opens, "roots in other spaces", roots.indices.filter { $0 != decoy }.flatMap { roots[$0] }.count)
        try addSectors(attacker, segments[decoy], count: sectorsPerSegment)
        let elsewhere = try segments.indices.filter { $0 != decoy }.flatMap { segments[$0] }.reduce(0) {
            $0 + (try Self.openSectors(attacker, $1, count: 64).count)
        }
        add(.opens, "extents in other spaces", elsewhere)
    }

    private mutating func addRoots(_ roots: [Attacker.Root]) {
        let (durable, soft) = (roots.filter(\.isDurable), roots.filter { !$0.isDurable })
        add(.inside, "durable roots", durable.count)
        add(.inside, "soft roots", soft.count)
        add(
            .inside, "roots without their other copy",
            roots.filter { root in
                !roots.contains { $0.slot == root.slot && $0.copy != root.copy && $0.plain == root.plain }
            }.count)
        add(.inside, "epochs of roots", Set(roots.map(\.epoch)).count)
        guard let newest = roots.max(by: { $0.generation < $1.generation }) else { return }
        add(.inside, "slot of the newest root", newest.slot)
        add(.inside, "newest generation", newest.generation)
        let oldest = roots.map(\.generation).min() ?? 0
        add(.inside, "generations between roots", newest.generation - oldest)
        let numbers: [(String, Int)] = [
            ("base", RootLayout.baseOffset), ("released", RootLayout.releasedOffset),
        ]
        for (name, offset) in numbers {
            add(.inside, "root: to \(name)", newest.generation - newest.number(offset, as: UInt64.self))
        }
        add(.inside, "root: peak", newest.number(RootLayout.peakSectorsOffset, as: UInt64.self))
        add(.inside, "root: pairs", newest.number(RootLayout.pairCountOffset, as: UInt32.self))
        for object in MapObject.allCases {
            let offset = RootLayout.objectsOffset + object.rawValue * RootLayout.objectBytes
            add(.inside, "root: pages of \(object)", newest.number(offset, as: UInt32.self))
            let slot = newest.number(offset + RootLayout.objectReferenceOffset, as: UInt32.self)
            add(.inside, "root: slot of \(object)", slot)
        }
        let named = RootLayout.pairsOffset + RootLayout.pairsMax * RootLayout.pairBytes
        add(.inside, "root: ones", newest.plain[..<named].reduce(0) { $0 + $1.nonzeroBitCount })
    }

    private mutating func addSectors(_ attacker: Attacker, _ ranges: [SegmentRange], count: Int) throws {
        let open = try ranges.map { try Self.openSectors(attacker, $0, count: count) }
        let all = open.enumerated().flatMap { segment, list in
            list.map { segment * attacker.segmentBytes / Geometry.sectorBytes + $0 }
        }
        add(.opens, "extents", all.count)
        add(.opens, "first extent", all.first ?? -1)
        add(.opens, "last extent", all.last ?? -1)
        add(.opens, "mean place of extents", Double(all.reduce(0, +)) / Double(max(1, all.count)))
    }

    /// The first sectors of a segment at which extents begin.
    private static func openSectors(_ attacker: Attacker, _ range: SegmentRange, count: Int) throws -> [Int] {
        let bytes = try head(range, min(count * Geometry.sectorBytes, attacker.segmentBytes))
        return bytes.withUnsafeBytes { bytes in
            (0..<bytes.count / Geometry.sectorBytes).filter {
                attacker.opensAsExtent(bytes.slice($0 * Geometry.sectorBytes, Geometry.sectorBytes))
            }
        }
    }

    private static func head(_ range: SegmentRange, _ count: Int) throws -> Data {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: range.path))
        defer { try? handle.close() }
        try handle.seek(toOffset: range.start)
        return try handle.read(upToCount: count) ?? Data()
    }

    // MARK: Tables

    /// Every table of the decoy's catalogue: its rows, and the sum, least and greatest of each column.
    mutating func addTables(_ space: Space) throws {
        let pageBytes = Geometry.pageBytes
        var image = [UInt8](repeating: 0, count: Int(space.pageCount) * pageBytes)
        try image.withUnsafeMutableBytes { image in
            for index in 0..<Int(space.pageCount) {
                try space.readPage(UInt32(index), into: image.slice(index * pageBytes, pageBytes))
            }
        }
        let database = try Database(image)
        add(.inside, "pages of tables", space.pageCount)
        // Of the file's header: its change counter, and pages that are free (sqlite.org/fileformat2.html).
        for (name, offset) in [("changes of tables", 24), ("free pages of tables", 36)] {
            add(.inside, name, image[offset..<offset + 4].reduce(0.0) { $0 * 256 + Double($1) })
        }
        for table in try database.column("SELECT name FROM sqlite_master WHERE type='table' ORDER BY name") {
            add(.inside, "\(table): rows", try database.number("SELECT count(*) FROM \"\(table)\""))
            let names = try database.column("SELECT name FROM pragma_table_info('\(table)') ORDER BY cid")
            for name in names {
                let what = "\"\(name)\""
                let isBytes =
                    try database.number(
                        "SELECT count(*) FROM \"\(table)\" WHERE typeof(\(what)) IN ('blob','text')") > 0
                let value = isBytes ? "length(\(what))" : what
                for function in ["total", "min", "max"] {
                    let sum = try database.number("SELECT \(function)(\(value)) FROM \"\(table)\"")
                    add(.inside, "\(table).\(name): \(function)", sum)
                }
            }
        }
    }
}

/// An SQLite database in memory.
private final class Database {
    private var handle: OpaquePointer?

    private let image: UnsafeMutablePointer<UInt8>

    init(_ bytes: [UInt8]) throws {
        image = .allocate(capacity: bytes.count)
        image.initialize(from: bytes, count: bytes.count)
        // SQLITE_DESERIALIZE_READONLY
        let readOnly: UInt32 = 4
        let count = Int64(bytes.count)
        guard sqlite3_open(":memory:", &handle) == SQLITE_OK,
            sqlite3_deserialize(handle, "main", image, count, count, readOnly) == SQLITE_OK
        else { throw Attacker.Surprise(what: "the tables do not open") }
    }

    deinit {
        sqlite3_close(handle)
        image.deallocate()
    }

    private func rows<T>(_ query: String, _ value: (OpaquePointer?) -> T) throws -> [T] {
        var statement: OpaquePointer?
        guard sqlite3_prepare_v2(handle, query, -1, &statement, nil) == SQLITE_OK else {
            throw Attacker.Surprise(what: "\(query): \(String(cString: sqlite3_errmsg(handle)))")
        }
        defer { sqlite3_finalize(statement) }
        var values: [T] = []
        while sqlite3_step(statement) == SQLITE_ROW { values.append(value(statement)) }
        return values
    }

    /// The texts of one column.
    func column(_ query: String) throws -> [String] {
        try rows(query) { String(cString: sqlite3_column_text($0, 0)) }
    }

    /// The first number; 0 where there is none.
    func number(_ query: String) throws -> Double {
        try rows(query) { sqlite3_column_double($0, 0) }.first ?? 0
    }
}
