import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Mounts at an automount of the kernel, which holds everybody who enters its directory, except processes of one group,
/// until a mount is there. For root alone.
@Suite("Mount options: automounts", .serialized, .waiting) struct AutomountTests {
    /// `automount D COMMAND…`: as systemd.automount(5). A process enters D; meanwhile the command runs, in the group
    /// that is let pass. With `stuck` it is of another group, and nobody answers. Else no process enters D.
    private static let automount = """
        import ctypes, fcntl, os, struct, subprocess, sys
        kind, directory, command = sys.argv[1], sys.argv[2], sys.argv[3:]
        pending = kind == "pending"
        libc = ctypes.CDLL(None, use_errno=True)
        requests, kernel = os.pipe()
        options = f"fd={kernel},pgrp={os.getpgrp()},minproto=5,maxproto=5,direct"
        if libc.mount(b"automount", directory.encode(), b"autofs", 0, options.encode()):
            sys.exit(os.strerror(ctypes.get_errno()))
        os.close(kernel)
        root = os.open(directory, os.O_RDONLY)
        try:
            if kind != "none":
                waiter = subprocess.Popen(["ls", directory + "/albums"], start_new_session=True)
                # The header has two numbers.
                token = struct.unpack("III", os.read(requests, 4096)[:12])[2]
            # A process that is held ends by SIGKILL alone, which this sends.
            status = subprocess.run(command, start_new_session=not pending, timeout=300).returncode
            if pending:
                fcntl.ioctl(root, 0x9360, token)
                status = status or waiter.wait()
            elif kind == "stuck":
                waiter.kill()
        finally:
            os.close(requests)
            os.close(root)
        sys.exit(status)
        """

    /// Whether this user may make an automount, and the kernel knows any: without them nobody can wait at one.
    private static var canBeMade: Bool {
        geteuid() == 0 && kernelText("/proc/filesystems")?.contains("autofs") == true
    }

    private func mount(_ kind: String, _ options: String) throws {
        let place = try Place()
        defer { while umount2(place.mountPoint, Int32(MNT_DETACH)) == 0 {} }
        try place.shell("printf 'one\\n' >pw; chmod 600 pw")
        let mounted = try place.run(
            [
                "python3", "-c", Self.automount, kind, place.mountPoint, obscura, "mount", place.vault,
                place.mountPoint, "--password-file", place.root + "/pw", "-o", options,
            ])
        #expect(mounted.status == 0, "\(mounted.errors)")
        #expect(try place.shell("ls D") == "albums\nmoments\n")
        try place.unmount()
    }

    @Test func `a process that entered the directory waits for the mount, and the mount for nobody`() throws {
        guard Self.canBeMade else { return }
        try mount("pending", "rw")
    }

    @Test(arguments: ["rw", "nonempty"])
    func `mounting by hand does not enter the directory`(options: String) throws {
        guard Self.canBeMade else { return }
        try mount("none", options)
    }

    /// A mount that waits at an automount has a process, which other commands find.
    @Test func `an automount that never answers holds up no other mount`() throws {
        guard Self.canBeMade else { return }
        let place = try Place()
        let automount = place.root + "/AM"
        defer { while umount2(automount, Int32(MNT_DETACH)) == 0 {} }
        try place.shell("mkdir AM; mkfifo key; printf 'one\\n' >pw; chmod 600 pw")
        // The process waits for its key, because the automount would let it wait forever.
        let commands = """
            exec -a obscura '\(obscura)' --daemon -o defaults "$PWD/W" "$PWD/AM" \
                3<>key 4>/dev/null 5</dev/null >/dev/null 2>&1 &
            trap "kill -9 $!" EXIT
            '\(obscura)' mount V D --password-file pw
            '\(obscura)' status D; '\(obscura)' status
            '\(obscura)' unmount D
            '\(obscura)' unmount D 2>&1 | grep 'nothing is mounted here'
            """
        let ended = try place.run(
            ["python3", "-c", Self.automount, "stuck", automount, "bash", "-ec", commands])
        #expect(ended.status == 0, "\(ended.output)\(ended.errors)")
    }
}
