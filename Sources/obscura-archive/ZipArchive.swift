internal import CZip
internal import Glibc
internal import PhotoImaging
internal import TakeoutRules

/// An error with its word in the protocol.
struct ArchiveRefusal: Error {
    var status: ArchiveProtocol.Status
}

/// An open zip file. libzip reads ZIP64 too.
final class ZipArchive {
    private let archive: OpaquePointer
    private let directory: CentralDirectory
    /// By place and size in the archive.
    private let statuses: [ArchiveProtocol.Status]
    private var current: OpenEntry?
    /// The bytes of the entry that was read last, if it is small: readers of pictures jump back and forth.
    private var kept: (index: Int, bytes: [UInt8])?

    /// An entry that is read in order.
    private struct OpenEntry {
        var index: Int
        var file: OpaquePointer
        var position: UInt64
    }

    private static let keptBytesMax: UInt64 = 64 << 20

    private init(_ archive: OpaquePointer, _ directory: CentralDirectory) {
        self.archive = archive
        self.directory = directory
        statuses = directory.statuses()
    }

    deinit {
        if let current { zip_fclose(current.file) }
        zip_discard(archive)
    }

    static func open(_ descriptor: Int32) -> Result<ZipArchive, ArchiveRefusal> {
        var code: Int32 = 0
        // Before libzip takes the descriptor.
        let directory = ArchiveFile(descriptor).flatMap { CentralDirectory($0) }
        if let archive = zip_fdopen(descriptor, ZIP_RDONLY, &code) {
            // If libzip has found another directory, the places in this one say nothing.
            guard let directory, directory.sizes.count == Int(zip_get_num_entries(archive, 0)) else {
                zip_discard(archive)
                return .failure(ArchiveRefusal(status: .notWhole))
            }
            return .success(ZipArchive(archive, directory))
        }
        let isUnreadable = [ZIP_ER_READ, ZIP_ER_SEEK, ZIP_ER_TELL].contains(code)
        return .failure(ArchiveRefusal(status: isUnreadable ? .unreadable : .notWhole))
    }

    var count: Int { max(0, Int(zip_get_num_entries(archive, 0))) }

    func entry(_ index: Int) -> ArchiveEntry {
        var found = zip_stat_t()
        guard zip_stat_index(archive, zip_uint64_t(index), 0, &found) == 0,
            UInt64(found.valid) & UInt64(ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE)
                == UInt64(ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE),
            directory.sizes[index]
                == CentralDirectory.Sizes(byteCount: found.size, compressed: found.comp_size)
        else { return ArchiveEntry(name: [], byteCount: 0, modified: 0, status: .notWhole) }
        let name = found.name.map { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) } ?? []
        return ArchiveEntry(
            name: Array(name.prefix(0xFFFF)), byteCount: found.size, modified: Int64(found.mtime),
            status: status(of: found, index))
    }

    private func status(of found: zip_stat_t, _ index: Int) -> ArchiveProtocol.Status {
        if Int32(found.encryption_method) != ZIP_EM_NONE { return .encrypted }
        let isKnown = zip_compression_method_supported(zip_int32_t(found.comp_method), 0) != 0
        if !isKnown { return .unknownMethod }
        return statuses[index]
    }

    /// Reads bytes of an entry. The checksum is compared when the last byte was read in order.
    func read(_ index: UInt64, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer)
        -> ArchiveProtocol.Status
    {
        guard index < UInt64(count) else { return .unreadable }
        let index = Int(index)
        let entry = entry(index)
        guard entry.status == .ok else { return entry.status }
        guard offset <= entry.byteCount, UInt64(buffer.count) <= entry.byteCount - offset else {
            return .notWhole
        }
        if entry.byteCount > Self.keptBytesMax {
            return readInOrder(index, entry.byteCount, at: offset, into: buffer)
        }
        if kept?.index != index {
            var bytes = [UInt8](repeating: 0, count: Int(entry.byteCount))
            let status = bytes.withUnsafeMutableBytes { readInOrder(index, entry.byteCount, at: 0, into: $0) }
            guard status == .ok else { return status }
            kept = (index, bytes)
        }
        kept?.bytes.withUnsafeBytes { bytes in
            buffer.copyMemory(
                from: UnsafeRawBufferPointer(rebasing: bytes[Int(offset)..<Int(offset) + buffer.count]))
        }
        return .ok
    }

    /// Reads on from where the last read of this entry ended, or from its beginning up to there.
    private func readInOrder(
        _ index: Int, _ byteCount: UInt64, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer
    ) -> ArchiveProtocol.Status {
        if let open = current, open.index != index || open.position > offset {
            zip_fclose(open.file)
            current = nil
        }
        if current == nil {
            guard let file = zip_fopen_index(archive, zip_uint64_t(index), 0) else { return .damaged }
            current = OpenEntry(index: index, file: file, position: 0)
        }
        var skipped = [UInt8](repeating: 0, count: 1 << 16)
        while let position = current?.position, position < offset {
            let count = min(UInt64(skipped.count), offset - position)
            let status = skipped.withUnsafeMutableBytes {
                advance(into: UnsafeMutableRawBufferPointer(rebasing: $0[..<Int(count)]))
            }
            guard status == .ok else { return status }
        }
        let status = advance(into: buffer)
        guard status == .ok, current?.position == byteCount else { return status }
        return end()
    }

    private func advance(into buffer: UnsafeMutableRawBufferPointer) -> ArchiveProtocol.Status {
        guard var open = current else { return .unreadable }
        var done = 0
        while done < buffer.count {
            let count = zip_fread(
                open.file, buffer.baseAddress.map { $0 + done }, zip_uint64_t(buffer.count - done))
            guard count > 0 else { return abandon() }
            done += Int(count)
            open.position += UInt64(count)
            current = open
        }
        return .ok
    }

    /// The checksum is known, and compared, only once the end was met. More bytes than announced are damage too.
    private func end() -> ArchiveProtocol.Status {
        guard let open = current else { return .ok }
        var more: UInt8 = 0
        let count = zip_fread(open.file, &more, 1)
        return count == 0 ? .ok : abandon()
    }

    private func abandon() -> ArchiveProtocol.Status {
        if let current { zip_fclose(current.file) }
        current = nil
        return .damaged
    }
}

/// The archive before it is opened.
private struct ArchiveFile: ByteSource {
    private let descriptor: Int32
    let byteCount: UInt64

    /// Nil if it has no size.
    init?(_ descriptor: Int32) {
        var info = stat()
        guard fstat(descriptor, &info) == 0, let size = UInt64(exactly: info.st_size) else { return nil }
        (self.descriptor, byteCount) = (descriptor, size)
    }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var done = 0
        while done < buffer.count {
            let place = off_t(offset) + off_t(done)
            let count = pread(descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done, place)
            if count < 0, errno == EINTR { continue }
            if count < 0 { return -1 }
            if count == 0 { break }
            done += count
        }
        return done
    }
}
