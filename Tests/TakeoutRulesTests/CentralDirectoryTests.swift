import PhotoImaging
import TakeoutRules
import Testing

@Suite("Commands: import --takeout, places in an archive") struct CentralDirectoryTests {
    /// An entry as the directory gives it.
    private struct Entry {
        var offset: UInt64
        var compressed: UInt64 = 100
        var size: UInt64 = 100
        var isLong = false
    }

    private func number(_ value: UInt64, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    /// Content of that length (zeros), the directory and its end. Each name has one byte.
    private func archive(_ entries: [Entry], contentBytes: Int, isLong: Bool = false) -> [UInt8] {
        var directory: [UInt8] = []
        for entry in entries {
            let numbers = [entry.size, entry.compressed, entry.offset]
            let extra =
                entry.isLong
                ? [9, 9, 2, 0, 7, 7] + number(1, 2) + number(24, 2) + numbers.flatMap { number($0, 8) } : []
            let short = entry.isLong ? [UInt64](repeating: 0xFFFF_FFFF, count: 3) : numbers
            directory += number(0x0201_4B50, 4) + [UInt8](repeating: 0, count: 16)
            directory += number(short[1], 4) + number(short[0], 4)
            directory += number(1, 2) + number(UInt64(extra.count), 2) + number(3, 2)
            directory += [UInt8](repeating: 0, count: 8) + number(short[2], 4) + [0x61] + extra + [1, 2, 3]
        }
        let content = [UInt8](repeating: 0, count: contentBytes)
        let count = UInt64(entries.count)
        var end: [UInt8] = []
        if isLong {
            end += number(0x0606_4B50, 4) + [UInt8](repeating: 0, count: 20) + number(count, 8)
            end += number(count, 8) + number(UInt64(directory.count), 8) + number(UInt64(contentBytes), 8)
            end += number(0x0706_4B50, 4) + number(0, 4) + number(UInt64(contentBytes + directory.count), 8)
            end += number(1, 4)
        }
        end += number(0x0605_4B50, 4) + number(0, 4) + number(isLong ? 0xFFFF : count, 2)
        end += number(isLong ? 0xFFFF : count, 2) + number(UInt64(directory.count), 4)
        return content + directory + end + number(isLong ? 0xFFFF_FFFF : UInt64(contentBytes), 4)
            + number(2, 2) + [0x68, 0x69]
    }

    private func statuses(
        _ entries: [Entry], contentBytes: Int, isLong: Bool = false
    ) -> [ArchiveProtocol.Status]? {
        CentralDirectory(MemoryByteSource(archive(entries, contentBytes: contentBytes, isLong: isLong)))?
            .statuses()
    }

    @Test(arguments: [false, true]) func `entries one after the other are fine`(isLong: Bool) {
        let entries = [131, 0, 262].map { Entry(offset: $0, isLong: isLong) }
        #expect(statuses(entries, contentBytes: 393, isLong: isLong) == [.ok, .ok, .ok])
        #expect(statuses([], contentBytes: 0, isLong: isLong) == [])
    }

    /// Each of the two is refused, and no other.
    @Test func `entries that share bytes are refused`() {
        for (second, third) in [(130, 261), (0, 131), (50, 181)] as [(UInt64, UInt64)] {
            let entries = [0, second, third, 1000].map { Entry(offset: $0) }
            #expect(
                statuses(entries, contentBytes: 1131) == [.overlapping, .overlapping, .ok, .ok], "\(second)")
        }
        // The first one covers all others, though none of those overlaps the next.
        let covered = [Entry(offset: 0, compressed: 900)] + [200, 400, 1000].map { Entry(offset: $0) }
        #expect(
            statuses(covered, contentBytes: 1131) == [.overlapping, .overlapping, .overlapping, .ok])
        // Into the directory, and beyond everything.
        #expect(statuses([Entry(offset: 0)], contentBytes: 130) == [.overlapping])
        #expect(statuses([Entry(offset: 1 << 60, isLong: true)], contentBytes: 130) == [.overlapping])
        #expect(statuses([Entry(offset: .max, isLong: true)], contentBytes: 130) == nil)
    }

    @Test func `many small entries may not become too large together`() {
        let (head, size) = (UInt64(31), UInt64(10 << 20))
        func entries(_ count: Int, compressed: UInt64) -> [Entry] {
            (0..<count).map {
                Entry(offset: UInt64($0) * (head + compressed), compressed: compressed, size: size)
            }
        }
        func found(_ entries: [Entry]) -> [ArchiveProtocol.Status]? {
            statuses(entries, contentBytes: entries.reduce(0) { $0 + Int(head + $1.compressed) })
        }
        #expect(
            found(entries(7, compressed: 10 << 10)) == [ArchiveProtocol.Status](repeating: .bomb, count: 7))
        #expect(found(entries(6, compressed: 10 << 10)) == [ArchiveProtocol.Status](repeating: .ok, count: 6))
        #expect(found(entries(7, compressed: 60 << 10)) == [ArchiveProtocol.Status](repeating: .ok, count: 7))
        // Those of ordinary size are not refused with them.
        let mixed = entries(7, compressed: 1 << 10) + [Entry(offset: 7 * (head + 1 << 10))]
        let refused = statuses(mixed, contentBytes: 100_000)
        #expect(refused == [ArchiveProtocol.Status](repeating: .bomb, count: 7) + [.ok])
        // Each by itself.
        let giant = (0..<3).map {
            Entry(offset: UInt64($0) * 131, compressed: 100, size: .max, isLong: true)
        }
        #expect(statuses(giant, contentBytes: 393) == [.bomb, .bomb, .bomb])
    }

    @Test func `a directory that is not whole is none`() {
        let whole = archive(
            [Entry(offset: 0), Entry(offset: 131, isLong: true)], contentBytes: 262, isLong: true)
        for count in 0..<whole.count - 24 {
            #expect(CentralDirectory(MemoryByteSource(Array(whole.prefix(count)))) == nil)
        }
        // Whatever one byte says, there is an answer.
        for index in 262..<whole.count {
            for value in [0, 1, 0x7F, 0xFF] as [UInt8] {
                var changed = whole
                changed[index] = value
                _ = CentralDirectory(MemoryByteSource(changed))?.statuses()
            }
        }
    }
}
