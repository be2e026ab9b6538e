import Glibc
public import LinuxIO
public import VaultFormat
import VaultStore

/// A name in a directory: up to 255 bytes without `/` and NUL, of no particular encoding.
public struct Name: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public var bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ text: String) { bytes = Array(text.utf8) }
    public init(stringLiteral text: String) { bytes = Array(text.utf8) }

    /// Copies a NUL-terminated name.
    public init(_ cString: UnsafePointer<CChar>) {
        bytes = Array(UnsafeRawBufferPointer(start: cString, count: strlen(cString)))
    }

    public var description: String { String(decoding: bytes, as: UTF8.self) }
}

/// The attributes of stat(2).
public struct Attributes: Sendable, Equatable {
    public var ino: UInt64
    /// Type and permission bits.
    public var mode: UInt32
    public var nlink: UInt32
    public var uid: UInt32
    public var gid: UInt32
    public var rdev: UInt64
    public var size: UInt64
    /// Units of 512 bytes.
    public var blocks: UInt64
    public var accessed: Timestamp
    public var modified: Timestamp
    public var changed: Timestamp

    public var isDirectory: Bool { mode & fileTypeMask == directoryType }
    public var isRegular: Bool { mode & fileTypeMask == regularType }
}

/// The reply to a lookup: attributes, and how many seconds the kernel may cache the name and them.
public struct Entry: Sendable {
    public var attributes: Attributes
    public var entryTimeout: Double
    public var attributeTimeout: Double
}

/// The client of a request. `umask` is the client's; modes arrive with it already applied.
public struct Caller: Sendable {
    public var uid: UInt32
    public var gid: UInt32
    public var pid: Int32
    public var umask: UInt32

    public init(uid: UInt32, gid: UInt32, pid: Int32 = 0, umask: UInt32 = 0) {
        self.uid = uid
        self.gid = gid
        self.pid = pid
        self.umask = umask
    }
}

/// A time to set, as by utimensat(2): a given one, or the present (UTIME_NOW).
public enum TimeChange: Sendable, Equatable {
    case set(Timestamp)
    case now

    func value(_ now: Timestamp) -> Timestamp {
        switch self {
        case .set(let time): time
        case .now: now
        }
    }
}

/// The changes of a SETATTR request; nil leaves an attribute as it is.
public struct AttributeChanges: Sendable, Equatable {
    /// Permission bits; type bits are ignored.
    public var mode: UInt32?
    public var uid: UInt32?
    public var gid: UInt32?
    public var size: UInt64?
    public var accessed: TimeChange?
    public var modified: TimeChange?
    public var changed: Timestamp?

    public init(
        mode: UInt32? = nil, uid: UInt32? = nil, gid: UInt32? = nil, size: UInt64? = nil,
        accessed: TimeChange? = nil, modified: TimeChange? = nil, changed: Timestamp? = nil
    ) {
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.size = size
        self.accessed = accessed
        self.modified = modified
        self.changed = changed
    }
}

/// One entry of a directory.
public struct DirectoryEntry: Sendable {
    public var name: Name
    /// The listing resumes after this entry; never recurs.
    public var cookie: UInt64
    public var ino: UInt64
    public var mode: UInt32
    /// With readdirplus; nil for "." and "..", and if the kernel must look the name up.
    public var entry: Entry?
}

/// renameat2(2)'s flags.
public struct RenameFlags: OptionSet, Sendable {
    public let rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public static let noReplace = RenameFlags(rawValue: 1)
    public static let exchange = RenameFlags(rawValue: 2)
}

/// The flags of setxattr(2).
public enum AttributePolicy: Sendable {
    /// Replaces or creates.
    case any
    /// XATTR_CREATE: it must not exist.
    case create
    /// XATTR_REPLACE: it must exist.
    case replace
}

/// lseek(2)'s SEEK_DATA and SEEK_HOLE.
public enum SeekTarget: Sendable { case data, hole }

/// The result of statvfs(3).
public struct FilesystemStatistics: Sendable {
    public var blockBytes: UInt64
    public var blocks: UInt64
    public var free: UInt64
    public var available: UInt64
    public var files: UInt64
    public var filesFree: UInt64
    public var nameBytesMax: UInt64
}

/// Whether there is a `.thumbs` directory next to photos.
public enum ThumbnailOption: String, Sendable {
    /// It can be entered, but is not listed.
    case on
    case listed
    case off
}

/// Options for opening a library.
public struct LibraryOptions: Sendable {
    public var readOnly = false
    /// Whether a space that cannot be written is opened read-only; else opening it fails.
    public var allowsReadOnly = false
    /// Limits of retries of failed commits.
    public var commitRetries = RetryBounds()
    /// The mounting user: owner of everything without an owner of its own.
    public var owner: (uid: UInt32, gid: UInt32)
    /// Whether owners are kept and can be set.
    public var mountedByRoot: Bool
    /// Shown instead of the owners, if given.
    public var uid: UInt32?
    public var gid: UInt32?
    /// Permission bits that are never shown.
    public var umask: UInt32?
    public var thumbnails = ThumbnailOption.on
    /// The worker executable; nil: no thumbnails can be made.
    public var workerPath: String?
    /// Maximum number of worker processes.
    public var workerCount = 2
    /// Data directories of the XDG Base Directory Specification, most important first, where thumbnailers for formats
    /// that the workers do not decode are registered.
    public var dataDirectories: [String] = []
    /// Makes thumbnails instead of the worker, in tests.
    var pictureMaker: (any PictureMaking)?
    /// Milliseconds without writes after which thumbnails of new photos are made without a request.
    var settleMilliseconds = BackgroundThumbnailer.settleMilliseconds
    /// Commits only by fsync(2), close and `Committer.commitByHand`, for tests that choose the moments.
    var commitsByHand = false
    /// How many days removed entries stay in the trash; 0: a photo removed from moments is destroyed at once.
    public var trashDays = 30
    /// For the age of trash entries and for retries.
    public var clocks = Clocks()
    /// The limits with which `Library.open` opens the space.
    public var limits = Limits.ofProcess

    public init(owner: (uid: UInt32, gid: UInt32), mountedByRoot: Bool) {
        self.owner = owner
        self.mountedByRoot = mountedByRoot
    }
}

/// Receives changes that the kernel did not request. Called from any thread; must only enqueue.
public protocol LibraryObserver: AnyObject, Sendable {
    /// The dentry must not be cached any longer: the name is gone, or names another inode.
    func invalidateEntry(parent: UInt64, name: Name)
    /// The name of a file that is gone: the kernel must drop the dentry, so that `forget` follows.
    func dropEntry(parent: UInt64, name: Name)
    /// Attributes and cached pages.
    func invalidateInode(_ ino: UInt64)
    func invalidateAttributes(_ ino: UInt64)
    /// Whether some notifications are still unsent.
    var hasUnsent: Bool { get }
}

let fileTypeMask: UInt32 = 0o170000
let regularType: UInt32 = 0o100000
let directoryType: UInt32 = 0o040000
let linkType: UInt32 = 0o120000
let setUserID: UInt32 = 0o4000
let setGroupID: UInt32 = 0o2000
let groupExecute: UInt32 = 0o0010
/// All permission bits, including `setUserID`, `setGroupID` and the sticky bit.
let permissionMask: UInt32 = 0o7777

/// Inode numbers that are the same in every space.
enum WellKnownInode {
    static let root: UInt64 = 1
    static let moments: UInt64 = 2
    static let albums: UInt64 = 3
    /// Inodes other than those of `Tree.makeRootDirectories` have this number or a higher one.
    static let firstOfUsers: UInt64 = 16
}

let nameBytesMax = 255
let linkCountMax: UInt32 = 1_000_000_000
