import LinuxIO
import Testing

@testable import obscura

/// The comparison of a file with one that an interrupted export may have written.
@Suite("Commands: export, times of other disks") struct ExportTargetTests {
    @Test func `times that a disk keeps less exactly`() {
        let time = Timestamp(seconds: 1_001, nanoseconds: 123_456_789)
        for (seconds, nanoseconds) in [
            (1001, 123_456_789), (1001, 123_456_700), (1001, 123_456_000), (1001, 120_000_000), (1001, 0),
            (1000, 0),
        ] as [(Int64, UInt32)] {
            #expect(isKept(time, as: Timestamp(seconds: seconds, nanoseconds: nanoseconds)))
        }
        for (seconds, nanoseconds) in [
            (1001, 123_456_788), (1001, 123_000_001), (1002, 0), (1000, 123_456_789), (999, 0),
        ] as [(Int64, UInt32)] {
            #expect(!isKept(time, as: Timestamp(seconds: seconds, nanoseconds: nanoseconds)))
        }
    }
}
