import Foundation
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing

/// Mounts that systemd makes when somebody enters their directory: until they are there, the kernel holds everybody
/// who looks into it.
@Suite("Mount options: automounts", .serialized, .waiting) struct AutomountTests {
    /// An automount of the kernel whose requests nobody reads. For root alone.
    private final class Automount {
        private let directory: String
        private let requests: (read: Int32, write: Int32)

        init(at directory: String) throws {
            self.directory = directory
            requests = try makePipe()
            // Processes of this group are not held; those that tests start are of sessions of their own.
            let options = "fd=\(requests.write),pgrp=\(getpgrp()),minproto=5,maxproto=5,direct"
            let isMounted = options.withCString { Glibc.mount("automount", directory, "autofs", 0, $0) == 0 }
            try #require(isMounted, "\(String(cString: strerror(errno)))")
            // With another writer the kernel would wait.
            close(requests.write)
        }

        deinit {
            close(requests.read)
            _ = umount2(directory, Int32(MNT_DETACH))
        }
    }

    @Test func `mounting looks into no directory that waits for it`() throws {
        guard geteuid() == 0 else { return }
        let place = try Place()
        let automount = try Automount(at: place.mountPoint)
        defer { withExtendedLifetime(automount) {} }
        for options in ["rw", "nonempty"] {
            // A process that is held ends by SIGKILL alone.
            let mounted = try place.run(
                [
                    "timeout", "-s", "KILL", "60", obscura, "mount", "V", "D", "--password-stdin", "-o",
                    options,
                ],
                "one\n")
            #expect(mounted.status == 0, "\(mounted.errors)")
            #expect(try place.shell("ls D") == "albums\nmoments\n")
            let unmounted = try place.run(["timeout", "-s", "KILL", "60", obscura, "unmount", "D"])
            #expect(unmounted.status == 0, "\(unmounted.errors)")
        }
    }
}
