import Glibc
import LinuxIO
import PhotoImaging
import VaultCatalogue
import VaultFormat

/// What a look at a file's bytes found.
enum Classification: Sendable {
    /// Nobody looked, or the bytes could not be read: nothing is to change.
    case unknown
    /// Not a picture and not a video.
    case plain
    case media(MediaProbe)
}

extension Classification {
    /// Forgets that other photos have the same bytes.
    mutating func forgetEquals() {
        guard case .media(var probe) = self else { return }
        (probe.equals, probe.isCompared) = ([], true)
        self = .media(probe)
    }

    /// Whether photos that may have the same bytes are still to be compared.
    var isUndecided: Bool {
        guard case .media(let probe) = self else { return false }
        return !probe.isCompared
    }
}

/// What a look at a photo's bytes found.
struct MediaProbe: Sendable {
    var facts: MediaFacts
    /// What a sidecar beside it says of its date.
    var sidecar: Sidecar?
    var fingerprint: UInt64
    /// Photos of the space that have the same bytes.
    var equals: [EqualPhoto] = []
    /// False where there was too much to compare: `equals` has what was found so far.
    var isCompared = true
}

/// How far a look at a file goes for photos with the same bytes.
enum EqualSearch {
    /// Nobody asks for them.
    case none
    /// Little is compared, as others wait: for the file, or in the kernel for the directory it lies in.
    case brief
}

/// An open file as the readers of metadata want it. They ask for few bytes at a time, so one chunk is kept.
final class FileSource: ByteSource {
    private let file: FileState
    private let buffer: UnsafeMutableRawBufferPointer
    private var held: Range<UInt64> = 0..<0
    /// Whether a read failed: then what was found is worth nothing.
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
    /// Looks whether an open file is a photo, and at the sidecar beside it: beside `place`, where it is about
    /// to be, else beside the name it is filed by. Empty files never are photos.
    func classify(
        _ file: FileState, at place: (parent: UInt64, name: [UInt8])? = nil,
        equals search: EqualSearch = .brief
    ) -> Classification {
        var hasFailed = false
        let classification = classify(file, at: place, search, &hasFailed)
        // A disk that has failed once may not fail again; to believe it would cost a photo its day, or show it twice.
        return hasFailed ? classify(file, at: place, search, &hasFailed) : classification
    }

    /// - Parameter hasFailed: set where something could not be read.
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
            // A sidecar that cannot be read is as good as none: the photo has dates of its own.
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
            // Where all of it is too much, nothing is read in vain.
            let workMax = options.limits.briefComparisonBytes
            let isLong = file.view.withLock { file.map.allocated } > workMax
            let found = try equalPhotos(to: source, fingerprint, besides: file.ino) { isLong || $0 > workMax }
            (probe.equals, probe.isCompared) = (found.photos, found.isComplete)
        } catch { hasFailed = true }
        return .media(probe)
    }
}

extension PhotoRow {
    /// What the facts say of a file of that name, dated by itself.
    init(_ inode: Inode, _ probe: MediaProbe, named name: [UInt8], now: Timestamp) {
        self.init(ino: inode.ino, modified: inode.row.modified, probe, named: name, now: now)
    }

    /// As above, of a file that may have no inode yet.
    init(ino: UInt64, modified: Timestamp, _ probe: MediaProbe, named name: [UInt8], now: Timestamp) {
        self.init(ino: ino, day: 0)
        let facts = probe.facts
        let (time, found) = PhotoImaging.captured(
            facts, fileName: name, modified: modified.seconds, modifiedNanoseconds: modified.nanoseconds,
            sidecar: probe.sidecar, now: now.seconds,
            localOffset: localOffset)
        day = dayNumber(time.day)
        captured = time.secondsSince1970
        capturedNanoseconds = Int64(time.nanosecond)
        source = Array(found.rawValue.utf8)
        media = Int64(facts.type.rawValue)
        width = Int64(facts.width)
        height = Int64(facts.height)
        orientation = Int64(facts.orientation)
        isUndated = found == .mtime
        fingerprint = probe.fingerprint
    }

    /// Puts the photo under a day that the user chose: its clock time stays.
    mutating func pin(to day: Int64) {
        let seconds = ((captured % secondsPerDay) + secondsPerDay) % secondsPerDay
        let (year, month, number) = (Int(day / 10_000), Int(day / 100 % 100), Int(day % 100))
        if let civil = CivilDay(year: year, month: month, day: number) {
            captured = civil.daysSince1970 * secondsPerDay + seconds
        }
        self.day = day
        isPinned = true
        source = Array(DateSource.moved.rawValue.utf8)
    }
}

private let secondsPerDay: Int64 = 86_400

/// Seconds east of UTC of the mount's time zone at a moment; localtime_r(3).
private func localOffset(_ utcSeconds: Int64) -> Int {
    var seconds = time_t(utcSeconds)
    var parts = tm()
    return localtime_r(&seconds, &parts) == nil ? 0 : parts.tm_gmtoff
}

/// The captured date as `user.obscura.captured` shows it: `YYYY-MM-DD HH:MM:SS`, with a fraction where there
/// is one.
func capturedText(_ row: PhotoRow) -> [UInt8] {
    let time = CivilTime(secondsSince1970: row.captured, nanosecond: Int(row.capturedNanoseconds))
    return Array(time.description.utf8)
}
