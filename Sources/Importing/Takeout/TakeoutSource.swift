import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoImport
import PhotoLibrary
import TakeoutRules

/// A file of an export: in a folder, in an archive, or made from the export's metadata.
final class TakeoutSource: ImportSource {
    private enum Origin {
        case file(SourceFile)
        case entry(ArchiveClient, Int)
        case memory(MemoryByteSource)
    }

    private let origin: Origin
    let details: FileDetails
    /// The first error of a read, for the user.
    private(set) var failure: String?

    /// As `SourceFile`.
    init(_ path: HostPath) throws(Errno) {
        let file = try SourceFile(path)
        origin = .file(file)
        details = file.details
    }

    init(_ archive: ArchiveClient, _ index: Int) {
        origin = .entry(archive, index)
        details = Self.details(modified: Timestamp(seconds: archive.entries[index].modified, nanoseconds: 0))
    }

    init(_ bytes: [UInt8], modified: Timestamp) {
        origin = .memory(MemoryByteSource(bytes))
        details = Self.details(modified: modified)
    }

    private static func details(modified: Timestamp) -> FileDetails {
        FileDetails(
            mode: 0o644, owner: Caller(uid: geteuid(), gid: getegid()), accessed: modified, modified: modified
        )
    }

    var modified: Timestamp { details.modified }

    var byteCount: UInt64 {
        switch origin {
        case .file(let file): file.byteCount
        case .entry(let archive, let index): archive.entries[index].byteCount
        case .memory(let memory): memory.byteCount
        }
    }

    var isUnchanged: Bool { if case .file(let file) = origin { file.isUnchanged } else { true } }

    func storedRange(from offset: UInt64) -> Range<UInt64>? {
        if case .file(let file) = origin { return file.storedRange(from: offset) }
        return offset < byteCount ? offset..<byteCount : nil
    }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        switch origin {
        case .file(let file):
            let count = unsafe file.read(at: offset, into: buffer)
            if let error = file.failure, failure == nil { failure = "\(error)" }
            return count
        case .memory(let memory): return unsafe memory.read(at: offset, into: buffer)
        case .entry(let archive, let index):
            guard offset < byteCount else { return 0 }
            let count = Int(min(UInt64(buffer.count), byteCount - offset))
            do throws(ArchiveError) {
                try unsafe archive.read(
                    index, at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
            } catch {
                failure = failure ?? error.reason
                return -1
            }
            return count
        }
    }

    /// All bytes; nil if there are more than `countMax`, or they cannot be read.
    func allBytes(countMax: Int) -> [UInt8]? {
        guard byteCount <= UInt64(countMax) else { return nil }
        var bytes = [UInt8](repeating: 0, count: Int(byteCount))
        let count = unsafe bytes.withUnsafeMutableBytes { unsafe read(at: 0, into: $0) }
        return count == bytes.count ? bytes : nil
    }

    /// The file under a name, with more attributes.
    func importFile(_ name: Name, _ attributes: [ExtendedAttribute] = []) -> ImportFile<TakeoutSource> {
        var details = details
        for attribute in attributes where !details.attributes.contains(where: { $0.name == attribute.name }) {
            details.attributes.append(attribute)
        }
        return ImportFile(name: name, details: details, source: self)
    }
}
