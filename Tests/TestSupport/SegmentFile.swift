public import Foundation

/// A segment of a vault as the format's specification has it: its file, and where it begins there.
public struct SegmentFile: Sendable {
    public let path: String
    /// Bytes of the file before the segment.
    public let start: UInt64
    /// Bytes of a whole segment.
    public let length: UInt64

    public init(_ vault: String, space: Int, _ number: Int) throws {
        let header = try FileHandle(forReadingFrom: URL(fileURLWithPath: vault + "/obscura.vault"))
        defer { try? header.close() }
        let fields = try header.read(upToCount: 24) ?? Data()
        let spaces = UInt64(fields[10])
        length = fields[16..<24].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        if spaces > 1 {
            path = vault + "/spaces"
            start = (UInt64(number) * spaces + UInt64(space)) * length
        } else {
            let digits = String(number)
            path =
                vault + "/segments/" + String(repeating: "0", count: max(0, 6 - digits.count)) + digits
                + ".seg"
            start = 0
        }
    }

    /// As many of `count` bytes as there are from `offset` on; all without `count`.
    public func read(at offset: UInt64 = 0, count: Int? = nil) throws -> Data {
        let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? file.close() }
        try file.seek(toOffset: start + offset)
        return try file.read(upToCount: count ?? Int(length - offset)) ?? Data()
    }

    public func write(_ bytes: Data, at offset: UInt64 = 0) throws {
        let file = try FileHandle(forUpdating: URL(fileURLWithPath: path))
        defer { try? file.close() }
        try file.seek(toOffset: start + offset)
        try file.write(contentsOf: bytes)
    }

    /// Applies `change` to the bytes from `offset` on.
    public func change(at offset: UInt64, count: Int, _ change: (Data) -> Data) throws {
        try write(change(read(at: offset, count: count)), at: offset)
    }
}
