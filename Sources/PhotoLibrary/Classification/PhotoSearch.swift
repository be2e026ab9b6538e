import CatalogueRows
package import FileRequests
import Glibc
package import PhotoImaging
package import PhotoRules
import VaultCatalogue

/// Result of a search for photos with given bytes.
package struct EqualPhotos: Sendable {
    package var photos: [EqualPhoto] = []
    /// False if the search was cancelled.
    package var isComplete = true
}

/// Search for photos with the same bytes. Fingerprints propose candidates; their bytes are compared.
package struct PhotoSearch: Sendable {
    private let session: TreeSession

    package init(_ session: TreeSession) { self.session = session }

    /// At most this many candidates per fingerprint. Further duplicates become photos of their own.
    private static let candidatesMax = 8
    /// At most this many photos of a fingerprint are examined: any number of them may be in the trash, no
    /// candidates.
    private static let fingerprintsMax = 64

    /// The inode of a photo of this space with exactly these bytes, or nil. Also nil if the source, or the photo,
    /// cannot be read.
    package func photo(equalTo source: some ByteSource) throws(FileError) -> UInt64? {
        guard let fingerprint = fingerprint(of: source) else { return nil }
        return try equalPhotos(to: source, fingerprint, except: 0) { _ in false }.photos.first?.ino
    }

    /// The photos with exactly these bytes and this fingerprint, other than `own`.
    ///
    /// - Parameter isCancelled: called repeatedly, with the number of bytes compared so far.
    package func equalPhotos(
        to source: some ByteSource, _ fingerprint: UInt64, except own: UInt64,
        unless isCancelled: (_ work: UInt64) -> Bool
    ) throws(FileError) -> EqualPhotos {
        let candidates = try session.locked { tree throws(FileError) -> [EqualPhoto] in
            var found: [EqualPhoto] = []
            for ino in try tree.tables.photos.numbers(fingerprint: fingerprint, limit: Self.fingerprintsMax)
            where ino != own && found.count < Self.candidatesMax {
                let inode = try tree.inode(ino)
                guard try tree.copies.canHaveCopies(inode), inode.row.size == source.byteCount else {
                    continue
                }
                found.append(EqualPhoto(ino: ino, revision: inode.row.revision))
            }
            return found
        }
        var result = EqualPhotos()
        var (before, latest) = (UInt64(0), UInt64(0))
        for candidate in candidates {
            before += latest
            latest = 0
            let isCalledOffHere: (UInt64) -> Bool = { work in
                latest = work
                return isCancelled(before + work)
            }
            switch compare(candidate.ino, source, unless: isCalledOffHere) {
            case .equal: result.photos.append(candidate)
            case .different, .unreadable: continue
            case .cancelled: return EqualPhotos(photos: result.photos, isComplete: false)
            }
        }
        return result
    }

    /// The photos in the trash with that fingerprint and size.
    package func trashedPhotos(
        _ fingerprint: UInt64, byteCount: UInt64
    ) throws(FileError) -> [UInt64] {
        try session.locked { tree throws(FileError) -> [UInt64] in
            var found: [UInt64] = []
            for ino in try tree.tables.photos.numbers(fingerprint: fingerprint, limit: Self.fingerprintsMax)
            where found.count < Self.candidatesMax {
                let inode = try tree.inode(ino)
                if inode.isTrashed, inode.row.size == byteCount { found.append(ino) }
            }
            return found
        }
    }

    /// Retries once if the photo cannot be read. An unreadable photo is not equal.
    private func compare(
        _ ino: UInt64, _ source: some ByteSource, unless isCancelled: (UInt64) -> Bool
    ) -> Comparison {
        for _ in 0..<2 {
            let found = try? session.withState(of: ino) { file throws(FileError) in
                PhotoImaging.compare(FileSource(file), source, unless: isCancelled)
            }
            if let found, found != .unreadable { return found }
        }
        return .unreadable
    }

    /// Whether a file of the library has exactly the bytes of `source`, all of them read back and opened.
    /// Also false if cancelled. Throws `.damaged` if the file cannot be read.
    package func holds(
        _ ino: UInt64, _ source: some ByteSource, unless isCancelled: () -> Bool = { false }
    ) throws(FileError) -> Bool {
        try session.withState(of: ino) { file throws(FileError) in
            let own = FileSource(file)
            let found = PhotoImaging.compare(own, source) { _ in isCancelled() }
            if found == .unreadable, own.hasFailed { throw .damaged }
            return found == .equal
        }
    }
}

/// A hash of the length and of the first and the last 4 KiB: the same for equal bytes, most likely different for
/// others. Cameras write the same head into many pictures; the image data determines the tail. Nil if the bytes cannot
/// be read.
package func fingerprint(of source: some ByteSource) -> UInt64? {
    let endBytes = 4096
    let length = source.byteCount
    var hash = mixed(0xCBF2_9CE4_8422_2325, length)
    let isRead = unsafe withUnsafeTemporaryAllocation(byteCount: endBytes, alignment: 8) { buffer in
        for start in length > UInt64(endBytes) ? [0, length - UInt64(endBytes)] : [0] {
            let count = Int(min(UInt64(endBytes), length - start))
            let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            guard unsafe source.read(at: start, into: part) == count else { return false }
            // Whole words; the last one is padded with zeros.
            unsafe memset(buffer.baseAddress! + count, 0, endBytes - count)
            for offset in stride(from: 0, to: count, by: 8) {
                hash = unsafe mixed(
                    hash, UInt64(littleEndian: buffer.load(fromByteOffset: offset, as: UInt64.self)))
            }
        }
        return true
    }
    return isRead ? hash : nil
}

/// One step of a multiplicative hash. Nothing secret depends on it: it lives in the sealed catalogue.
private func mixed(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    return product.high ^ product.low
}
