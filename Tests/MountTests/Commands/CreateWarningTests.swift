import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Stores on which a vault can be compared with its earlier versions.
@Suite("Commands: create, its warnings", .serialized, .waiting) struct CreateWarningTests {
    @Test func `create names a store that keeps old versions`() throws {
        guard geteuid() == 0 else { return }
        let place = try Place()
        let line = """
            mkdir lower over merged; mount -t tmpfs tmpfs over; mkdir over/upper over/work
            mount -t overlay overlay -o lowerdir=lower,upperdir=over/upper,workdir=over/work merged
            '\(obscura)' create merged/W --spaces=1 --kdf-memory=8M --kdf-passes=1 --password-stdin
            """
        let made = try place.run(
            ["unshare", "-m", "--propagation", "slave", "/bin/bash", "-ec", line], "one\n")
        #expect(made.status == 0, "\(made.errors)")
        #expect(made.errors.contains("overlay may keep old versions of files"), "\(made.errors)")
        #expect(made.errors.contains("forgotten password means lost photos"))
    }
}
