import Encodings
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoLibrary
import PhotoRules

/// The thumbnails that a user's file managers keep, in clear, of every file they have shown: `thumbnails` in the user's
/// cache directory.
///
/// It contains `normal`, `large` and other sizes, each with a PNG for every file, and `fail/PROGRAM` with one for every
/// file that could not be shown (Thumbnail Managing Standard 0.9).
struct ThumbnailCache {
    /// Nil: there are no thumbnails.
    private let directory: OwnedDirectory?

    /// - Parameter cache: the user's cache directory.
    init(in cache: OwnedDirectory?) { directory = try? cache?.directory("thumbnails") }

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
                let entry = CacheEntry(found.name, in: found.directory)
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

    /// A regular file.
    private struct Found {
        let name: [UInt8]
        let directory: OwnedDirectory
        let status: stat

        /// The digest in its name; nil if there is none.
        var digest: [UInt8]? { repositoryDigest(named: name) }

        func remove() { directory.remove(name, ifUnchangedSince: status) }
    }

    private func visit(_ body: (Found) -> Void) {
        if let directory { visit(directory, body, depth: 0) }
    }

    private func visit(_ directory: OwnedDirectory, _ body: (Found) -> Void, depth: Int) {
        for name in (try? directory.names()) ?? [] {
            guard let status = try? directory.status(name) else { continue }
            if status.isDirectory, depth < Self.depthMax, let inner = try? directory.directory(name) {
                visit(inner, body, depth: depth + 1)
            } else if status.isRegular {
                body(Found(name: name, directory: directory, status: status))
            }
        }
    }
}

/// An open file of the cache. Only its beginning is read, as far as the format readers go.
private final class CacheEntry: ByteSource {
    let byteCount: UInt64
    private let file: OwnedFile

    init?(_ name: [UInt8], in directory: OwnedDirectory) {
        guard let file = try? directory.file(name) else { return nil }
        self.file = file
        byteCount = file.status.byteCount
    }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        unsafe pread(file.descriptor, buffer.baseAddress, buffer.count, off_t(offset))
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
    return percentDecodedLeniently(rest)
}

/// As `localPath(ofURI:hosts:)`, for a URI that may begin with `$HOME` instead of the home directory, as KDE writes it.
func localPath(ofURI uri: [UInt8], home: String?) -> [UInt8]? {
    guard let home else { return localPath(ofURI: uri) }
    for scheme in ["file:", "file://"] where uri.starts(with: (scheme + "$HOME").utf8) {
        return localPath(ofURI: pathBytes(scheme + home) + uri.dropFirst((scheme + "$HOME").utf8.count))
    }
    return localPath(ofURI: uri)
}

private let thisHost: [[UInt8]] = [hostName()].filter { !$0.isEmpty }
