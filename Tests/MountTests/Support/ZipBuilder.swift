import Foundation

/// A zip file, entry by entry (APPNOTE.TXT), sound or not.
struct ZipBuilder {
    private var body: [UInt8] = []
    private var directory: [UInt8] = []
    private var count = 0
    /// Where the last entry begins.
    private var place = 0

    /// The fault of an entry.
    struct Fault: OptionSet {
        let rawValue: Int
        static let encrypted = Fault(rawValue: 1)
        static let checksum = Fault(rawValue: 2)
        /// Announces 8 GiB that DEFLATE made small.
        static let bomb = Fault(rawValue: 4)
        /// Sizes are in ZIP64's extra field: no fault, but rare.
        static let zip64 = Fault(rawValue: 8)
        static let method = Fault(rawValue: 16)
        /// Has no content of its own: its place is that of the entry before.
        static let overlapping = Fault(rawValue: 32)
    }

    /// Adds a stored entry.
    mutating func add(_ name: String, _ bytes: [UInt8], _ faults: Fault = []) {
        let checksum = faults.contains(.checksum) ? 1 : crc32(bytes)
        let flags = 0x0800 | (faults.contains(.encrypted) ? 1 : 0)
        let method = faults.contains(.bomb) ? 8 : faults.contains(.method) ? 77 : 0
        let size = faults.contains(.bomb) ? 8 << 30 : bytes.count
        let isLong = faults.contains(.zip64) || faults.contains(.bomb)
        let long = isLong ? number(1, 2) + number(16, 2) + number(size, 8) + number(bytes.count, 8) : []
        let sizes = isLong ? [UInt8](repeating: 0xFF, count: 8) : number(bytes.count, 4) + number(size, 4)
        if !faults.contains(.overlapping) { place = body.count }
        let name = Array(name.utf8)
        let common =
            number(flags, 2) + number(method, 2) + number(0, 2) + number(0x5862, 2) + number(checksum, 4)
            + sizes
            + number(name.count, 2) + number(long.count, 2)
        directory +=
            number(0x0201_4B50, 4) + number(0x032D, 2) + number(45, 2) + common + number(0, 2) + number(0, 2)
            + number(0, 2) + number(0o100644 << 16, 4) + number(place, 4) + name + long
        count += 1
        if faults.contains(.overlapping) { return }
        body += number(0x0403_4B50, 4) + number(45, 2) + common + name + long + bytes
    }

    var bytes: [UInt8] {
        body + directory + number(0x0605_4B50, 4) + number(0, 4) + number(count, 2) + number(count, 2)
            + number(directory.count, 4) + number(body.count, 4) + number(0, 2)
    }

    private func number(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private func crc32(_ bytes: [UInt8]) -> Int {
        var checksum: UInt32 = .max
        for byte in bytes {
            checksum ^= UInt32(byte)
            for _ in 0..<8 { checksum = checksum >> 1 ^ (checksum & 1 == 0 ? 0 : 0xEDB8_8320) }
        }
        return Int(~checksum)
    }
}
