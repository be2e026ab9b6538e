import CatalogueRows
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import Recovery
import TestSupport
import Testing
import VaultCatalogue
import VaultFormat

/// The program comes to the verdicts of Tests/Vectors on identity records, as the reader in Tests/Reader does.
@Suite("Format: vectors of records") struct RecordVectorTests {
    @Test func `there are vectors of records`() { #expect(!Vector.all("record").isEmpty) }

    @Test(arguments: Vector.all("record")) func `records are judged`(vector: Vector) {
        let found = vector.bytes.withUnsafeBytes { Recorded.decode($0) }
        let newer = vector.bytes.withUnsafeBytes { Recorded.newerVersion($0) }
        let unread = newer.map { "version \($0.version)" } ?? "damaged"
        #expect((found == nil ? unread : "valid") == vector.verdict)
        if let newer { #expect(vector.expected("release") == newer.release.text) }
        switch found?.content {
        case .inode(let record):
            compare(vector, "ino", "\(record.row.ino)")
            compare(vector, "mode", "\(record.row.mode)")
            compare(vector, "size", "\(record.row.size)")
            compare(vector, "atime", "\(record.row.accessed.seconds)")
            compare(vector, "mtime_ns", "\(record.row.modified.nanoseconds)")
            compare(vector, "target", Vector.text(record.target))
            let runs = record.runs.map { runs in
                runs.map { "\($0.offset) \($0.length) \($0.sector) \($0.generation) \($0.epoch)" }
                    .joined(separator: " ")
            }
            compare(vector, "runs", runs ?? "none")
        case .retired(let block, let bits):
            compare(vector, "block", "\(block)")
            if let expected = vector.expected("bits") { #expect(bits == Vector.bytes(expected)) }
        case nil: break
        }
    }

    private func compare(_ vector: Vector, _ name: String, _ value: String) {
        guard let expected = vector.expected(name) else { return }
        let isText = name == "target"
        #expect(value == (isText ? Vector.text(Vector.bytes(expected)) : expected), "\(name)")
    }
}
