internal import CShims
internal import Glibc

extension MountEntry {
    /// The number by which fusectl knows the connection between the kernel and the program that serves the mount. Nil
    /// where that is none of FUSE.
    public var fuseConnection: Int? {
        let numbers = device.split(separator: ":")
        guard type.hasPrefix("fuse."), numbers.count == 2, numbers[0] == "0" else { return nil }
        return Int(numbers[1])
    }
}

/// A descriptor to which any byte is written to abort a FUSE connection: whoever waits for an answer gets an error. It
/// is of that connection alone, also when its number is another's later. -1 where this user may not, or there is no
/// such connection.
///
/// Most systems mount fusectl, where it belongs to who mounted; where nobody has, root can do without. Source:
/// Documentation/filesystems/fuse/fuse.rst of Linux.
public func openAbort(ofConnection number: Int) -> Int32 {
    openFile("abort", ofConnection: number, O_WRONLY)
}

/// A descriptor by which `isConnected` tells whether a FUSE connection still is. -1 as of `openAbort`.
public func openWaiting(ofConnection number: Int) -> Int32 {
    openFile("waiting", ofConnection: number, O_RDONLY)
}

/// Whether the kernel still has the connection that a descriptor of `openWaiting` was opened for: something is
/// mounted, in whichever mount namespace, or open.
public func isConnected(_ descriptor: Int32) -> Bool {
    var byte: UInt8 = 0
    return descriptor >= 0 && pread(descriptor, &byte, 1, 0) == 1
}

private func openFile(_ name: String, ofConnection number: Int, _ access: Int32) -> Int32 {
    let found = open("/sys/fs/fuse/connections/\(number)/\(name)", access | O_CLOEXEC)
    if found >= 0 { return found }
    let root = obscura_mount_fusectl()
    if root < 0 { return -1 }
    defer { close(root) }
    return openat(root, "\(number)/\(name)", access | O_CLOEXEC)
}
