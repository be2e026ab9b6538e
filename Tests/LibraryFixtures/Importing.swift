package import LinuxIO
import PhotoImaging
import TestSupport
import Testing
import VaultCatalogue

@testable import CatalogueRows
@testable import FileRequests
@testable package import PhotoImport
@testable import PhotoLibrary

/// A file outside the vault, in memory.
package final class MemorySource: ImportSource {
    package let bytes: [UInt8]
    /// Bytes that can be read; then the disk fails.
    package let readableCount: Int
    package var isUnchanged = true

    package init(_ bytes: [UInt8], readableCount: Int = .max) {
        self.bytes = bytes
        self.readableCount = readableCount
    }

    package var byteCount: UInt64 { UInt64(bytes.count) }

    package func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if Int(offset) + buffer.count > readableCount { return -1 }
        return MemoryByteSource(bytes).read(at: offset, into: buffer)
    }
}

/// When it was written.
package let importTime = Timestamp(seconds: 1_000_000_000, nanoseconds: 123_456_789)

/// As the command describes a file of another owner, with an attribute.
package func importFile(_ name: String, _ source: MemorySource, mode: UInt32 = 0o640) -> ImportFile<
    MemorySource
> {
    let attribute = ExtendedAttribute(name: Array("user.note".utf8), value: [1, 2, 3])
    return ImportFile(
        name: Name(name),
        details: FileDetails(
            mode: mode, owner: Caller(uid: 7, gid: 8), accessed: importTime, modified: importTime,
            attributes: [attribute]),
        source: source)
}

extension LibraryUser {
    /// Imports a photo as the command does. Nil: its bytes are there, or nothing was added.
    @discardableResult
    package func bring(
        _ name: String, _ bytes: [UInt8], sidecars: [(String, [UInt8])] = [],
        to place: ImportPlace = ImportPlace(),
        asNew: Bool = false
    ) throws -> Added? {
        let source = MemorySource(bytes)
        let sidecar = ImportRules.sidecar(
            of: Name(name), among: sidecars.map { (Name($0.0), MemoryByteSource($0.1)) })
        let appraisal = try library.importer.classifyImport(
            source, SourceFacts(source), named: Name(name), modified: importTime, sidecar: sidecar,
            asNew: asNew)
        guard case .photo(let candidate) = appraisal else { return nil }
        return try library.importer.add(
            candidate, importFile(name, source),
            sidecars: sidecars.map { importFile($0.0, MemorySource($0.1)) },
            to: place)
    }
}
