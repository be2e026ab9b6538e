import Glibc
import LinuxIO
import VaultFormat

/// Statistics of the bytes of segments and of the header.
extension Sample {
    /// The counts of one segment.
    private struct Count {
        var (pages, ones, changes, zeroSectors) = (0, 0, 0, 0)
        var (chiSum, chiMost) = (0.0, 0.0)
        var (repeatsWithin, repeatsBetween) = (0, 0)
    }

    /// The first bytes of a page, which never recur.
    private struct Start: Hashable {
        var low: UInt64
        var high: UInt64
    }

    mutating func addBytes(_ segments: [[SegmentRange]], decoy: Int) throws {
        var seen: [Start: Int] = [:]
        var (counts, number) = ([[Count]](), 0)
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 256 << 10, alignment: 4096)
        defer { buffer.deallocate() }
        for ranges in segments {
            counts.append(
                try ranges.map { range in
                    number += 1
                    return try Self.count(range, segment: number, buffer, &seen)
                })
        }
        func add(_ group: FeatureGroup, _ name: String, _ value: (Count) -> Double) {
            self.add(group, name, counts.map { $0.map(value) }, decoy: decoy)
        }
        add(.bytes, "ones a page") { Double($0.ones) / Double(max(1, $0.pages)) }
        add(.bytes, "runs a page") { Double($0.changes) / Double(max(1, $0.pages)) }
        add(.bytes, "chi-square a page") { $0.chiSum / Double(max(1, $0.pages)) }
        add(.bytes, "highest chi-square") { $0.chiMost }
        add(.bytes, "zero sectors") { Double($0.zeroSectors) }
        add(.repeats, "pages as in the same segment") { Double($0.repeatsWithin) }
        add(.repeats, "pages as in other segments") { Double($0.repeatsBetween) }
    }

    private static func count(
        _ range: SegmentRange, segment: Int, _ buffer: UnsafeMutableRawBufferPointer,
        _ seen: inout [Start: Int]
    ) throws -> Count {
        let calls = LinuxCalls.shared
        let file = try calls.open(AT_FDCWD, range.path, flags: O_RDONLY, mode: 0)
        defer { calls.close(file) }
        var (count, offset) = (Count(), UInt64(0))
        // Segments are a multiple of the buffer's size.
        while offset < range.bytes {
            let length = try calls.readFully(file, buffer, at: range.start + offset)
            if length == 0 { break }
            add(UnsafeRawBufferPointer(buffer.slice(0, length)), segment: segment, to: &count, &seen)
            offset += UInt64(length)
        }
        return count
    }

    /// Counts the bytes of some pages of a segment.
    private static func add(
        _ bytes: UnsafeRawBufferPointer, segment: Int, to count: inout Count, _ seen: inout [Start: Int]
    ) {
        for offset in stride(from: 0, to: bytes.count - Geometry.pageBytes + 1, by: Geometry.pageBytes) {
            let page = UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + Geometry.pageBytes])
            count.pages += 1
            let chi = chiSquare(page)
            count.chiSum += chi
            count.chiMost = max(count.chiMost, chi)
            for place in stride(from: 0, to: page.count, by: 8) {
                let word = page.loadUnaligned(fromByteOffset: place, as: UInt64.self)
                count.ones += word.nonzeroBitCount
                // Of neighbours that differ, the 63 within the word.
                count.changes += ((word ^ (word >> 1)) & (.max >> 1)).nonzeroBitCount
                if place % Geometry.sectorBytes == 0 && word == 0 { count.zeroSectors += 1 }
            }
            let start = Start(
                low: page.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                high: page.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            if start.low == 0 && start.high == 0 { continue }
            if let before = seen.updateValue(segment, forKey: start) {
                if before == segment { count.repeatsWithin += 1 } else { count.repeatsBetween += 1 }
            }
        }
    }

    /// Of the 256 values of a byte, with 255 degrees of freedom.
    private static func chiSquare(_ bytes: UnsafeRawBufferPointer) -> Double {
        withUnsafeTemporaryAllocation(of: Int32.self, capacity: 256) { counts in
            counts.initialize(repeating: 0)
            for byte in bytes { counts[Int(byte)] &+= 1 }
            let expected = Double(bytes.count) / 256
            return counts.reduce(0.0) { sum, count in
                let distance = Double(count) - expected
                return sum + distance * distance / expected
            }
        }
    }

    mutating func addHeader(_ attacker: Attacker) {
        let (decoy, bytes) = (attacker.space, attacker.header)
        add(.header, "slot of the decoy", decoy)
        let slots = (0..<attacker.spaceCount).map { slot in
            let start = HeaderLayout.keySlotOffset(slot)
            return [bytes[start..<start + HeaderLayout.keySlotBytes]]
        }
        func ones(_ bytes: ArraySlice<UInt8>) -> Double {
            Double(bytes.reduce(0) { $0 + $1.nonzeroBitCount })
        }
        add(.header, "ones in slots", slots.map { $0.map(ones) }, decoy: decoy)
        add(
            .header, "zeros in slots", slots.map { $0.map { Double($0.filter { $0 == 0 }.count) } },
            decoy: decoy)
        let end = HeaderLayout.keySlotOffset(attacker.spaceCount)
        add(.header, "ones behind the slots", ones(bytes[end..<HeaderLayout.checksumOffset]))
        let copies = HeaderLayout.copyOffsets.map {
            Array(bytes[Int($0)..<Int($0) + HeaderLayout.copyBytes])
        }
        add(.header, "bytes in which the copies differ", zip(copies[0], copies[1]).filter { $0 != $1 }.count)
        let between = bytes[HeaderLayout.copyBytes..<Int(HeaderLayout.copyOffsets[1])]
        add(.header, "ones between the copies", ones(between))
        add(.header, "chi-square between the copies", Array(between).withUnsafeBytes(Self.chiSquare))
        header = copies.flatMap { $0 }
    }
}
