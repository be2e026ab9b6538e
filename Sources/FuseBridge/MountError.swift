public import LinuxIO

/// Why a library could not be mounted. The description gives advice.
public enum MountError: Error, Sendable, Equatable, CustomStringConvertible {
    /// /dev/fuse does not exist.
    case noDevice
    /// /dev/fuse may not be opened.
    case deviceRefused
    /// fusermount3, which mounts for users other than root, is not installed.
    case noHelper
    /// `allow_other`, and /etc/fuse.conf does not permit it.
    case allowOtherRefused
    /// The directory to mount on does not exist.
    case noMountPoint(String)
    case notADirectory(String)
    /// An Obscura mount is there already.
    case alreadyMounted(String)
    /// Files are in the directory, which the mount would hide.
    case notEmpty(String)
    /// The mount of a process that has died is there and could not be cleared away.
    case deadMount(String)
    /// The user may not mount there.
    case mountPointRefused(String)
    /// libfuse or fusermount3 refused. The text is theirs.
    case refused(String)
    /// A system call failed. The text names the action.
    case system(Errno, String)

    public var description: String {
        switch self {
        case .noDevice:
            "/dev/fuse is missing: load the kernel module (modprobe fuse), or give the container the device"
        case .deviceRefused:
            "/dev/fuse may not be opened: ask the administrator for read and write access to it"
        case .noHelper: "fusermount3 is missing: install the package fuse3"
        case .allowOtherRefused:
            "allow_other is not permitted: add the line user_allow_other to /etc/fuse.conf"
        case .noMountPoint(let directory): "\(directory): no such directory: make it first"
        case .notADirectory(let directory): "\(directory): not a directory: mount on a directory"
        case .alreadyMounted(let directory): "\(directory): already mounted: unmount it first"
        case .notEmpty(let directory): "\(directory): not empty: the mount would hide its files"
        case .deadMount(let directory):
            "\(directory): a mount whose process has died is there: run fusermount3 -u -z \(directory)"
        case .mountPointRefused(let directory):
            "\(directory): permission denied: mount on a directory of your own"
        case .refused(let words): "could not mount: \(words)"
        case .system(let error, let action): "\(action): \(error)"
        }
    }
}
