import FileRequests
import Foundation
import Glibc
import HostFiles
import LinuxIO
import PhotoLibrary
import Synchronization
import TestFixtures
import TestSupport
import Testing

@testable import obscura

/// Exports from a cluster: the bytes of the next files are asked for while one is written, up to a limit.
@Suite("Commands: export from a cluster") struct ClusterExportTests {
    /// A read of content: bytes that were asked for with it and before, and written until then.
    private struct Read {
        let object: String
        let range: Range<UInt64>
        let asked: Int
        let written: Int
        let files: Int
    }

    private let vault: MemoryVault
    private let caller = Caller(uid: geteuid(), gid: getegid())
    private let options = LibraryOptions(owner: (geteuid(), getegid()), mountedByRoot: true)
    private let root = NSTemporaryDirectory() + "obscura-test-" + UUID().uuidString

    /// Smaller reads may be of pages: up to 128 KiB of them are read at once, more or less often as commits fall.
    private static let contentBytesMin = 132_000

    init() throws { vault = try MemoryVault(spaces: 1, .usual, on: .cluster) }

    private func content(_ number: Int, _ bytes: Int) -> [UInt8] {
        var random = RandomSource(UInt64(number + 1))
        return (0..<bytes).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    /// A cluster with files of an album, which are stored in another order than they are listed in.
    private func made(files: Int, bytes: Int) throws -> MemoryDisk {
        let disk = MemoryDisk(vault.empty)
        let library = try Library.open(try vault.unlock(disk), options: options)
        let album = try library.makeDirectory(WellKnownInode.albums, "A", mode: 0o755, caller).attributes.ino
        var random = RandomSource(1)
        let handles = try (0..<files).map { number in
            try library.create(album, Name("\(number)"), mode: 0o644, flags: O_RDWR, caller).1
        }
        for number in (0..<files).shuffled(using: &random) {
            _ = try content(number, bytes).withUnsafeBytes {
                try library.write(handles[number], offset: 0, $0, caller)
            }
            try library.fsync(handles[number], dataOnly: false)
        }
        for handle in handles { library.release(handle) }
        try library.close()
        return disk
    }

    /// Exports, and returns the reads of content and the report.
    private func export(
        _ disk: MemoryDisk, failing: (@Sendable (String, Range<UInt64>) -> Bool)? = nil
    ) throws -> (reads: [Read], report: ExportReport) {
        let target = root + "/E"
        try FileManager.default.createDirectory(atPath: target, withIntermediateDirectories: true)
        var options = options
        options.readOnly = true
        let library = try Library.open(try vault.unlock(disk), options: options)
        let place = try ExportTarget(HostPath(target), named: target, mark: { _ in [] })
        let run = ExportRun(library, to: place, .link, quiet: true)
        let reads = Mutex<[Read]>([])
        disk.pool.noteReads { object, range in
            guard range.count >= Self.contentBytesMin else { return nil }
            let names = ((try? FileManager.default.contentsOfDirectory(atPath: target)) ?? [])
                .filter { $0.hasPrefix(".obscura-export-") && !$0.hasSuffix("unfinished") }
            let written = names.reduce(0) { sum, name in
                let found = try? FileManager.default.attributesOfItem(atPath: target + "/" + name)
                return sum + ((found?[.size] as? Int) ?? 0)
            }
            reads.withLock {
                $0.append(
                    Read(
                        object: object, range: range, asked: ($0.last?.asked ?? 0) + range.count,
                        written: written, files: names.count))
            }
            return failing?(object, range) == true ? Errno(EIO) : nil
        }
        defer { disk.pool.noteReads(nil) }
        try run.run()
        try library.close()
        return (reads.withLock { $0 }, run.report)
    }

    private func requireExported(_ numbers: some Sequence<Int>, bytes: Int) throws {
        for number in numbers {
            let found = try Data(contentsOf: URL(fileURLWithPath: "\(root)/E/albums/A/\(number)"))
            #expect(Array(found) == content(number, bytes), "\(number)")
        }
    }

    private func remove() { try? FileManager.default.removeItem(atPath: root) }

    @Test func `many small files are asked for before the first one is written`() throws {
        defer { remove() }
        let (files, bytes) = (100, 140_000)
        let (reads, report) = try export(try made(files: files, bytes: bytes))
        #expect(report.failures.isEmpty && reads.count == files)
        // Without it as many were asked for as are being written.
        let ahead = reads.enumerated().map { index, read in index + 1 - read.files }
        #expect((30...100).contains(ahead.max() ?? 0))
        #expect(ahead.filter { $0 > 20 }.count > files / 2)
        try requireExported(0..<files, bytes: bytes)
    }

    @Test func `large files are asked for up to a limit, and once`() throws {
        defer { remove() }
        let (files, bytes) = (12, 3_300_000)
        let (reads, report) = try export(try made(files: files, bytes: bytes))
        #expect(report.failures.isEmpty)
        let ahead = reads.map { $0.asked - $0.written }
        #expect(try #require(ahead.max()) > 6 << 20)
        #expect(try #require(ahead.max()) <= 9 << 20)
        #expect(try #require(reads.last).asked < files * bytes * 21 / 20)
        try requireExported(0..<files, bytes: bytes)
    }

    @Test func `a file that cannot be read is reported, and the others are exported`() throws {
        defer { remove() }
        let (files, bytes) = (30, 300_000)
        let disk = try made(files: files, bytes: bytes)
        let (first, _) = try export(disk)
        remove()
        // The last one that is asked for.
        let lost = try #require(first.last)
        let (_, report) = try export(disk) { object, range in
            object == lost.object && range.overlaps(lost.range)
        }
        #expect(report.damaged.map(\.path.shown) == ["albums/A/\(files - 1)"])
        try requireExported(0..<files - 1, bytes: bytes)
        #expect(!FileManager.default.fileExists(atPath: "\(root)/E/albums/A/\(files - 1)"))
        // What is there is not asked for again.
        let (reads, rest) = try export(disk)
        #expect(rest.failures.isEmpty && rest.present == files - 1)
        #expect(reads.reduce(0) { $0 + $1.range.count } < 2 * bytes)
        try requireExported(0..<files, bytes: bytes)
    }
}
