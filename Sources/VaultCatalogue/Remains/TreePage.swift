/// A page of a b-tree (sqlite.org/fileformat2.html, *B-tree Pages*).
struct TreePage {
    enum Kind: UInt8 {
        case indexInterior = 2
        case tableInterior = 5
        case indexLeaf = 10
        case tableLeaf = 13
    }

    /// Bytes of a page that SQLite uses.
    static let usableBytes = Catalogue.pageBytes - Catalogue.reservedBytesPerPage
    /// Before the first page's own header comes that of the database.
    private static let databaseHeaderBytes = 100

    let kind: Kind
    private let bytes: [UInt8]
    private let cells: [Int]
    /// The page behind the last cell's, of an interior page.
    let last: UInt32

    /// Nil where the bytes are no such page.
    init?(_ bytes: [UInt8], number: UInt32) {
        let start = number == 1 ? Self.databaseHeaderBytes : 0
        guard let kind = Kind(rawValue: bytes[start]) else { return nil }
        (self.kind, self.bytes) = (kind, bytes)
        var header = StoredBytes(bytes[(start + 3)..<Self.usableBytes])
        guard let count = header.number(2), count >= 0, header.take(3) != nil else { return nil }
        last = kind.isInterior ? UInt32(truncatingIfNeeded: header.number(4) ?? 0) : 0
        var cells: [Int] = []
        for _ in 0..<count {
            guard let cell = header.number(2), cell > start, cell < Self.usableBytes else { return nil }
            cells.append(Int(cell))
        }
        self.cells = cells
    }

    var isOfTable: Bool { kind == .tableLeaf || kind == .tableInterior }

    /// What a cell says: where its row's bytes begin, and the page before it.
    struct Cell {
        /// The page of what comes before it; 0 in a leaf.
        var child: UInt32 = 0
        /// Of a table.
        var rowid: Int64 = 0
        /// Bytes of the row; 0 where it has none.
        var length = 0
        /// The part of the row that is in this page.
        var local: ArraySlice<UInt8> = []
        /// The page with the rest; 0 where there is none.
        var overflow: UInt32 = 0
    }

    /// The cells, in their order; nil for one that makes no sense.
    var allCells: [Cell?] { cells.map { cell(at: $0) } }

    private func cell(at offset: Int) -> Cell? {
        var reader = StoredBytes(bytes[offset..<Self.usableBytes])
        var cell = Cell()
        if kind.isInterior {
            guard let child = reader.number(4) else { return nil }
            cell.child = UInt32(truncatingIfNeeded: child)
        }
        if kind != .tableInterior {
            guard let length = reader.variable(), length > 0, length <= Self.rowBytesMax else { return nil }
            cell.length = Int(length)
        }
        if isOfTable {
            guard let rowid = reader.variable() else { return nil }
            cell.rowid = rowid
        }
        guard cell.length > 0 else { return kind == .tableInterior ? cell : nil }
        let count = localBytes(cell.length)
        guard let local = reader.take(count) else { return nil }
        cell.local = local
        if count < cell.length {
            guard let next = reader.number(4) else { return nil }
            cell.overflow = UInt32(truncatingIfNeeded: next)
        }
        return cell
    }

    /// An attribute's value of 64 KiB is the most that a row has.
    private static let rowBytesMax: Int64 = 1 << 20

    /// How much of a row of so many bytes is in the page itself.
    private func localBytes(_ length: Int) -> Int {
        let usable = Self.usableBytes
        let most = isOfTable ? usable - 35 : (usable - 12) * 64 / 255 - 23
        if length <= most { return length }
        let least = (usable - 12) * 32 / 255 - 23
        let fitting = least + (length - least) % (usable - 4)
        return fitting <= most ? fitting : least
    }
}

extension TreePage.Kind {
    var isInterior: Bool { self == .indexInterior || self == .tableInterior }
}
