internal import CShims
public import Glibc

extension MountEntry {
    /// The number by which fusectl knows the connection between the kernel and the program that serves the mount. Nil
    /// if this is not a FUSE mount.
    public var fuseConnection: Int? {
        let numbers = device.split(separator: ":")
        guard type.hasPrefix("fuse."), numbers.count == 2, numbers[0] == "0" else { return nil }
        return Int(numbers[1])
    }
}

/// Opens the file that aborts a FUSE connection when any byte is written to it: requests that wait for an answer get an
/// error. The descriptor belongs to that connection alone, even if another one gets its number later. Returns -1 if
/// this user may not open it, or there is no such connection.
///
/// Most systems mount fusectl, where the file belongs to the user who mounted. Where fusectl is not mounted, root can
/// do without. Source: Documentation/filesystems/fuse/fuse.rst of Linux.
public func openAbort(ofConnection number: Int) -> Int32 {
    openFile("abort", ofConnection: number, O_WRONLY)
}

/// Opens a file by which `isConnected` tells whether a FUSE connection still exists. Returns -1 as `openAbort` does.
public func openWaiting(ofConnection number: Int) -> Int32 {
    openFile("waiting", ofConnection: number, O_RDONLY)
}

/// Whether the kernel still has the connection for which `openWaiting` opened the descriptor: something is mounted, in
/// any mount namespace, or open.
public func isConnected(_ descriptor: Int32) -> Bool {
    var byte: UInt8 = 0
    return descriptor >= 0 && pread(descriptor, &byte, 1, 0) == 1
}

/// The name of the thread by which a process tells which FUSE connection it serves. The number is at most 20 bits long.
public func connectionThreadName(_ number: Int) -> String { connectionThreadPrefix + "\(number)" }

private let connectionThreadPrefix = "fuse-"

/// The FUSE connection that a process of ours serves: nil from the moment at which the kernel closes it.
public func servedConnection(of process: pid_t) -> Int? {
    let directory = "/proc/\(process)/task"
    let calls = LinuxCalls.shared
    guard let tasks = try? calls.open(AT_FDCWD, directory, flags: O_RDONLY | O_DIRECTORY, mode: 0) else {
        return nil
    }
    defer { calls.close(tasks) }
    for thread in (try? calls.list(tasks)) ?? [] {
        guard let bytes = contents(ofFile: "\(directory)/\(thread)/comm") else { continue }
        let name = String(decoding: bytes, as: UTF8.self)
        guard name.hasPrefix(connectionThreadPrefix) else { continue }
        return Int(name.dropFirst(connectionThreadPrefix.utf8.count).prefix { $0 != "\n" })
    }
    return nil
}

private func openFile(_ name: String, ofConnection number: Int, _ access: Int32) -> Int32 {
    let found = open("/sys/fs/fuse/connections/\(number)/\(name)", access | O_CLOEXEC)
    if found >= 0 { return found }
    let root = obscura_mount_fusectl()
    if root < 0 { return -1 }
    defer { close(root) }
    return openat(root, "\(number)/\(name)", access | O_CLOEXEC)
}
