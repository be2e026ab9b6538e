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
    let found = open("/sys/fs/fuse/connections/\(number)/abort", O_WRONLY | O_CLOEXEC)
    if found >= 0 { return found }
    let root = obscura_mount_fusectl()
    if root < 0 { return -1 }
    defer { close(root) }
    return openat(root, "\(number)/abort", O_WRONLY | O_CLOEXEC)
}
