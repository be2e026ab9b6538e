package import PhotoImaging

/// Where the entries of a zip file lie, as its central directory says (APPNOTE.TXT 6.3, 4.3.12 to 4.3.16, 4.5.3).
/// libzip, which reads them, does not tell.
package struct CentralDirectory {
    /// The sizes of an entry.
    package struct Sizes: Equatable, Sendable {
        package var byteCount: UInt64
        package var compressed: UInt64

        package init(byteCount: UInt64, compressed: UInt64) {
            self.byteCount = byteCount
            self.compressed = compressed
        }
    }

    /// Of each entry, in the directory's order.
    package private(set) var sizes: [Sizes] = []
    /// Of each entry, the bytes of the archive that it has at least: its header, its name and its content.
    private var extents: [Range<UInt64>] = []
    /// Where the directory begins, and the entries end.
    private let start: UInt64

    /// Reads the directory. Nil if it is not whole.
    package init?(_ archive: some ByteSource) {
        var window = Window(archive)
        guard let end = DirectoryEnd(&window), end.count <= UInt64(ArchiveProtocol.entriesMax) else {
            return nil
        }
        start = end.start
        var position = end.start
        for _ in 0..<end.count {
            guard let length = read(&window, at: position) else { return nil }
            position += length
        }
    }

    /// Reads the entry there, and returns the length of its header. Nil if it is none.
    private mutating func read(_ window: inout Window<some ByteSource>, at position: UInt64) -> UInt64? {
        guard let head = window.bytes(at: position, Header.bytes),
            integer(head[0..<4]) == Header.signature
        else { return nil }
        let nameBytes = Int(integer(head[28..<30]))
        let extraBytes = Int(integer(head[30..<32]))
        let commentBytes = Int(integer(head[32..<34]))
        var long = [integer(head[24..<28]), integer(head[20..<24]), integer(head[42..<46])]
        if long.contains(Header.isLong) {
            guard let extra = window.bytes(at: position + UInt64(Header.bytes + nameBytes), extraBytes),
                Self.replaceLong(&long, by: extra)
            else { return nil }
        }
        let (byteCount, compressed, offset) = (long[0], long[1], long[2])
        let headBytes = UInt64(Header.localBytes + nameBytes)
        // Beyond any disk: the sum could overflow.
        guard offset < 1 << 62, compressed < 1 << 62 else { return nil }
        sizes.append(Sizes(byteCount: byteCount, compressed: compressed))
        extents.append(offset..<offset + headBytes + compressed)
        return UInt64(Header.bytes + nameBytes + extraBytes + commentBytes)
    }

    /// Replaces the numbers that do not fit in 4 bytes by those of the ZIP64 field. False if it lacks one.
    private static func replaceLong(_ numbers: inout [UInt64], by extra: [UInt8]) -> Bool {
        var rest = extra[...]
        while rest.count >= 4 {
            let count = Int(integer(rest.prefix(4).suffix(2)))
            guard count <= rest.count - 4 else { return false }
            var field = rest.dropFirst(4).prefix(count)
            if integer(rest.prefix(2)) == Header.longField {
                for index in numbers.indices where numbers[index] == Header.isLong {
                    guard field.count >= 8 else { return false }
                    numbers[index] = integer(field.prefix(8))
                    field = field.dropFirst(8)
                }
                return true
            }
            rest = rest.dropFirst(4 + count)
        }
        return false
    }

    private enum Header {
        static let signature: UInt64 = 0x0201_4B50
        static let bytes = 46
        /// Of the header before the entry's content.
        static let localBytes = 30
        /// Stands for a number in the ZIP64 field.
        static let isLong: UInt64 = 0xFFFF_FFFF
        static let longField: UInt64 = 1
    }

    /// Why each entry is refused for its place or size in the archive; `ok` for the others.
    ///
    /// No program makes entries that share bytes. A small archive that has them can announce terabytes, as can many
    /// small entries that are compressed a thousandfold: so the rule of ``ArchiveProtocol/isBomb(size:compressed:)``
    /// holds for all of them together too.
    package func statuses() -> [ArchiveProtocol.Status] {
        var statuses = [ArchiveProtocol.Status](repeating: .ok, count: sizes.count)
        var last: (index: Int, end: UInt64)?
        for index in extents.indices.sorted(by: { extents[$0].lowerBound < extents[$1].lowerBound }) {
            let extent = extents[index]
            if extent.upperBound > start { statuses[index] = .overlapping }
            if let last, extent.lowerBound < last.end {
                (statuses[index], statuses[last.index]) = (.overlapping, .overlapping)
            }
            if extent.upperBound > last?.end ?? 0 { last = (index, extent.upperBound) }
        }
        for (index, entry) in sizes.enumerated() where statuses[index] == .ok {
            if ArchiveProtocol.isBomb(size: entry.byteCount, compressed: entry.compressed) {
                statuses[index] = .bomb
            }
        }
        let others = sizes.indices.filter { statuses[$0] == .ok }
        // No sum overflows: none of them shares bytes, or is larger than 64 MiB and 200 times its part of the archive.
        let size = others.reduce(0) { $0 + sizes[$1].byteCount }
        if ArchiveProtocol.isBomb(size: size, compressed: others.reduce(0) { $0 + sizes[$1].compressed }) {
            for index in others
            where sizes[index].byteCount / ArchiveProtocol.ratioMax > sizes[index].compressed {
                statuses[index] = .bomb
            }
        }
        return statuses
    }
}

/// The end of the central directory: how many entries it has, and where it begins.
private struct DirectoryEnd {
    var count: UInt64
    var start: UInt64

    private static let bytes = 22
    private static let commentBytesMax = 0xFFFF
    private static let signature: [UInt8] = [0x50, 0x4B, 5, 6]
    private static let longBytes = 56
    private static let longSignature: [UInt8] = [0x50, 0x4B, 6, 6]
    private static let locatorBytes = 20
    private static let locatorSignature: [UInt8] = [0x50, 0x4B, 6, 7]

    /// Nil if there is none.
    init?(_ window: inout Window<some ByteSource>) {
        let tailBytes = Int(min(window.byteCount, UInt64(Self.bytes + Self.commentBytesMax)))
        let tailStart = window.byteCount - UInt64(tailBytes)
        guard tailBytes >= Self.bytes, let tail = window.bytes(at: tailStart, tailBytes) else { return nil }
        let found = (0...tailBytes - Self.bytes).last { tail[$0..<$0 + 4].elementsEqual(Self.signature) }
        guard let found else { return nil }
        count = integer(tail[found + 10..<found + 12])
        start = integer(tail[found + 16..<found + 20])
        let position = tailStart + UInt64(found)
        guard position >= UInt64(Self.locatorBytes),
            let locator = window.bytes(at: position - UInt64(Self.locatorBytes), Self.locatorBytes),
            locator.starts(with: Self.locatorSignature)
        else { return }
        guard let end = window.bytes(at: integer(locator[8..<16]), Self.longBytes),
            end.starts(with: Self.longSignature)
        else { return nil }
        count = integer(end[32..<40])
        start = integer(end[48..<56])
    }
}

/// Reads an archive in pieces.
private struct Window<Source: ByteSource> {
    private let source: Source
    private var buffer: [UInt8] = []
    private var start: UInt64 = 0
    let byteCount: UInt64

    private static var pieceBytes: Int { 1 << 20 }

    init(_ source: Source) {
        self.source = source
        byteCount = source.byteCount
    }

    /// Exactly that many bytes; nil if there are fewer.
    mutating func bytes(at offset: UInt64, _ count: Int) -> [UInt8]? {
        guard offset <= byteCount, UInt64(count) <= byteCount - offset else { return nil }
        if offset < start || offset + UInt64(count) > start + UInt64(buffer.count) {
            let room = Int(min(UInt64(max(count, Self.pieceBytes)), byteCount - offset))
            var piece = [UInt8](repeating: 0, count: room)
            guard unsafe piece.withUnsafeMutableBytes({ unsafe source.read(at: offset, into: $0) }) == room
            else {
                return nil
            }
            (buffer, start) = (piece, offset)
        }
        let first = Int(offset - start)
        return Array(buffer[first..<first + count])
    }
}
