import Foundation
import Glibc
import PhotoImaging
import TestFixtures

/// The answer of ``captured`` in a zone so far east of UTC.
func capture(
    _ facts: MediaFacts, name: String = "x", sidecar: Sidecar? = nil, now: Int64 = testNow, hoursEast: Int = 0
) -> (time: CivilTime, source: DateSource) {
    captureDate(
        facts, fileName: Array(name.utf8), modified: testModified, sidecar: sidecar, now: now,
        localOffset: { _ in hoursEast * 3600 })
}

/// Where the shared test pictures are: `OBSCURA_SHARED`, or `shared` beside the checkout or above it.
enum Shared {
    static let photos: String? = {
        var candidates: [String] = []
        if let path = ProcessInfo.processInfo.environment["OBSCURA_SHARED"] { candidates.append(path) }
        var directory = URL(fileURLWithPath: #filePath)
        for _ in 0..<6 {
            directory.deleteLastPathComponent()
            candidates.append(directory.deletingLastPathComponent().path + "/shared")
        }
        return candidates.map { $0 + "/photos" }
            .first { FileManager.default.fileExists(atPath: $0 + "/expected.tsv") }
    }()

    struct Row {
        let path: String
        let day: String
        let rule: String
        let mime: String
        let width: Int?
        let height: Int?
        let orientation: Int?
        let source: String

        var name: String { String(path.split(separator: "/").last ?? "") }
        /// Foundation's own reader leaks a buffer for an empty file, which AddressSanitizer reports.
        var bytes: [UInt8] {
            guard let file = fopen("\(Shared.photos ?? "")/dev/\(path)", "r") else { return [] }
            defer { fclose(file) }
            fseek(file, 0, SEEK_END)
            var bytes = [UInt8](repeating: 0, count: max(0, ftell(file)))
            rewind(file)
            return fread(&bytes, 1, bytes.count, file) == bytes.count ? bytes : []
        }
    }

    static let rows: [Row] = {
        guard let photos, let text = try? String(contentsOfFile: photos + "/expected.tsv", encoding: .utf8)
        else {
            return []
        }
        return text.split(separator: "\n").dropFirst().map { line in
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            return Row(
                path: fields[0], day: fields[1], rule: fields[2], mime: fields[3], width: Int(fields[4]),
                height: Int(fields[5]), orientation: Int(fields[6]), source: fields[7])
        }
    }()
}

/// xorshift64*: the same mutations for the same seed, everywhere.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed | 1
    }

    mutating func next() -> UInt64 {
        state ^= state >> 12
        state ^= state << 25
        state ^= state >> 27
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
