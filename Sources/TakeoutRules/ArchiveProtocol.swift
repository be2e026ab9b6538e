/// The words between `obscura` and `obscura-archive`, which reads a zip file for it: little-endian integers on a
/// socket.
///
/// First comes the listing: a ``Status``; if it is not `ok` the end. Then the number of entries (8 bytes) and each
/// entry as of ``ArchiveEntry/bytes``. Then each request, an entry's index, an offset and a number of bytes (8 bytes
/// each), is answered by a status, and if that is `ok` by exactly those bytes.
package enum ArchiveProtocol {
    package enum Status: UInt8, Sendable {
        case ok
        /// Not a zip file, or not all of one.
        case notWhole
        /// The entry's bytes do not have the checksum that the archive gives.
        case damaged
        /// Encrypted.
        case encrypted
        /// Compressed in a way that cannot be undone here.
        case unknownMethod
        /// It would become out of all proportion larger than its part of the archive.
        case bomb
        /// It shares bytes of the archive with another entry, or with the list of entries.
        case overlapping
        case tooManyEntries
        /// The disk returned an error.
        case unreadable
    }

    /// The archive's descriptor and the socket's in `obscura-archive`.
    package static let socket: Int32 = 0
    package static let archive: Int32 = 3

    package static let requestBytes = 24
    /// Maximum bytes of one request.
    package static let readBytesMax = 1 << 20
    /// Maximum entries of an archive that is read.
    package static let entriesMax = 4_000_000
    /// An entry is refused if it is larger than this and more than `ratioMax` times its compressed size. DEFLATE can
    /// reach 1032; photos and videos are compressed already. The same holds for all entries together.
    static let bombBytesMin: UInt64 = 64 << 20
    package static let ratioMax: UInt64 = 200

    package static func isBomb(size: UInt64, compressed: UInt64) -> Bool {
        size > bombBytesMin && size / ratioMax > compressed
    }
}

/// An entry of an archive.
package struct ArchiveEntry: Equatable, Sendable {
    package var name: [UInt8]
    package var byteCount: UInt64
    /// Seconds since 1970 UTC.
    package var modified: Int64
    /// `ok`, or why it cannot be read.
    package var status: ArchiveProtocol.Status

    package init(name: [UInt8], byteCount: UInt64, modified: Int64, status: ArchiveProtocol.Status) {
        self.name = name
        self.byteCount = byteCount
        self.modified = modified
        self.status = status
    }

    /// Bytes of the fixed part: size, time, status, length of the name.
    package static let headBytes = 19

    /// As sent: the fixed part and the name.
    package var bytes: [UInt8] {
        littleEndian(byteCount) + littleEndian(UInt64(bitPattern: modified)) + [status.rawValue]
            + [UInt8(name.count & 0xFF), UInt8(name.count >> 8 & 0xFF)] + name
    }

    /// The entry whose fixed part was received, without its name; and the length of that. Nil if it is invalid.
    package static func head(_ bytes: [UInt8]) -> (entry: ArchiveEntry, nameBytes: Int)? {
        guard bytes.count == headBytes, let status = ArchiveProtocol.Status(rawValue: bytes[16]) else {
            return nil
        }
        let entry = ArchiveEntry(
            name: [], byteCount: integer(bytes[0..<8]), modified: Int64(bitPattern: integer(bytes[8..<16])),
            status: status)
        return (entry, Int(bytes[17]) | Int(bytes[18]) << 8)
    }

    /// The components of the name; nil if it leads outside of the archive: absolute, or with `..`.
    package var path: [[UInt8]]? {
        let slash = UInt8(ascii: "/")
        guard name.first != slash else { return nil }
        let components = name.split(separator: slash).map { Array($0) }
        guard !components.isEmpty, !components.contains(Array("..".utf8)), !name.contains(0) else {
            return nil
        }
        return components.filter { $0 != Array(".".utf8) }
    }

    /// Directories have no bytes of their own.
    package var isDirectory: Bool { name.last == UInt8(ascii: "/") }
}

package func littleEndian(_ value: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
}

/// Of up to 8 bytes.
package func integer(_ bytes: some Collection<UInt8>) -> UInt64 {
    bytes.enumerated().reduce(0) { $0 | UInt64($1.element) << ($1.offset * 8) }
}
