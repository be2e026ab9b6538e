import CShims
import Glibc
import LinuxIO
import PhotoImaging
import PhotoLibrary
import PhotoRules
import Thumbnails

/// The thumbnails that a user's file managers keep, in clear, of every file they have shown: `thumbnails` in the user's
/// cache directory.
///
/// It contains `normal`, `large` and other sizes, each with a PNG for every file, and `fail/PROGRAM` with one for every
/// file that could not be shown (Thumbnail Managing Standard 0.9).
struct ThumbnailCache {
    /// May be a symbolic link; below it none is followed.
    let path: String
    /// The user whose files may be removed.
    let owner: uid_t

    /// Directories in directories: `fail/PROGRAM`.
    private static let depthMax = 2

    /// Removes the entries whose URI or path is of a file for which `isGone` is true. Returns the digests in the names
    /// of entries that have neither.
    ///
    /// - Parameter since: in seconds since 1970; entries last changed before are skipped. Nil: none is.
    @discardableResult
    func removeEntries(
        changedSince since: Int?, of isGone: (_ file: [UInt8]) -> Bool
    ) -> [[UInt8]] {
        var nameless: [[UInt8]] = []
        visit { found in
            guard found.status.st_ctim.tv_sec >= since ?? Int.min,
                let entry = CacheEntry(found.name, in: found.directory, found.status)
            else { return }
            let uri = entry.uri ?? []
            if uri.contains(UInt8(ascii: ":")), !uri.starts(with: "/".utf8) {
                if let file = localPath(ofURI: uri), isGone(file) { found.remove() }
            } else if uri.starts(with: "/".utf8), isGone(uri) {
                // ffmpegthumbnailer writes a path where the URI belongs.
                found.remove()
            } else if let digest = found.digest {
                nameless.append(digest)
            }
        }
        return nameless
    }

    /// Removes the entries that have one of these digests as their name.
    func removeEntries(named digests: Set<[UInt8]>) {
        visit { found in
            if let digest = found.digest, digests.contains(digest) { found.remove() }
        }
    }

    /// A regular file of the owner's.
    private struct Found {
        let name: UnsafePointer<CChar>
        let directory: Int32
        let status: stat

        /// The digest in its name; nil if there is none.
        var digest: [UInt8]? {
            repositoryDigest(named: Array(UnsafeRawBufferPointer(start: name, count: strlen(name))))
        }

        func remove() { unlinkat(directory, name, 0) }
    }

    private func visit(_ body: (Found) -> Void) {
        let directory = obscura_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0)
        if directory >= 0 { visit(directory, body, depth: 0) }
    }

    /// Closes `directory`.
    private func visit(_ directory: Int32, _ body: (Found) -> Void, depth: Int) {
        guard let stream = fdopendir(directory) else {
            close(directory)
            return
        }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    visit(name, in: directory, body, depth: depth)
                }
            }
        }
    }

    private func visit(
        _ name: UnsafePointer<CChar>, in directory: Int32, _ body: (Found) -> Void, depth: Int
    ) {
        var status = stat()
        guard strcmp(name, ".") != 0, strcmp(name, "..") != 0,
            fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0, status.st_uid == owner
        else { return }
        if status.isDirectory, depth < Self.depthMax {
            let inner = obscura_openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0)
            if inner >= 0 { visit(inner, body, depth: depth + 1) }
        } else if status.isRegular {
            body(Found(name: name, directory: directory, status: status))
        }
    }
}

/// An open file of the cache. Only its beginning is read, as far as the format readers go.
private final class CacheEntry: ByteSource {
    let byteCount: UInt64
    private let descriptor: Int32

    init?(_ name: UnsafePointer<CChar>, in directory: Int32, _ status: stat) {
        byteCount = status.byteCount
        // If a FIFO has replaced it meanwhile, opening must not block.
        let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | obscura_no_access_time
        descriptor = obscura_openat(directory, name, flags, 0)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        pread(descriptor, buffer.baseAddress, buffer.count, off_t(offset))
    }

    /// The URI of the thumbnail's original, as the entry gives it.
    var uri: [UInt8]? { thumbnailURI(in: self) }
}

/// The path of a `file:` URI of this machine (RFC 8089), percent-decoded; nil for any other URI.
///
/// - Parameter hosts: names of this machine, in addition to none and `localhost`.
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

/// As `localPath(ofURI:hosts:)`, for a URI that may begin with `$HOME` instead of the home directory, as KDE writes it.
func localPath(ofURI uri: [UInt8], home: String?) -> [UInt8]? {
    guard let home else { return localPath(ofURI: uri) }
    for scheme in ["file:", "file://"] where uri.starts(with: (scheme + "$HOME").utf8) {
        return localPath(ofURI: Array((scheme + home).utf8) + uri.dropFirst((scheme + "$HOME").utf8.count))
    }
    return localPath(ofURI: uri)
}

private let thisHost: [[UInt8]] = {
    var name = [CChar](repeating: 0, count: 256)
    guard gethostname(&name, name.count - 1) == 0 else { return [] }
    return [name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }]
}()
