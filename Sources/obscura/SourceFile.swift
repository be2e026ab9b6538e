import CShims
import Glibc
import LinuxIO
import PhotoImaging
import PhotoLibrary

/// A file that is being imported, open.
final class SourceFile: ImportSource {
    let path: HostPath
    /// As it was when it was opened.
    let status: stat
    private let descriptor: Int32
    private let believesHoles: Bool
    /// Nil where all of it is to be read.
    private lazy var layout = findLayout()
    /// The first error of a read.
    private(set) var failure: Errno?

    /// Fails too where it is no regular file (EINVAL), a symbolic link (ELOOP), or larger than any file here (EFBIG).
    ///
    /// - Parameter believesHoles: whether what the host calls a hole need not be read.
    init(_ path: HostPath, believesHoles: Bool = true) throws(Errno) {
        self.path = path
        self.believesHoles = believesHoles
        // A FIFO must not let us wait.
        descriptor = try path.open(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        var found = stat()
        guard fstat(descriptor, &found) == 0, found.isRegular else {
            close(descriptor)
            throw Errno(EINVAL)
        }
        guard found.byteCount <= Library.fileBytesMax else {
            close(descriptor)
            throw Errno(EFBIG)
        }
        status = found
    }

    /// Only of a file that has fewer blocks than bytes.
    private func findLayout() -> FileLayout? {
        let blocks = UInt64(clamping: status.st_blocks)
        guard believesHoles, blocks < (byteCount - min(byteCount, FileLayout.holeBytesMin)) / 512 else {
            return nil
        }
        // Some hosts take for a hole what was just written and is in memory alone (OpenZFS 2.2.0).
        _ = fsync(descriptor)
        return FileLayout(of: OpenFileHost(descriptor), size: byteCount)
    }

    deinit { close(descriptor) }

    var byteCount: UInt64 { status.byteCount }
    var modified: Timestamp { Timestamp(status.st_mtim) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var done = 0
        while done < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress.map { $0 + done }, buffer.count - done,
                off_t(offset) + off_t(done))
            if count < 0, errno == EINTR { continue }
            if count < 0 {
                failure = failure ?? .last
                return -1
            }
            if count == 0 { break }
            done += count
        }
        return done
    }

    func storedRange(from offset: UInt64) -> Range<UInt64>? {
        if let layout { return layout.storedRange(from: offset) }
        return offset < byteCount ? offset..<byteCount : nil
    }

    /// Its change time does not count: removing another of its names sets that too.
    var isUnchanged: Bool {
        var now = stat()
        return fstat(descriptor, &now) == 0 && isSame(now)
    }

    /// Whether what lstat(2) or fstat(2) says now is this file as it was when it was opened.
    func isSame(_ now: stat) -> Bool {
        now.identity == status.identity && now.st_size == status.st_size && now.isRegular
            && Timestamp(now.st_mtim) == modified
    }

    /// Asks the kernel to read it while others are still being sealed.
    func readAhead() { posix_fadvise(descriptor, 0, 0, Int32(POSIX_FADV_WILLNEED)) }

    /// What the library keeps of it.
    var details: FileDetails {
        FileDetails(status, attributes: userAttributes(of: descriptor))
    }
}

extension FileDetails {
    init(_ status: stat, attributes: [ExtendedAttribute]) {
        self.init(
            mode: UInt32(status.st_mode & 0o7777), owner: Caller(uid: status.st_uid, gid: status.st_gid),
            accessed: Timestamp(status.st_atim), modified: Timestamp(status.st_mtim), attributes: attributes)
    }
}

/// The attributes of `user.*` that an open file or directory has; those that cannot be read are as good as none.
func userAttributes(of descriptor: Int32) -> [ExtendedAttribute] {
    var names = [CChar](repeating: 0, count: 65_536)
    let count = obscura_list_attributes(descriptor, &names, UInt(names.count))
    guard count > 0 else { return [] }
    let list = names[..<Int(count)].split(separator: 0).map { $0.map { UInt8(bitPattern: $0) } }
    return list.compactMap { name in
        guard name.starts(with: "user.".utf8), !name.starts(with: "user.obscura.".utf8) else { return nil }
        var value = [UInt8](repeating: 0, count: 65_536)
        let length = HostPath(name).withCString {
            obscura_get_attribute(descriptor, $0, &value, UInt(value.count))
        }
        return length < 0 ? nil : ExtendedAttribute(name: name, value: Array(value[..<Int(length)]))
    }
}
