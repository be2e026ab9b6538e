import Foundation
import TestSupport
import TestThreads
import Testing

/// A photographer's life by real programs; see `Tests/Programs/programs.py`. `scripts/model --programs` goes on for as
/// long as wanted, with more programs, and with kills within edits.
@Suite("Albums: programs of photographers", .serialized, .waiting) struct PhotographerTests {
    private static let script =
        URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent().appendingPathComponent("Programs/programs.py").path
    /// Small ones, which the tests' machine has.
    private static let programs =
        "cp,dd,exiftool,exiftran,exiv2,install,jpegtran,mv,python3,rsync,sed,sh,tar,unzip,vim"

    @Test(arguments: [1, 2]) func `a photographer's life`(seed: Int) throws {
        let words = [
            "/usr/bin/python3", "-B", Self.script, obscura, "--seed=\(seed)", "--rounds=30",
            "--only=" + Self.programs,
        ]
        let ended = try Place().run(words)
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }
}
