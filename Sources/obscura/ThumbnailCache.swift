import CShims
import Glibc
import LinuxIO
import PhotoImaging

/// What a user's file managers keep of all that they have shown, in clear: `thumbnails` in the user's cache directory.
///
/// In it are `normal`, `large` and other sizes, each with a PNG for every file, and `fail/PROGRAM` with one for every
/// file that could not be shown (Thumbnail Managing Standard 0.9).
struct ThumbnailCache {
    /// It may be a symbolic link; below it none is followed.
    let path: String
    /// Whose files may be removed.
    let owner: uid_t

    /// Directories in directories: `fail/PROGRAM`.
    private static let depthMax = 2

    /// Removes the entries that say they are of a file that `isGone` names by its path.
    ///
    /// - Parameter since: seconds of 1970; what was last changed before is not looked at. Nil: everything is.
    func removeEntries(changedSince since: Int?, of isGone: (_ file: [UInt8]) -> Bool) {
        let directory = obscura_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        if directory >= 0 { clean(directory, since ?? Int.min, isGone, depth: 0) }
    }

    /// Closes `directory`.
    private func clean(_ directory: Int32, _ since: Int, _ isGone: ([UInt8]) -> Bool, depth: Int) {
        guard let stream = fdopendir(directory) else {
            close(directory)
            return
        }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    cleanEntry(name, in: directory, since, isGone, depth: depth)
                }
            }
        }
    }

    private func cleanEntry(
        _ name: UnsafePointer<CChar>, in directory: Int32, _ since: Int, _ isGone: ([UInt8]) -> Bool,
        depth: Int
    ) {
        var found = stat()
        guard strcmp(name, ".") != 0, strcmp(name, "..") != 0,
            fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) == 0, found.st_uid == owner
        else { return }
        if found.isDirectory, depth < Self.depthMax {
            let inner = obscura_openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
            if inner >= 0 { clean(inner, since, isGone, depth: depth + 1) }
        } else if found.isRegular, found.st_ctim.tv_sec >= since,
            let entry = CacheEntry(name, in: directory, found), let file = entry.file, isGone(file)
        {
            unlinkat(directory, name, 0)
        }
    }
}

/// A file of the cache, open. Only its beginning is read, as far as the readers of pictures go.
private final class CacheEntry: ByteSource {
    let byteCount: UInt64
    private let descriptor: Int32

    init?(_ name: UnsafePointer<CChar>, in directory: Int32, _ status: stat) {
        byteCount = status.byteCount
        // Replaced in between by a FIFO, it must not let us wait.
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | obscura_no_access_time
        descriptor = obscura_openat(directory, name, flags, 0)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
    }

    /// The path of the file it says it is of.
    var file: [UInt8]? { thumbnailURI(in: self).flatMap { localPath(ofURI: $0) } }
}

/// The path that a `file:` URI of this machine means (RFC 8089), percent signs decoded; nil for any other.
///
/// - Parameter hosts: names of this machine beside none and `localhost`.
func localPath(ofURI uri: [UInt8], hosts: [[UInt8]] = thisHost) -> [UInt8]? {
    let scheme = Array("file:".utf8)
    guard uri.count > scheme.count, uri.prefix(scheme.count).map({ $0 | 0x20 }) == scheme.map({ $0 | 0x20 })
    else { return nil }
    var rest = uri.dropFirst(scheme.count)
    if rest.starts(with: "//".utf8) {
        let host = Array(rest.dropFirst(2).prefix { $0 != UInt8(ascii: "/") })
        guard host.isEmpty || ([Array("localhost".utf8)] + hosts).contains(host) else { return nil }
        rest = rest.dropFirst(2 + host.count)
    }
    guard rest.first == UInt8(ascii: "/") else { return nil }
    return percentDecoded(rest)
}

private let thisHost: [[UInt8]] = {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return [] }
    return [name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }]
}()

/// `%2F` becomes a slash; a percent sign without two digits stays one.
private func percentDecoded(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var decoded: [UInt8] = []
    decoded.reserveCapacity(text.count)
    var rest = text
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "%"), let high = hexadecimal(rest.first),
            let low = hexadecimal(rest.dropFirst().first)
        {
            decoded.append(high << 4 | low)
            rest = rest.dropFirst(2)
        } else {
            decoded.append(byte)
        }
    }
    return decoded
}

private func hexadecimal(_ byte: UInt8?) -> UInt8? {
    switch byte {
    case let byte? where (0x30...0x39).contains(byte): byte - 0x30
    case let byte? where (0x41...0x46).contains(byte & 0xDF): (byte & 0xDF) - 0x37
    default: nil
    }
}
