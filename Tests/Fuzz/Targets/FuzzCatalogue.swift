import Glibc
import LinuxIO
import TestFixtures
import TestSupport
import VaultFormat

@testable import CatalogueRows
@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// Pages of a catalogue by somebody who knows the key: the input says which bytes of a sound one are changed.
/// It is checked as a whole, and, where SQLite opens it, mounted and used.
func fuzzCatalogue(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    let image = CatalogueImage.base.changed(by: &input)
    guard let catalogue = try? Catalogue(storage: image, readOnly: true) else { return }
    catalogue.locked { tables in
        for rule in IntegrityConstraint.all { _ = try? tables.checks.violations(of: rule, limit: 8) }
        _ = try? tables.checks.integrityErrors()
        _ = try? tables.checks.fileCount()
        _ = try? tables.runs.counts(sectorsPerSegment: 8192)
        _ = try? tables.runs.runs(reaching: 0..<1 << 40)
        _ = try? tables.contents.owners(of: [1, 16, 17, 18])
        for ino in UInt64(1)..<32 {
            _ = try? PathFinder(tables: tables).paths(of: ino)
            _ = try? tables.contents.currentRecords(ofFilesWith: ino)
            _ = try? tables.thumbnails.rows(of: ino)
        }
    }
    image.mount()
}

/// Pages in memory.
private final class CatalogueImage: PageStorage, @unchecked Sendable {
    private let vault: MemoryVault
    /// The disk with the space that the pages are of.
    private let state: DiskState
    // Used by one thread at a time.
    private var pages: [[UInt8]]

    private init(_ vault: MemoryVault, _ state: DiskState, _ pages: [[UInt8]]) {
        (self.vault, self.state, self.pages) = (vault, state, pages)
    }

    private static let caller = Caller(uid: 0, gid: 0)
    private static let options: LibraryOptions = {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.commitsByHand = true
        options.thumbnails = .off
        return options
    }()

    /// A space with a few photos, albums, links and something in the trash.
    static let base: CatalogueImage = {
        do {
            let vault = try MemoryVault(spaces: 1, segments: 0)
            let disk = MemoryDisk(vault.empty, isRecording: false)
            let library = try Library.open(try vault.unlock(disk), options: options)
            library.didGoLive()
            let albums = WellKnownInode.albums
            let trip = try library.makeDirectory(albums, "Trip", mode: 0o755, caller).attributes.ino
            for number in 0..<4 {
                let text = String(decoding: [UInt8](repeating: UInt8(65 + number), count: 900), as: UTF8.self)
                let parent = number == 0 ? albums : trip
                let (_, handle) = try library.create(
                    parent, Name("file\(number)"), mode: 0o644, flags: O_RDWR, caller)
                _ = try Array(text.utf8).withUnsafeBytes {
                    try library.write(handle, offset: 0, $0, caller)
                }
                try library.flush(handle)
                library.release(handle)
            }
            _ = try library.makeSymbolicLink(trip, "link", target: Array("file1".utf8), caller)
            try library.close()
            var state = disk.state
            state.settleAll()
            let space = try vault.openSpace(disk)
            let pages = try (0..<space.pageCount).map { index in
                var page = [UInt8](repeating: 0, count: Geometry.pageBytes)
                try page.withUnsafeMutableBytes { try space.readPage(index, into: $0) }
                return page
            }
            return CatalogueImage(vault, state, pages)
        } catch { preconditionFailure("\(error)") }
    }()

    /// A copy, changed as the input says: a page, an offset of two bytes, a count, and that many bytes.
    func changed(by input: inout Input) -> CatalogueImage {
        let changed = CatalogueImage(vault, state, pages)
        while !input.isEmpty {
            let page = Int(input.number(UInt8.self)) % pages.count
            let offset = Int(input.number(UInt16.self)) % Geometry.pagePlainBytes
            let bytes = input.take(Int(input.number(UInt8.self)))
            for (index, byte) in bytes.enumerated() where offset + index < Geometry.pagePlainBytes {
                changed.pages[page][offset + index] = byte
            }
        }
        return changed
    }

    /// Puts the pages into the space, and uses that as a mount and a check do.
    func mount() {
        let disk = MemoryDisk(state, isRecording: false)
        do {
            let space = try vault.openSpace(disk)
            for (index, page) in pages.enumerated() {
                page.withUnsafeBytes { space.stagePage(UInt32(index), $0) }
            }
            try space.publish(space.freeze(), durable: true)
            try space.close()
            _ = try SpaceCheck.run(try vault.unlock(disk))
            let library = try Library.open(try vault.unlock(disk), options: Self.options)
            library.didGoLive()
            walk(library, 1, depth: 0)
            change(library)
            try library.close()
        } catch {
            // An error is expected.
        }
    }

    private func walk(_ library: Library, _ directory: UInt64, depth: Int) {
        guard depth < 4 else { return }
        for entry in ((try? library.walk.entries(of: directory)) ?? []).prefix(20) {
            guard let attributes = entry.entry?.attributes else { continue }
            for name in (try? library.listExtendedAttributes(entry.ino)) ?? [] {
                _ = try? library.getExtendedAttribute(entry.ino, name: name)
            }
            _ = try? library.readLink(entry.ino)
            if attributes.isDirectory {
                walk(library, entry.ino, depth: depth + 1)
            } else {
                try? library.walk.readStored(entry.ino, Self.caller) { _, _ in false }
            }
        }
    }

    private func change(_ library: Library) {
        _ = try? library.makeDirectory(WellKnownInode.albums, "New", mode: 0o755, Self.caller)
        _ = try? library.rename(
            WellKnownInode.albums, "Trip", WellKnownInode.albums, "Other", [], Self.caller)
        for name in ["file0", "file1", "New"] as [Name] {
            try? library.unlink(WellKnownInode.albums, name, Self.caller)
        }
        _ = library.statistics()
    }

    // MARK: Pages

    var pageCount: UInt32 { UInt32(pages.count) }

    func readPage(_ index: UInt32, into bytes: UnsafeMutableRawBufferPointer) throws(StoreError) {
        guard index < pages.count else { throw .damaged }
        bytes.copyBytes(from: pages[Int(index)])
    }

    func stagePage(_ index: UInt32, _ bytes: UnsafeRawBufferPointer) {}
    func truncatePages(to count: UInt32) {}
}
