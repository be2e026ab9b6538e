import Foundation
import LibraryFixtures
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultCatalogue
@testable import VaultStore

/// A small closed vault with something of everything in it, whose stored bytes a test damages and puts back.
final class Specimen {
    let vault: TestVault
    private(set) var unlocked: UnlockedSpace
    /// The bytes of every file, by one of its paths.
    let files: [String: [UInt8]]
    /// The vault's segments as they are when nothing is damaged.
    private let whole: [Int: Data]

    static let segmentBytes = 4 << 20

    /// - Parameter spaces: of one, each segment has a file of its own.
    init(spaces: Int = 2) throws {
        let fixture = try Fixture(bytes: 16 << 20, trashDays: 30, spaces: spaces)
        try fixture.mkdir("albums/Trip")
        for number in 0..<6 {
            let size = number % 2 == 0 ? 400 : 20_000
            try fixture.put(
                "albums/Trip/\(number).jpg", jpeg("2024-05-0\(number + 1)", more: number, size: size))
        }
        try fixture.put("albums/long.bin", noise(300_000))
        try fixture.put("albums/Trip/notes.txt", Array("plain".utf8))
        try fixture.put("albums/copy.jpg", fixture.get("albums/Trip/1.jpg"))
        try fixture.put("albums/gone.jpg", jpeg("2023-01-01", more: 77, size: 3000))
        try fixture.remount()
        try fixture.rm("moments/2023-01-01/gone.jpg")
        _ = try fixture.thumbnails.thumbnail(of: fixture.ino("albums/Trip/2.jpg"), .standard)
        try fixture.remount()
        try fixture.put("albums/late.jpg", jpeg("2022-01-01", more: 78, size: 5000))
        try fixture.put("albums/late.jpg", jpeg("2022-01-01", more: 79, size: 5000))
        files = try Self.read(fixture)
        vault = fixture.vault
        try fixture.close()
        unlocked = try vault.unlock()
        var whole: [Int: Data] = [:]
        for number in 0..<(try Vault.info(vault.path).segmentsPerSpace) {
            whole[number] = try Self.file(vault, unlocked, number).read()
        }
        self.whole = whole
    }

    private static func read(_ fixture: Fixture) throws -> [String: [UInt8]] {
        var files: [String: [UInt8]] = [:]
        for path in try fixture.moments() { files["moments/\(path)"] = try fixture.get("moments/\(path)") }
        let version = "moments/2022-01-01/.versions/late.jpg/original"
        for path in ["albums/long.bin", "albums/Trip/notes.txt", "albums/copy.jpg", version] {
            files[path] = try fixture.get(path)
        }
        return files
    }

    private static func file(
        _ vault: TestVault, _ unlocked: UnlockedSpace, _ segment: Int
    ) throws -> SegmentFile {
        try SegmentFile(vault.path, space: unlocked.index, segment)
    }

    private func file(segment: Int) throws -> SegmentFile { try Self.file(vault, unlocked, segment) }

    /// The path of a segment's own file, where it has one.
    func path(segment: Int) throws -> String {
        try #require(unlocked.spaceCount == 1)
        return try file(segment: segment).path
    }

    var segmentCount: Int { whole.count }

    // MARK: Damage

    /// Bytes as they are stored now.
    func bytes(_ sector: UInt64, _ count: Int) throws -> [UInt8] {
        Array(try file(segment: Int(sector) / 8192).read(at: sector % 8192 * 512, count: count))
    }

    /// Replaces the byte at an offset behind a sector's beginning by another one.
    func flip(_ sector: UInt64, _ offset: Int = 0, mask: UInt8 = 1) throws {
        let old = try #require(try bytes(sector + UInt64(offset / 512), offset % 512 + 1).last)
        try write(sector + UInt64(offset / 512), offset % 512, [old ^ mask])
    }

    func write(_ sector: UInt64, _ offset: Int, _ bytes: [UInt8]) throws {
        try file(segment: Int(sector) / 8192).write(Data(bytes), at: sector % 8192 * 512 + UInt64(offset))
    }

    func truncate(segment: Int, to count: Int) throws {
        let handle = try FileHandle(forUpdating: URL(fileURLWithPath: path(segment: segment)))
        defer { try? handle.close() }
        try handle.truncate(atOffset: UInt64(count))
    }

    func remove(segment: Int) throws { try FileManager.default.removeItem(atPath: path(segment: segment)) }

    /// Restores a segment.
    func restore(_ segments: [Int]? = nil) throws {
        for segment in segments ?? Array(whole.keys) {
            if unlocked.spaceCount == 1 {
                try whole[segment]?.write(to: URL(fileURLWithPath: path(segment: segment)))
            } else {
                try file(segment: segment).write(whole[segment] ?? Data())
            }
        }
    }

    /// Whether a segment is byte for byte as it was.
    func isWhole(_ segment: Int) throws -> Bool {
        try file(segment: segment).read() == whole[segment]
    }

    /// Changes the catalogue by statements, behind the library's back.
    func change(_ statements: [String]) throws {
        let space = try unlocked.openSpace(readOnly: false)
        let catalogue = try Catalogue(storage: space)
        try catalogue.locked { tables in
            for statement in statements { try tables.connection.execute(statement) }
        }
        let frozen = try catalogue.commitTransaction(before: { _ in }, freeze: { space.freeze() })
        try space.publish(frozen, durable: true)
        try space.close()
    }

    /// Mounts it, and unmounts it again.
    func remount() throws {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.thumbnails = .off
        let library = try Library.open(unlocked, options: options)
        library.didGoLive()
        try library.close()
    }

    // MARK: Places of structures

    /// All pages that the newest root leads to, in both of their places.
    func pages() throws -> [(part: StructurePart, place: SlotPlace)] {
        let space = try unlocked.openSpace(readOnly: true)
        var walk = PageWalk(space, space.commits.newest)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        walk.collectDeltas()
        return try walk.found.map { ($0.part, try space.parts.pages.place($0.reference.slot)) }
    }

    func runs() throws -> [CheckedRun] {
        let space = try unlocked.openSpace(readOnly: true)
        let catalogue = try Catalogue(storage: space, readOnly: true)
        return try catalogue.locked { try $0.runs.runs(in: 0..<UInt64(Int64.max)) }
    }

    /// The run of the one thumbnail that is kept.
    func thumbnail() throws -> CheckedRun {
        let space = try unlocked.openSpace(readOnly: true)
        let catalogue = try Catalogue(storage: space, readOnly: true)
        return try catalogue.locked { tables in
            let runs = try tables.runs.runs(in: 0..<UInt64(Int64.max))
            let kept = try tables.contents.owners(of: Set(runs.map(\.content))).filter(\.isThumbnail)
            return try #require(
                runs.first { run in !run.isRecord && kept.contains { $0.content == run.content } })
        }
    }

    // MARK: Judging

    func check() throws -> SpaceReport { try SpaceCheck.run(unlocked) }

    /// I2: opens the space as a mount does and reads every file: each is right, or answers that it is damaged. Returns
    /// the paths of those that do not come whole; all where the space does not open.
    func unreadable(location: SourceLocation = #_sourceLocation) throws -> Set<String> {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.readOnly = true
        options.thumbnails = .off
        let library: Library
        do throws(VaultError) {
            library = try Library.open(unlocked, options: options)
        } catch {
            guard case .damaged = error else { throw error }
            return Set(files.keys)
        }
        return Set(
            files.filter { path, bytes in
                do {
                    let found = try read(library, path)
                    #expect(found == bytes, "\(path) is served wrong", sourceLocation: location)
                    return false
                } catch {
                    // In an older state, which is shown where the newest cannot be read, it may not be there yet.
                    let isOlder =
                        !library.session.space.opening.unreadable.isEmpty && error as? FileError == .noEntry
                    #expect(
                        isOlder || error as? FileError == .damaged, "\(path): \(error)",
                        sourceLocation: location)
                    return true
                }
            }.keys)
    }

    private func read(_ library: Library, _ path: String) throws -> [UInt8] {
        let caller = Caller(uid: 0, gid: 0)
        var ino: UInt64 = 1
        for part in path.split(separator: "/") {
            ino = try library.lookup(ino, Name(String(part)), caller).attributes.ino
        }
        var found: [UInt8] = []
        try library.walk.readStored(ino, caller) { _, piece in
            found += Array(piece)
            return true
        }
        return found
    }
}
