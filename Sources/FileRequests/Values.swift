import Glibc
public import LinuxIO

/// A name in a directory: up to 255 bytes without `/` and NUL, of no particular encoding.
public struct Name: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
    public var bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }
    public init(_ text: String) { bytes = Array(text.utf8) }
    public init(stringLiteral text: String) { bytes = Array(text.utf8) }

    /// Copies a NUL-terminated name.
    public init(_ cString: UnsafePointer<CChar>) {
        bytes = unsafe Array(UnsafeRawBufferPointer(start: cString, count: strlen(cString)))
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

    package init(
        ino: UInt64, mode: UInt32, nlink: UInt32, uid: UInt32, gid: UInt32, rdev: UInt64, size: UInt64,
        blocks: UInt64, accessed: Timestamp, modified: Timestamp, changed: Timestamp
    ) {
        self.ino = ino
        self.mode = mode
        self.nlink = nlink
        self.uid = uid
        self.gid = gid
        self.rdev = rdev
        self.size = size
        self.blocks = blocks
        self.accessed = accessed
        self.modified = modified
        self.changed = changed
    }

    public var isDirectory: Bool { mode & fileTypeMask == directoryType }
    public var isRegular: Bool { mode & fileTypeMask == regularType }
}

/// The reply to a lookup: attributes, and how many seconds the kernel may cache the name and them.
public struct Entry: Sendable {
    public var attributes: Attributes
    public var entryTimeout: Double
    public var attributeTimeout: Double

    package init(attributes: Attributes, entryTimeout: Double, attributeTimeout: Double) {
        self.attributes = attributes
        self.entryTimeout = entryTimeout
        self.attributeTimeout = attributeTimeout
    }
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

    package func value(_ now: Timestamp) -> Timestamp {
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

    package init(name: Name, cookie: UInt64, ino: UInt64, mode: UInt32, entry: Entry? = nil) {
        self.name = name
        self.cookie = cookie
        self.ino = ino
        self.mode = mode
        self.entry = entry
    }
}

extension DirectoryEntry {
    /// Cookie of the first entry after the dots; IDs of dentries are higher.
    package static let firstCookie: UInt64 = 3

    /// Visits "." and "..". Returns false if `visit` did.
    package static func visitDots(
        _ ino: UInt64, _ parent: UInt64, after cookie: UInt64, _ visit: (DirectoryEntry) -> Bool
    ) -> Bool {
        for (number, name, target) in [(1, ".", ino), (2, "..", parent)] where cookie < UInt64(number) {
            let dot = DirectoryEntry(
                name: Name(name), cookie: UInt64(number), ino: target, mode: directoryType, entry: nil)
            if !visit(dot) { return false }
        }
        return true
    }
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

/// Name and value of a `user.*` attribute.
public struct ExtendedAttribute: Sendable, Equatable {
    public var name: [UInt8]
    public var value: [UInt8]

    public init(name: [UInt8], value: [UInt8]) {
        self.name = name
        self.value = value
    }
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

    package init(
        blockBytes: UInt64, blocks: UInt64, free: UInt64, available: UInt64, files: UInt64, filesFree: UInt64,
        nameBytesMax: UInt64
    ) {
        self.blockBytes = blockBytes
        self.blocks = blocks
        self.free = free
        self.available = available
        self.files = files
        self.filesFree = filesFree
        self.nameBytesMax = nameBytesMax
    }
}

package let fileTypeMask: UInt32 = 0o170000
package let regularType: UInt32 = 0o100000
package let directoryType: UInt32 = 0o040000
package let linkType: UInt32 = 0o120000
package let setUserID: UInt32 = 0o4000
package let setGroupID: UInt32 = 0o2000
package let groupExecute: UInt32 = 0o0010
/// All permission bits, including `setUserID`, `setGroupID` and the sticky bit.
package let permissionMask: UInt32 = 0o7777

package let nameBytesMax = 255
package let linkCountMax: UInt32 = 1_000_000_000

/// Whether a name ends with these bytes.
package func hasSuffix(_ name: [UInt8], _ suffix: [UInt8]) -> Bool {
    name.count >= suffix.count && name.suffix(suffix.count).elementsEqual(suffix)
}

/// Metadata of a file, besides its bytes and its name.
public struct FileDetails: Sendable {
    /// Permission bits.
    public var mode: UInt32
    /// Kept only if root mounted the library.
    public var owner: Caller
    public var accessed: Timestamp
    public var modified: Timestamp
    public var attributes: [ExtendedAttribute]

    public init(
        mode: UInt32, owner: Caller, accessed: Timestamp, modified: Timestamp,
        attributes: [ExtendedAttribute] = []
    ) {
        self.mode = mode
        self.owner = owner
        self.accessed = accessed
        self.modified = modified
        self.attributes = attributes
    }
}
