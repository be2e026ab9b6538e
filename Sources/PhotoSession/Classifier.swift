import FileRequests
import FileTree
import Glibc
import LinuxIO
import PhotoImaging
import PhotoRules
import PhotoTree
import Thumbnails
import VaultCatalogue
import VaultFormat

/// How far classification searches for photos with the same bytes.
enum EqualSearch {
    /// No search.
    case none
    /// Compares few bytes, because other requests wait for the file, or in the kernel for its directory.
    case brief
}

/// An open file as a byte source for the metadata readers. They read few bytes at a time, so one chunk is cached.
final class FileSource: PhotoBytes {
    private let file: FileState
    private let buffer: UnsafeMutableRawBufferPointer
    private var held: Range<UInt64> = 0..<0
    /// Whether a read failed: the result is then unreliable.
    private(set) var hasFailed = false
    let byteCount: UInt64

    init(_ file: FileState) {
        self.file = file
        buffer = file.context.chunks.take()
        byteCount = file.view.withLock { file.size }
    }

    deinit { file.context.chunks.give(buffer) }

    func read(at offset: UInt64, into target: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < byteCount else { return 0 }
        let wanted = min(target.count, Int(min(byteCount - offset, UInt64(Int.max))))
        var done = 0
        while done < wanted {
            let position = offset + UInt64(done)
            if !held.contains(position), wanted - done >= Int(Chunk.bytes) {
                let part = UnsafeMutableRawBufferPointer(rebasing: target[done..<wanted])
                guard let count = copy(position, into: part) else { return -1 }
                if count == 0 { break }
                done += count
                continue
            }
            guard held.contains(position) || fill(Chunk.start(Chunk.index(position))) else { return -1 }
            guard held.contains(position), let source = buffer.baseAddress, let start = target.baseAddress
            else {
                break
            }
            let count = min(wanted - done, Int(held.upperBound - position))
            memcpy(start + done, source + Int(position - held.lowerBound), count)
            done += count
        }
        return done
    }

    func storedRange(from offset: UInt64) -> Range<UInt64>? { file.storedRange(from: offset) }

    private func fill(_ start: UInt64) -> Bool {
        let part = UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(Chunk.bytes)])
        guard let count = copy(start, into: part) else { return false }
        held = start..<start + UInt64(count)
        return true
    }

    private func copy(_ start: UInt64, into part: UnsafeMutableRawBufferPointer) -> Int? {
        do throws(FileError) { return try file.copy(start, into: part) } catch {
            hasFailed = true
            return nil
        }
    }
}

extension Library {
    /// Classifies an open file and reads the sidecar next to it: next to `place`, the file's future name, if given,
    /// else next to its present name. Empty files are never photos.
    func classify(
        _ file: FileState, at place: (parent: UInt64, name: [UInt8])? = nil,
        equals search: EqualSearch = .brief
    ) -> Classification {
        var hasFailed = false
        let classification = classify(file, at: place, search, &hasFailed)
        // A transient disk error may pass. Accepting it would lose a photo's date, or show the photo twice.
        return hasFailed ? classify(file, at: place, search, &hasFailed) : classification
    }

    /// - Parameter hasFailed: set if a read failed.
    private func classify(
        _ file: FileState, at place: (parent: UInt64, name: [UInt8])?, _ search: EqualSearch,
        _ hasFailed: inout Bool
    ) -> Classification {
        let source = FileSource(file)
        defer { if source.hasFailed { hasFailed = true } }
        guard source.byteCount > 0 else { return .plain }
        let facts = readFacts(source)
        if source.hasFailed { return .unknown }
        guard let facts else { return .plain }
        guard let fingerprint = fingerprint(of: source), !source.hasFailed else { return .unknown }
        var probe = MediaProbe(facts: facts, fingerprint: fingerprint)
        do throws(FileError) {
            // An unreadable sidecar counts as none: the photo has dates of its own.
            if let ino = try locked({ tree throws(FileError) in try tree.sidecar(of: file.inode, at: place) })
            {
                let (sidecar, isUnread) = try withState(of: ino) {
                    state throws(FileError) -> (Sidecar?, Bool) in
                    let beside = FileSource(state)
                    return (readSidecar(beside), beside.hasFailed)
                }
                probe.sidecar = sidecar
                hasFailed = hasFailed || isUnread
            }
        } catch { hasFailed = true }
        if case .none = search { return .media(probe) }
        do throws(FileError) {
            // If the whole comparison would exceed the limit, read nothing.
            let workMax = options.limits.briefComparisonBytes
            let isLong = file.view.withLock { file.map.allocated } > workMax
            let found = try equalPhotos(to: source, fingerprint, besides: file.ino) { isLong || $0 > workMax }
            (probe.equals, probe.isCompared) = (found.photos, found.isComplete)
        } catch { hasFailed = true }
        return .media(probe)
    }
}
