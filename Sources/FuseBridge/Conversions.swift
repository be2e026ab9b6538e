internal import CFuse3
internal import FileRequests
internal import Glibc
internal import LinuxIO
internal import PhotoLibrary

/// The transfer size that stat(2) recommends: a chunk of the vault. Programs that buffer their writes use it, and each
/// write is one request here.
private let transferBytes = 131_072

extension stat {
    init(_ attributes: Attributes) {
        self.init()
        st_ino = ino_t(attributes.ino)
        st_mode = attributes.mode
        st_nlink = nlink_t(attributes.nlink)
        st_uid = attributes.uid
        st_gid = attributes.gid
        st_rdev = dev_t(attributes.rdev)
        st_size = off_t(attributes.size)
        st_blocks = blkcnt_t(attributes.blocks)
        st_blksize = blksize_t(transferBytes)
        st_atim = attributes.accessed.timespec
        st_mtim = attributes.modified.timespec
        st_ctim = attributes.changed.timespec
    }
}

extension fuse_entry_param {
    /// An entry with inode number 0 means "no such name", for as long as its timeout.
    ///
    /// - Parameter timeoutMax: the most for both timeouts, in seconds.
    init(_ entry: Entry, _ timeoutMax: Double) {
        self.init()
        ino = entry.attributes.ino
        attr = stat(entry.attributes)
        attr_timeout = min(entry.attributeTimeout, timeoutMax)
        entry_timeout = min(entry.entryTimeout, timeoutMax)
    }
}

extension statvfs {
    init(_ statistics: FilesystemStatistics) {
        self.init()
        f_bsize = UInt(statistics.blockBytes)
        f_frsize = UInt(statistics.blockBytes)
        f_blocks = fsblkcnt_t(statistics.blocks)
        f_bfree = fsblkcnt_t(statistics.free)
        f_bavail = fsblkcnt_t(statistics.available)
        f_files = fsfilcnt_t(statistics.files)
        f_ffree = fsfilcnt_t(statistics.filesFree)
        f_favail = fsfilcnt_t(statistics.filesFree)
        f_namemax = UInt(statistics.nameBytesMax)
    }
}

extension AttributeChanges {
    /// The fields of `status` that `mask` (FUSE_SET_ATTR_…) names.
    init(_ status: stat, mask: Int32) {
        func has(_ bit: Int32) -> Bool { mask & bit != 0 }
        self.init()
        if has(FUSE_SET_ATTR_MODE) { mode = status.st_mode & 0o7777 }
        if has(FUSE_SET_ATTR_UID) { uid = status.st_uid }
        if has(FUSE_SET_ATTR_GID) { gid = status.st_gid }
        if has(FUSE_SET_ATTR_SIZE) { size = UInt64(status.st_size) }
        if has(FUSE_SET_ATTR_ATIME) { accessed = .set(Timestamp(status.st_atim)) }
        if has(FUSE_SET_ATTR_MTIME) { modified = .set(Timestamp(status.st_mtim)) }
        if has(FUSE_SET_ATTR_ATIME_NOW) { accessed = .now }
        if has(FUSE_SET_ATTR_MTIME_NOW) { modified = .now }
        if has(FUSE_SET_ATTR_CTIME) { changed = Timestamp(status.st_ctim) }
    }
}

extension Name {
    /// The name that libfuse passes to a callback: never nil, and NUL-terminated.
    init(_ pointer: UnsafePointer<CChar>?) { self.init(pointer!) }
}

/// Bytes of a C string without its NUL.
func bytes(_ pointer: UnsafePointer<CChar>?) -> [UInt8] {
    Array(UnsafeRawBufferPointer(start: pointer!, count: strlen(pointer!)))
}

/// The kernel carries a 64-bit number for every open file. Ours is a retained reference to the file's handle.
extension fuse_file_info {
    /// Takes a reference that lasts until `dropHandle`.
    mutating func keep(_ handle: AnyObject) {
        fh = UInt64(UInt(bitPattern: Unmanaged.passRetained(handle).toOpaque()))
    }

    func handle<Handle: AnyObject>(as type: Handle.Type = Handle.self) -> Handle {
        Unmanaged<Handle>.fromOpaque(handlePointer).takeUnretainedValue()
    }

    /// Releases the reference. The value must not be used for a handle again.
    func dropHandle() { Unmanaged<AnyObject>.fromOpaque(handlePointer).release() }

    private var handlePointer: UnsafeRawPointer { UnsafeRawPointer(bitPattern: UInt(fh))! }
}

extension UnsafeMutablePointer<fuse_file_info> {
    /// The open file a request is about.
    var file: FileHandle { pointee.handle() }
    var directory: DirectoryHandle { pointee.handle() }
}
