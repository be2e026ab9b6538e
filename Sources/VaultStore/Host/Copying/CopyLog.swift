import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// `obscura.backup`, a redo log that exists only in a copy of a vault: the changes that a backup will make to the copy.
///
/// A *whole* log ends with the copy's new header, and all of it is synced before the copy's own header is invalidated.
/// The log is valid only while the header is invalid: the next program that opens such a copy applies the log, the
/// header last. An incomplete log in a copy without a header means that the first backup was interrupted.
///
/// The file is a head of 128 bytes (magic, version, the vault's clear fields, hash), then records: kind (1), zeros (3),
/// space (4), segment (8), offset (8), bytes (8), hash of these 32 bytes and of the following ones (32), the bytes. A
/// later version has in bytes 12 to 15 of its head the release that is needed.
final class CopyLog {
    static let name = "obscura.backup"

    private static let magic: [UInt8] = Array("OBSCURA+".utf8)
    private static let version: UInt16 = 1
    private static let headBytes = 128
    private static let releaseOffset = 12
    private static let clearOffset = 16
    private static let headHashOffset = 96
    private static let hashBytes = 32

    private static let recordBytes = 64
    private static let recordHashOffset = 32
    private static let kindSegment: UInt8 = 1
    private static let kindHeader: UInt8 = 2
    /// The most bytes of a record.
    static let dataBytesMax = 1 << 20

    private let file: any PartBytes
    private var end = UInt64(headBytes)
    /// The clear fields of the vault's header.
    let clearFields: [UInt8]

    private init(_ file: any PartBytes, _ clearFields: [UInt8]) {
        self.file = file
        self.clearFields = clearFields
    }

    // MARK: Writing

    /// Creates an empty log, replacing an existing one.
    init(makingIn vault: any PartHost, _ clearFields: [UInt8]) throws(Errno) {
        self.clearFields = clearFields
        file = try vault.open(.copyLog, .replacing)
        var head = [UInt8](repeating: 0, count: Self.headBytes)
        head.withUnsafeMutableBytes { head in
            head.copyBytes(from: Self.magic)
            head.setNumber(Self.version, Self.magic.count)
            head.slice(Self.clearOffset, HeaderLayout.clearBytes).copyBytes(from: clearFields)
            Self.hashHead(UnsafeRawBufferPointer(head), into: head.slice(Self.headHashOffset, Self.hashBytes))
        }
        try file.write(head, at: 0)
        try file.sync()
    }

    private static func hashHead(_ head: UnsafeRawBufferPointer, into out: UnsafeMutableRawBufferPointer) {
        hash([head.slice(0, headHashOffset)], into: out)
    }

    /// Adds a record: `bytes`, at most `dataBytesMax`, for an offset of a segment.
    func add(_ place: SegmentPlace, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer) throws(Errno) {
        try add(Self.kindSegment, place, offset, bytes)
    }

    /// Ends the log with the whole of `obscura.vault`, and syncs it.
    func end(with header: [UInt8]) throws(Errno) {
        let result = header.withUnsafeBytes { bytes -> Result<Void, Errno> in
            do throws(Errno) {
                let nowhere = SegmentPlace(space: 0, number: 0)
                return .success(try add(Self.kindHeader, nowhere, 0, bytes))
            } catch { return .failure(error) }
        }
        try result.get()
        try file.sync()
    }

    private func add(
        _ kind: UInt8, _ place: SegmentPlace, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer
    ) throws(Errno) {
        precondition(bytes.count <= Self.dataBytesMax)
        var record = [UInt8](repeating: 0, count: Self.recordBytes)
        record.withUnsafeMutableBytes { record in
            record.setNumber(kind, 0)
            record.setNumber(UInt32(place.space), 4)
            record.setNumber(UInt64(place.number), 8)
            record.setNumber(offset, 16)
            record.setNumber(UInt64(bytes.count), 24)
            Self.hashRecord(UnsafeRawBufferPointer(record), bytes, into: record)
        }
        try file.write(record, at: end)
        try file.write(bytes, at: end + UInt64(Self.recordBytes))
        end += UInt64(Self.recordBytes + bytes.count)
    }

    private static func hashRecord(
        _ record: UnsafeRawBufferPointer, _ bytes: UnsafeRawBufferPointer,
        into out: UnsafeMutableRawBufferPointer
    ) {
        hash([record.slice(0, recordHashOffset), bytes], into: out.slice(recordHashOffset, hashBytes))
    }

    // MARK: Reading

    /// A decoded record of the log.
    enum Record {
        case segment(SegmentPlace, offset: UInt64)
        case header
    }

    /// Opens the log of a vault; nil if there is none. Throws `newer` if it is of a later version.
    static func find(in vault: any PartHost) throws(VaultError) -> CopyLog? {
        let file: any PartBytes
        do throws(Errno) { file = try vault.open(.copyLog, .reading) } catch {
            if error == .noEntry { return nil }
            throw .system(error, "cannot open \(name)")
        }
        var head = [UInt8](repeating: 0, count: headBytes)
        let count: Int
        do throws(Errno) { count = try file.read(&head, at: 0) } catch {
            throw .system(error, "cannot open \(name)")
        }
        var sum = [UInt8](repeating: 0, count: hashBytes)
        sum.withUnsafeMutableBytes { sum in head.withUnsafeBytes { hashHead($0, into: sum) } }
        guard count == headBytes, head.starts(with: magic),
            sum[...] == head[headHashOffset..<headHashOffset + hashBytes]
        else { return nil }
        let found = head.withUnsafeBytes { $0.number(magic.count, as: UInt16.self) }
        if found > version {
            let release = head.withUnsafeBytes {
                Release(decoding: $0.slice(releaseOffset, Release.storedBytes))
            }
            throw .newer(NewerVersion(.backupLog, version: Int(found), release: release))
        }
        return CopyLog(file, Array(head[clearOffset..<clearOffset + HeaderLayout.clearBytes]))
    }

    /// Whether all records up to the header are present and intact by their hashes.
    func isWhole() throws(VaultError) -> Bool {
        var isEnded = false
        try forEach { (record, _) throws(VaultError) in if case .header = record { isEnded = true } }
        return isEnded
    }

    /// Visits the records in order, up to the first whose hash does not match.
    func forEach(
        _ body: (Record, UnsafeRawBufferPointer) throws(VaultError) -> Void
    ) throws(VaultError) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.dataBytesMax, alignment: 16)
        defer { buffer.deallocate() }
        var offset = UInt64(Self.headBytes)
        while let (record, bytes) = try read(at: offset, buffer) {
            try body(record, bytes)
            if case .header = record { return }
            offset += UInt64(Self.recordBytes + bytes.count)
        }
    }

    private func read(
        at offset: UInt64, _ buffer: UnsafeMutableRawBufferPointer
    ) throws(VaultError) -> (Record, UnsafeRawBufferPointer)? {
        var head = [UInt8](repeating: 0, count: Self.recordBytes)
        do throws(Errno) {
            guard try file.read(&head, at: offset) == head.count else { return nil }
            let length = head.withUnsafeBytes { $0.number(24, as: UInt64.self) }
            guard length <= UInt64(Self.dataBytesMax) else { return nil }
            let data = buffer.slice(0, Int(length))
            guard try file.read(data, at: offset + UInt64(Self.recordBytes)) == data.count else {
                return nil
            }
            return Self.decode(head, UnsafeRawBufferPointer(data)).map { ($0, UnsafeRawBufferPointer(data)) }
        } catch { throw .system(error, "cannot read \(Self.name)") }
    }

    private static func decode(_ head: [UInt8], _ data: UnsafeRawBufferPointer) -> Record? {
        var sum = head
        sum.withUnsafeMutableBytes { sum in head.withUnsafeBytes { hashRecord($0, data, into: sum) } }
        guard sum == head else { return nil }
        return head.withUnsafeBytes { head in
            if head[0] == kindHeader { return .header }
            let space = Int(head.number(4, as: UInt32.self))
            let number = head.number(8, as: UInt64.self)
            guard head[0] == kindSegment, space < Geometry.spacesMax, number < UInt64(Geometry.segmentsMax)
            else {
                return nil
            }
            let offset: UInt64 = head.number(16)
            guard offset <= Geometry.segmentBytesMax else { return nil }
            return .segment(SegmentPlace(space: space, number: Int(number)), offset: offset)
        }
    }
}
