import FileRequests
import Foundation
import LinuxIO
import Testing
import VaultFormat

@testable import CatalogueRows
@testable import VaultCatalogue

@Suite("The tree: tables of the catalogue") struct TableTests {
    @Test func `a new catalogue has its counters`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        let counters = try catalogue.locked { try $0.counters.current() }
        #expect(counters == Counters(ino: 16, content: 16, dentry: 16, pictured: 16))
    }

    @Test func `inodes come back as they were`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        try catalogue.locked { tables in
            let now = Timestamp(seconds: -77, nanoseconds: 999_999_999)
            var row = InodeRow(ino: 1 << 40, mode: 0o100644, uid: .max, gid: 3, now: now)
            row.size = 1 << 62
            row.flags = [.photo, .madeByHand]
            try tables.inodes.store(row)
            #expect(try tables.inodes.row(row.ino) == row)
            row.nlink = 9
            try tables.inodes.store(row)
            #expect(try tables.inodes.row(row.ino) == row)
            try tables.inodes.delete(row.ino)
            #expect(try tables.inodes.row(row.ino) == nil)
        }
    }

    /// A mount of a table with ids 3, 8 and 5, in this order, went on behind 5 for ever. libFuzzer found it.
    @Test func `a table out of order is damaged`() throws {
        let path = "/tmp/obscura-table-\(UUID().uuidString)"
        defer { unlink(path) }
        do {
            let catalogue = try Catalogue(path: path)
            let add = { (tables: Tables) throws(FileError) in
                for ino in [3, 8, 9] as [UInt64] { try tables.orphans.add(ino) }
            }
            try catalogue.commitTransaction(before: add, freeze: {})
        }
        var file = try Data(contentsOf: URL(fileURLWithPath: path))
        // Two bytes long, its id, and a row that has nothing but that.
        let row = try #require(file.range(of: Data([2, 9, 2, 0])))
        file[row.lowerBound + 1] = 5
        try file.write(to: URL(fileURLWithPath: path))
        let catalogue = try Catalogue(path: path)
        #expect(throws: FileError.damaged) {
            _ = try catalogue.locked { tables throws(FileError) in
                try tables.orphans.numbers(after: 5, limit: 100)
            }
        }
    }

    @Test func `hashes are kept by inode, and all are listed in order`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        try catalogue.locked { (tables: Tables) throws in
            let numbers: [UInt64] = [16, 63, 64, 127, 128, 1 << 40]
            for number in numbers { try tables.likenesses.store(.hash(number << 8 | 3), of: number) }
            try tables.likenesses.store(.absent, of: 17)
            for number in numbers {
                #expect(try tables.likenesses.likeness(of: number) == .hash(number << 8 | 3))
            }
            #expect(try tables.likenesses.likeness(of: 17) == .absent)
            #expect(
                try tables.likenesses.likeness(of: 18) == nil && tables.likenesses.likeness(of: 99_999) == nil
            )
            for blocks in [1, 2, 100] {
                var (found, next): ([UInt64], UInt64?) = ([], 0)
                while let first = next {
                    next = try tables.likenesses.eachHash(from: first, blocks: blocks) { ino, hash in
                        #expect(hash == ino << 8 | 3)
                        found.append(ino)
                    }
                }
                #expect(found == numbers)
            }
            // A block without any takes no row.
            for number in [64, 127] as [UInt64] { try tables.likenesses.store(nil, of: number) }
            try tables.likenesses.store(nil, of: 5000)
            let rows = try tables.connection.prepare("SELECT block FROM likeness").all { $0.count(0) }
            #expect(rows == [0, 2, 1 << 34])
        }
    }

    @Test func `positions are kept by inode, and those of photos in views are listed in order`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        let edges: [(Int32, Int32)] = [
            (900_000_000, 1_800_000_000), (-900_000_000, -1_800_000_000), (0, 1), (-1, 0),
            (525_000_000, 134_000_000),
        ]
        try catalogue.locked { (tables: Tables) throws in
            let numbers: [UInt64] = [16, 63, 64, 127, 1 << 40]
            for (number, edge) in zip(numbers, edges) {
                let stored = StoredPosition(.point(latitude: edge.0, longitude: edge.1))
                #expect(try tables.positions.store(stored, of: number))
                #expect(try !tables.positions.store(stored, of: number))
                #expect(try tables.positions.position(of: number) == stored)
            }
            try tables.positions.store(StoredPosition(.absent), of: 17)
            let hidden = StoredPosition(.point(latitude: 5, longitude: 5), isShown: false)
            try tables.positions.store(hidden, of: 18)
            #expect(try tables.positions.position(of: 17) == StoredPosition(.absent))
            #expect(
                try tables.positions.position(of: 18) == hidden && tables.positions.position(of: 19) == nil)
            #expect(try tables.positions.count() == 6)
            for blocks in [1, 2, 100] {
                var (found, next): ([UInt64], UInt64?) = ([], 0)
                while let first = next {
                    next = try tables.positions.eachPoint(from: first, blocks: blocks) { ino, _, _ in
                        found.append(ino)
                    }
                }
                #expect(found == numbers)
            }
            for number in numbers + [17, 18] { try tables.positions.store(nil, of: number) }
            #expect(try tables.connection.prepare("SELECT block FROM position").all { $0.count(0) } == [])
            // Numbers that mean nothing, as a repair may leave: not known.
            let odd = String(repeating: "00", count: 504) + "0200000000000000"
            try tables.connection.execute("INSERT INTO position VALUES(0, x'\(odd)')")
            #expect(try tables.positions.position(of: 63) == nil && tables.positions.count() == 0)
        }
    }

    @Test func `empty days are found among some at a time`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        try catalogue.locked { tables in
            for number in 1...10 as ClosedRange<UInt64> {
                var row = InodeRow(ino: 100 + number, mode: 0o040555, uid: 0, gid: 0, now: Timestamp.now())
                row.day = number == 4 ? 0 : Int64(number)
                row.size = number % 3 == 0 ? 1 : 0
                if number == 8 { row.flags = [.madeByHand] }
                try tables.inodes.store(row)
                try tables.dentries.insert(
                    DentryRow(parent: 3, id: 20 + number, name: [UInt8(number)], ino: row.ino))
            }
            var (last, steps, found) = (UInt64?.some(0), 0, [UInt64]())
            while let id = last {
                let some = try tables.dentries.emptyDays(in: 3, after: id, among: 4)
                found += some.days.map(\.ino)
                (last, steps) = (some.last, steps + 1)
            }
            #expect(found == [101, 102, 105, 107, 110] && steps == 4)
            #expect(try tables.dentries.emptyDays(in: 4, after: 0, among: 4).last == nil)
        }
    }

    @Test func `dentries are listed by their ids`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        try catalogue.locked { tables in
            for id in 20..<30 as Range<UInt64> {
                try tables.dentries.insert(DentryRow(parent: 3, id: id, name: [UInt8(id)], ino: 100 + id % 3))
            }
            #expect(throws: FileError.self) {
                try tables.dentries.insert(DentryRow(parent: 3, id: 99, name: [20], ino: 1))
            }
            var seen: [UInt64] = []
            try tables.dentries.each(in: 3, after: 22) {
                seen.append($0.id)
                return seen.count < 4
            }
            #expect(seen == [23, 24, 25, 26])
            #expect(try tables.dentries.names(of: 100).map(\.id) == [21, 24, 27])
            #expect(try tables.dentries.entry(3, [25])?.ino == 101)
            try tables.dentries.delete(3, 25)
            #expect(try tables.dentries.entry(3, [25]) == nil)
            #expect(try tables.dentries.names(in: 3, beginning: [28], limit: 5).map(\.id) == [28])
        }
    }

    @Test func `extents are replaced and deleted by range`() throws {
        let catalogue = try Catalogue(path: ":memory:")
        try catalogue.locked { tables in
            let runs = (0..<5 as Range<UInt64>).map {
                ExtentRun(offset: $0 * 10, length: 10, sector: $0, generation: 1, epoch: .max - $0)
            }
            for run in runs { try tables.extents.insert(run, of: 7) }
            #expect(try tables.extents.runs(of: 7) == runs)
            try tables.extents.delete(of: 7, from: 10, through: 30)
            #expect(try tables.extents.runs(of: 7) == [runs[0], runs[4]])
            #expect(try tables.extents.firstRuns(of: 7, limit: 1) == [runs[0]])
        }
    }
}
