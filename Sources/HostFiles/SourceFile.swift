import CShims
package import FileRequests
package import Glibc
package import LinuxIO
import PhotoImaging
import VaultFormat

/// An open file outside the vault, to compare or to import.
package final class SourceFile: ByteSource {
    /// By which it was opened, or its name alone if it was open already.
    package let path: HostPath
    /// The status when it was opened.
    package let status: stat
    private let descriptor: Int32
    private let believesHoles: Bool
    /// Nil if all of it must be read.
    private lazy var layout = findLayout()
    /// The first error of a read.
    package private(set) var failure: Errno?

    /// Also throws EINVAL if it is not a regular file, ELOOP if it is a symbolic link, and EFBIG if it is larger than
    /// any file here.
    ///
    /// - Parameter believesHoles: whether holes that the host reports need not be read.
    package init(_ path: HostPath, believesHoles: Bool = true) throws(Errno) {
        self.path = path
        self.believesHoles = believesHoles
        // A FIFO must not block.
        descriptor = try path.open(O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        var found = stat()
        guard unsafe fstat(descriptor, &found) == 0, found.isRegular else {
            close(descriptor)
            throw Errno(EINVAL)
        }
        guard found.byteCount <= Geometry.fileBytesMax else {
            close(descriptor)
            throw Errno(EFBIG)
        }
        status = found
    }

    /// A file that is open already. Throws EFBIG if it is larger than any file here.
    ///
    /// - Parameter name: stands for its path.
    package init(_ file: OwnedFile, name: Name) throws(Errno) {
        guard file.status.byteCount <= Geometry.fileBytesMax else { throw Errno(EFBIG) }
        path = HostPath(name.bytes)
        believesHoles = true
        descriptor = fcntl(file.descriptor, F_DUPFD_CLOEXEC, 0)
        guard descriptor >= 0 else { throw .last }
        status = file.status
    }

    /// Only for a file that has fewer blocks than bytes.
    private func findLayout() -> FileLayout? {
        let blocks = UInt64(clamping: status.st_blocks)
        guard believesHoles, blocks < (byteCount - min(byteCount, FileLayout.holeBytesMin)) / 512 else {
            return nil
        }
        // Some hosts report as a hole data that was just written and is only in memory (OpenZFS 2.2.0).
        _ = fsync(descriptor)
        return FileLayout(of: OpenFileHost(descriptor), size: byteCount)
    }

    deinit { close(descriptor) }

    /// As when it was opened.
    package var byteCount: UInt64 { status.byteCount }
    /// As when it was opened.
    package var modified: Timestamp { Timestamp(status.st_mtim) }

    package func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        var done = 0
        while done < buffer.count {
            let count = unsafe pread(
                descriptor, buffer.baseAddress.map { unsafe $0 + done }, buffer.count - done,
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

    package func storedRange(from offset: UInt64) -> Range<UInt64>? {
        if let layout { return layout.storedRange(from: offset) }
        return offset < byteCount ? offset..<byteCount : nil
    }

    /// The change time does not count: removing another name of the file sets it too.
    package var isUnchanged: Bool {
        var now = stat()
        return unsafe fstat(descriptor, &now) == 0 && isSame(now)
    }

    /// Whether a status that lstat(2) or fstat(2) returns now is that of this file as it was opened.
    package func isSame(_ now: stat) -> Bool {
        now.identity == status.identity && now.st_size == status.st_size && now.isRegular
            && Timestamp(now.st_mtim) == modified
    }

    /// Asks the kernel to read it while other files are still being encrypted.
    package func readAhead() { posix_fadvise(descriptor, 0, 0, Int32(POSIX_FADV_WILLNEED)) }

    /// The attributes that the library keeps of it.
    package var details: FileDetails {
        FileDetails(status, attributes: userAttributes(of: descriptor))
    }
}

extension FileDetails {
    /// Of a file with that status.
    package init(_ status: stat, attributes: [ExtendedAttribute]) {
        self.init(
            mode: UInt32(status.st_mode & 0o7777), owner: Caller(uid: status.st_uid, gid: status.st_gid),
            accessed: Timestamp(status.st_atim), modified: Timestamp(status.st_mtim), attributes: attributes)
    }
}

/// The `user.*` attributes of an open file or directory; those that cannot be read are left out.
package func userAttributes(of descriptor: Int32) -> [ExtendedAttribute] {
    // Most files have none.
    guard obscura_list_attributes(descriptor, nil, 0) > 0 else { return [] }
    var names = [CChar](repeating: 0, count: 65_536)
    let count = unsafe obscura_list_attributes(descriptor, &names, UInt(names.count))
    guard count > 0 else { return [] }
    let list = names[..<Int(count)].split(separator: 0).map { $0.map { UInt8(bitPattern: $0) } }
    return list.compactMap { name in
        guard name.starts(with: "user.".utf8), !name.starts(with: "user.obscura.".utf8) else { return nil }
        var value = [UInt8](repeating: 0, count: 65_536)
        let length = unsafe HostPath(name).withCString {
            unsafe obscura_get_attribute(descriptor, $0, &value, UInt(value.count))
        }
        return length < 0 ? nil : ExtendedAttribute(name: name, value: Array(value[..<Int(length)]))
    }
}
