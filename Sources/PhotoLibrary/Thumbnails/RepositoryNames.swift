import Encodings
import FileRequests
package import LinuxIO
import VaultCrypto

/// Finds the photo that a file of a shared thumbnail repository shows. File names there are digests: those of a
/// directory are computed at the first request, and cached until the directory changes.
package final class RepositoryNames: @unchecked Sendable {
    /// Directories with more names have no repository: computing them would take seconds.
    package static let namesMax = 50_000
    private static let directoriesMax = 2

    private let lock = Lock()
    // All under `lock`.
    private var known: [Directory] = []

    private struct Directory {
        package var ino: UInt64
        /// When its names last changed.
        package var changed: Timestamp
        /// IDs of dentries by the first eight bytes of their digests; callers compare the whole digest.
        package var ids: [UInt64: UInt64]
    }

    /// The dentry that may have that digest; nil if there is none, or if the directory's present state is not cached
    /// (`isKnown` is false).
    package func find(_ digest: [UInt8], in ino: UInt64, changed: Timestamp) -> (isKnown: Bool, id: UInt64?) {
        lock.withLock {
            guard let directory = known.first(where: { $0.ino == ino && $0.changed == changed }) else {
                return (false, nil)
            }
            return (true, directory.ids[key(digest)])
        }
    }

    /// Caches the digests of a directory's names, in place of the oldest entry.
    package func note(_ rows: [(id: UInt64, name: [UInt8])], in ino: UInt64, changed: Timestamp) {
        var ids: [UInt64: UInt64] = [:]
        for row in rows {
            for digest in repositoryDigests(of: row.name) { ids[key(digest)] = row.id }
        }
        lock.withLock {
            known.removeAll { $0.ino == ino }
            known.append(Directory(ino: ino, changed: changed, ids: ids))
            if known.count > Self.directoriesMax { known.removeFirst() }
        }
    }

    private func key(_ digest: [UInt8]) -> UInt64 { digest.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}

/// The digests that a repository may use for a file: of its name alone (the standard up to 0.8, libxfce4util up to
/// 4.18), or of its name relative to the directory (libxfce4util from 4.19.4), unescaped or as in a URI.
package func repositoryDigests(of name: [UInt8]) -> [[UInt8]] {
    let escaped = escapedForURI(name)
    let names = escaped == name ? [name] : [escaped, name]
    return names.flatMap { [md5(Array("./".utf8) + $0), md5($0)] }
}

/// The file name of a digest in a repository.
package func repositoryFileName(_ digest: [UInt8]) -> [UInt8] {
    hexDigits(of: digest) + pngExtension
}

/// The digest in the name of a repository's file; nil for any other name.
public func repositoryDigest(named name: [UInt8]) -> [UInt8]? {
    guard name.count == 32 + pngExtension.count, hasSuffix(name, pngExtension) else { return nil }
    // Digests are written in lower case.
    let digits = name.prefix(32).compactMap {
        $0 < UInt8(ascii: "a") && $0 > UInt8(ascii: "9") ? nil : hexValue($0)
    }
    guard digits.count == 32 else { return nil }
    return stride(from: 0, to: 32, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// A name as GLib writes it into file URIs (g_filename_to_uri): all but letters, digits and `unescaped` as %XX.
package func escapedForURI(_ name: [UInt8]) -> [UInt8] { percentEncoded(name, unescaped: unescaped) }

private let unescaped = Array("!$&'()*+,-./:=@_~".utf8)
private let pngExtension = Array(".png".utf8)
