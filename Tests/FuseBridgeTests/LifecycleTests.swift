import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import TestThreads
import Testing

@testable import FuseBridge

/// Tests that mount. One after the other: signals and working directories belong to the whole process.
@Suite("Kernel: real mounts", .serialized, .waiting) struct RealMounts {}

extension RealMounts {
    @Suite("Kernel: the life of a mount") struct LifecycleTests {
        @Test func `a mount is usable when it says so, and shows nothing of its content`() throws {
            try withMount { mount throws in
                #expect(try status(mount.mountPoint).st_mode & S_IFMT == S_IFDIR)
                let table = try #require(kernelText("/proc/self/mountinfo")).split(separator: "\n")
                let line = try #require(table.first { $0.contains(mount.mountPoint) })
                #expect(line.contains(" - fuse.obscura obscura "))
                #expect(line.contains("nosuid,nodev") && line.contains("noatime"))
                #expect(line.contains("default_permissions"))
            }
        }

        @Test func `unmounting from outside ends the process`() throws {
            let mount = try MountedLibrary()
            #expect(umount2(mount.mountPoint, 0) == 0)
            #expect(try mount.waitForEnd() == .unmounted)
            try mount.finish()
        }

        @Test(arguments: [SIGTERM, SIGINT, SIGHUP]) func `signals unmount`(number: Int32) throws {
            let mount = try MountedLibrary { $0.handlesSignals = true }
            kill(getpid(), number)
            #expect(try mount.waitForEnd() == .signal(number))
            // Written bytes may still be on their way to the disk: as at a shutdown after an umount(8).
            kill(getpid(), number)
            #expect(try eventually { try !isPending(number) })
            try mount.finish()
        }

        /// Whether no thread has taken a signal that was sent to this process. Once the mount is gone it would end it.
        private func isPending(_ number: Int32) throws -> Bool {
            let label = "ShdPnd:\t"
            let lines = try #require(kernelText("/proc/self/status")).split(separator: "\n")
            let line = try #require(lines.first { $0.hasPrefix(label) })
            let pending = try #require(UInt64(line.dropFirst(label.count), radix: 16))
            return pending & 1 << UInt64(number - 1) != 0
        }

        @Test func `a signal before it runs unmounts in order`() throws {
            try withEmptyDirectory { directory throws in
                let made = try TestLibrary()
                let session = try MountSession.mount(made.library, at: directory, options: MountOptions())
                kill(getpid(), SIGTERM)
                #expect(isMountPoint(directory))
                #expect(try session.run {} == .signal(SIGTERM))
                #expect(!isMountPoint(directory))
                try made.library.close()
            }
        }

        @Test func `a mount that ended from outside does not end the next one, which has its number`() throws
        {
            // Mounts of other tests may take the number first.
            for _ in 0..<20 {
                var isTried = false
                try withEmptyDirectory { directory throws in
                    let made = try TestLibrary()
                    let options = MountOptions()
                    let session = try MountSession.mount(made.library, at: directory, options: options)
                    let device = mountEntry(at: directory)?.device
                    #expect(umount2(directory, 0) == 0)
                    let next = try MountedLibrary()
                    isTried = mountEntry(at: next.mountPoint)?.device == device
                    session.unmount()
                    #expect(try session.run {} != .idle)
                    #expect(next.isMounted)
                    try next.finish()
                    try made.library.close()
                }
                if isTried { return }
            }
            Issue.record("no mount got the number of another one")
        }

        @Test func `a busy mount is taken out of the tree, and its files are served for a while`() throws {
            let mount = try MountedLibrary { $0.handlesSignals = true }
            try write("busy", to: mount.path("file"))
            let descriptor = open(mount.path("file"), O_RDWR)
            kill(getpid(), SIGTERM)
            while mount.isMounted { usleep(10_000) }
            #expect(pwrite(descriptor, "later", 5, 0) == 5)
            #expect(try mount.waitForEnd() == .signal(SIGTERM))
            #expect(failure { pwrite(descriptor, "too late", 8, 0) } != 0)
            close(descriptor)
            try mount.finish()
        }

        @Test func `closing the last file ends a busy mount at once`() throws {
            // It would be served for an hour more.
            let mount = try MountedLibrary { $0.graceMilliseconds = 3_600_000 }
            try write("busy", to: mount.path("file"))
            let descriptor = open(mount.path("file"), O_RDONLY)
            mount.session.unmount()
            while mount.isMounted { usleep(10_000) }
            close(descriptor)
            #expect(try mount.waitForEnd() == .requested)
            try mount.finish()
        }

        @Test func `a process that has a copy of the connection ends after the mount`() throws {
            let mount = try MountedLibrary { $0.graceMilliseconds = 0 }
            let connection = try #require(mountEntry(at: mount.mountPoint)?.fuseConnection)
            // Nothing else ends the process if this fails.
            let abort = openAbort(ofConnection: connection)
            try write("busy", to: mount.path("file"))
            let file = open(mount.path("file"), O_RDWR | O_CLOEXEC)
            let input = try makePipe()
            // Its end closes the file first, and waits for the answer that would come by the other.
            let process = try spawn(
                ["/bin/cat"],
                descriptors: [(input.read, 0), (file, 3), (try #require(mount.session.descriptor), 4)])
            close(file)
            close(input.read)
            mount.session.unmount()
            #expect(try mount.waitForEnd() == .requested)
            close(input.write)
            #expect(eventually { waitpid(process, nil, WNOHANG) == process })
            if abort >= 0 { _ = Glibc.write(abort, "1", 1) }
            close(abort)
            try mount.finish()
        }

        @Test func `a severed connection leaves nothing mounted`() throws {
            let mount = try MountedLibrary()
            try write("busy", to: mount.path("file"))
            let descriptor = open(mount.path("file"), O_RDONLY)
            #expect(failure { Int(umount2(mount.mountPoint, Int32(MNT_FORCE))) } == EBUSY)
            #expect(try mount.waitForEnd() == .unmounted)
            #expect(!mount.isMounted)
            close(descriptor)
            try mount.finish()
        }

        @Test func `a dead mount that took the number of one that is gone stays`() throws {
            // Another program on the machine may take the number first.
            let isSeen = try (0..<20).contains { _ in
                var gone: MountedLibrary? = try MountedLibrary()
                let device = try #require(gone.flatMap { mountEntry(at: $0.mountPoint) }).device
                try gone?.finish()
                let ending = DispatchSemaphore(value: 0)
                let dead = try MountedLibrary(onLive: { ending.wait() })
                // The mount stays, because a directory is open.
                let directory = open(dead.directory, O_RDONLY | O_DIRECTORY)
                #expect(failure { Int(umount2(dead.mountPoint, Int32(MNT_FORCE))) } == EBUSY)
                close(directory)
                let hasNumber = mountEntry(at: dead.mountPoint)?.device == device
                gone = nil
                #expect(dead.isMounted)
                ending.signal()
                try dead.finish()
                return hasNumber
            }
            #expect(isSeen)
        }

        @Test func `an idle mount goes, but not while a file is open`() throws {
            let mount = try MountedLibrary { $0.idleSeconds = 1 }
            try write("x", to: mount.path("file"))
            let descriptor = open(mount.path("file"), O_RDONLY)
            // A mount that began to be idle later, and for longer, has gone: so the first has had its time.
            let other = try MountedLibrary { $0.idleSeconds = 2 }
            #expect(try other.waitForEnd() == .idle)
            try other.finish()
            #expect(mount.isMounted)
            close(descriptor)
            var space = statvfs()
            // Asking for the room that is left is not using it.
            while mount.isMounted {
                statvfs(mount.mountPoint, &space)
                usleep(100_000)
            }
            #expect(try mount.waitForEnd() == .idle)
            try mount.finish()
        }

        @Test func `a session never run leaves nothing mounted`() throws {
            try withEmptyDirectory { directory throws in
                let made = try TestLibrary()
                _ = try MountSession.mount(made.library, at: directory, options: MountOptions())
                #expect(!isMountPoint(directory))
                try made.library.close()
            }
        }
    }

    @Suite("Exit codes: mounts that are refused") struct MountErrorTests {
        private func mountError(_ path: String) throws -> MountError? {
            let made = try TestLibrary()
            let error = #expect(throws: MountError.self) {
                _ = try MountSession.mount(made.library, at: path, options: MountOptions())
            }
            try made.library.close()
            return error
        }

        @Test func `errors say what is wrong`() throws {
            try withEmptyDirectory { directory throws in
                #expect(try mountError(directory + "/none") == .noMountPoint(directory + "/none"))
                try write("", to: directory + "/file")
                #expect(try mountError(directory + "/file") == .notADirectory(directory + "/file"))
                #expect(try mountError(directory + "/file/x") == .notADirectory(directory + "/file/x"))
                unlink(directory + "/file")
            }
            try withMount { mount throws in
                #expect(try mountError(mount.mountPoint) == .alreadyMounted(mount.mountPoint))
                let viaDots = mount.mountPoint + "/."
                #expect(try mountError(viaDots) == .alreadyMounted(viaDots))
            }
        }

        @Test func `the mount of a dead process is cleared away`() throws {
            try withEmptyDirectory { directory throws in
                let device = open("/dev/fuse", O_RDWR)
                let options = "fd=\(device),rootmode=40000,user_id=0,group_id=0"
                #expect(Glibc.mount("obscura", directory, "fuse.obscura", 0, options) == 0)
                close(device)
                #expect(failure { Int(access(directory + "/.", F_OK)) } == ENOTCONN)
                let made = try TestLibrary()
                let session = try MountSession.mount(
                    made.library, at: directory + "/", options: MountOptions())
                withExtendedLifetime(session) { #expect(isMountPoint(directory)) }
                try made.library.close()
            }
        }
    }
}

private func withEmptyDirectory(_ body: (String) throws -> Void) throws {
    var template = Array("/tmp/fusebridge-XXXXXX".utf8CString)
    let directory = String(cString: try #require(mkdtemp(&template)))
    try body(directory)
    #expect(rmdir(directory) == 0)
}
