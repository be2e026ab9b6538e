import VaultStore

/// Reads the b-trees of a database page by page, and goes round those that are lost.
struct TreeReader {
    private let storage: any PageStorage
    /// Pages that belong to something that was read.
    private(set) var visited: Set<UInt32> = []
    /// Pages that trees lead to and that cannot be read.
    private(set) var lostPages = 0

    private static let depthMax = 32

    init(_ storage: any PageStorage) { self.storage = storage }

    /// Reads all rows of a tree that can be read.
    ///
    /// - Parameters:
    ///   - root: the number of its first page, from 1 on.
    ///   - isTable: whether rows have numbers of their own, which stand in the place of their first value; nil where
    ///     that does not matter.
    /// - Returns: the first values, or the numbers, of rows that may be missing.
    mutating func read(
        _ root: UInt32, isTable: Bool?, _ visit: ([StoredValue]) -> Void
    ) -> [ClosedRange<Int64>] {
        var lost: [ClosedRange<Int64>] = []
        read(root, isTable, Int64.min...Int64.max, depth: 0, &lost, visit)
        return lost
    }

    private mutating func read(
        _ number: UInt32, _ isTable: Bool?, _ keys: ClosedRange<Int64>, depth: Int,
        _ lost: inout [ClosedRange<Int64>], _ visit: ([StoredValue]) -> Void
    ) {
        guard depth < Self.depthMax, let page = take(number), page.isOfTable == isTable ?? page.isOfTable
        else {
            lostPages += 1
            return lost.append(keys)
        }
        var low = keys.lowerBound
        for cell in page.allCells {
            guard let cell else {
                lost.append(keys)
                continue
            }
            let row = page.kind == .tableInterior ? nil : row(cell, of: page)
            var key: Int64?
            if page.isOfTable {
                key = cell.rowid
            } else if case .integer(let first)? = row?.first {
                key = first
            }
            if page.kind.isInterior {
                let high = max(low, min(key ?? keys.upperBound, keys.upperBound))
                read(cell.child, isTable, low...high, depth: depth + 1, &lost, visit)
                low = page.isOfTable && high < keys.upperBound ? high + 1 : high
                // What an interior page of a table holds are numbers alone.
                if page.isOfTable { continue }
            }
            if let row { visit(row) } else { lost.append(keys) }
        }
        if page.kind.isInterior {
            read(page.last, isTable, low...keys.upperBound, depth: depth + 1, &lost, visit)
        }
    }

    /// Pages that no tree led to, because one above them is lost, with their rows. None where it cannot be told which
    /// pages are free: what is in those is old.
    mutating func strays() -> [(isTable: Bool, rows: [[StoredValue]])] {
        guard let free = freePages() else { return [] }
        var found: [(isTable: Bool, rows: [[StoredValue]])] = []
        for number in 1...max(1, storage.pageCount) where !visited.contains(number) && !free.contains(number)
        {
            guard let page = self.page(number), page.kind != .tableInterior else { continue }
            let rows = page.allCells.map { $0.flatMap { row($0, of: page) } }
            let whole = rows.compactMap { $0 }
            if whole.count == rows.count, !rows.isEmpty { found.append((page.isOfTable, whole)) }
        }
        return found
    }

    /// The pages of the free list; nil where it cannot be read to its end.
    private func freePages() -> Set<UInt32>? {
        guard let first = bytes(of: 1) else { return nil }
        var header = StoredBytes(first[32..<36])
        var trunk = UInt32(truncatingIfNeeded: header.number(4) ?? 0)
        var free: Set<UInt32> = []
        while trunk != 0 {
            guard free.insert(trunk).inserted, let bytes = bytes(of: trunk) else { return nil }
            var reader = StoredBytes(bytes[0..<TreePage.usableBytes])
            guard let next = reader.number(4), let count = reader.number(4), count >= 0 else { return nil }
            for _ in 0..<count {
                guard let leaf = reader.number(4) else { return nil }
                free.insert(UInt32(truncatingIfNeeded: leaf))
            }
            trunk = UInt32(truncatingIfNeeded: next)
        }
        return free
    }

    // MARK: Pages

    /// A page that was not read before: a tree that leads to one twice makes no sense.
    private mutating func take(_ number: UInt32) -> TreePage? {
        visited.insert(number).inserted ? page(number) : nil
    }

    private func page(_ number: UInt32) -> TreePage? {
        bytes(of: number).flatMap { TreePage($0, number: number) }
    }

    private func bytes(of number: UInt32) -> [UInt8]? {
        guard number > 0, number <= storage.pageCount else { return nil }
        var bytes = [UInt8](repeating: 0, count: Catalogue.pageBytes)
        let isRead = bytes.withUnsafeMutableBytes { (try? storage.readPage(number - 1, into: $0)) != nil }
        return isRead ? bytes : nil
    }

    /// The values of a row, with those that lie in pages of their own.
    private mutating func row(_ cell: TreePage.Cell, of page: TreePage) -> [StoredValue]? {
        var payload = Array(cell.local)
        var next = cell.overflow
        while payload.count < cell.length {
            guard visited.insert(next).inserted, let bytes = bytes(of: next) else { return nil }
            var reader = StoredBytes(bytes[0..<TreePage.usableBytes])
            next = UInt32(truncatingIfNeeded: reader.number(4) ?? 0)
            let count = min(cell.length - payload.count, TreePage.usableBytes - 4)
            guard let part = reader.take(count) else { return nil }
            payload += part
        }
        guard var values = StoredBytes.row(payload[...]), !values.isEmpty else { return nil }
        if page.isOfTable { values[0] = values[0] == .null ? .integer(cell.rowid) : values[0] }
        return values
    }
}
