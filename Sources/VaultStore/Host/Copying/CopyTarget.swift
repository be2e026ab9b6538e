import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// The copy of a vault that a backup creates or updates.
///
/// A *whole* copy is changed through its log, so that it keeps its old state until the new one is complete; only bytes
/// beyond the ends of its files, which nothing in it refers to, are written directly. Any other copy is written
/// directly, and has no header until the end.
final class CopyTarget {
    let vault: any VaultHost
    let isWhole: Bool
    private let header: Header
    private var layout: SegmentLayout { header.layout }
    private var log: CopyLog?
    private var open: (place: SegmentPlace, segment: any PartBytes, isWritten: Bool)?
    private var hasNewFiles = false
    private let comparison = UnsafeMutableRawBufferPointer.allocate(
        byteCount: CopyLog.dataBytesMax, alignment: Geometry.pageBytes)
    /// Bytes of the vault that the copy did not have.
    private(set) var bytesWritten: UInt64 = 0

    /// Opens the copy at `path`, or begins one if there is none, and takes its lock. Completes an interrupted backup
    /// first.
    ///
    /// Throws `notEmpty` if the directory has other files, and `otherVault` if it has another vault.
    init(_ path: String, of header: Header, calls: any FileSystemCalls) throws(VaultError) {
        self.header = header
        vault = try hostPlace(path, calls).openForCopy()
        try vault.lock()
        isWhole = try Self.isWhole(vault, path, header)
        if isWhole {
            try CopyLog.remove(from: vault)
        } else {
            try beginFirst()
        }
    }

    deinit { comparison.deallocate() }

    static func failure(_ error: Errno) -> VaultError {
        if error == .fileTooLarge { return .fileTooLarge }
        return error.meansNoRoom ? .noRoom : .system(error, "cannot write the copy")
    }

    /// Runs calls that change the copy.
    private func changing<R>(_ body: () throws(Errno) -> R) throws(VaultError) -> R {
        do throws(Errno) { return try body() } catch { throw Self.failure(error) }
    }

    // MARK: Opening

    /// Whether the copy has a state that must be kept. Applies a whole log. Under the copy's lock.
    private static func isWhole(
        _ vault: any VaultHost, _ path: String, _ header: Header
    ) throws(VaultError) -> Bool {
        if let found = try validHeader(vault) {
            guard found.clearFields == header.clearFields else { throw .otherVault }
            return true
        }
        guard let log = try CopyLog.find(in: vault) else {
            // A first backup that was killed before it had a log.
            guard try isBare(vault) else { throw .notEmpty(path) }
            return false
        }
        guard log.clearFields == header.clearFields else { throw .otherVault }
        guard try log.isWhole() else { return false }
        try log.apply(to: vault)
        return true
    }

    private static func validHeader(_ vault: any VaultHost) throws(VaultError) -> Header? {
        do throws(VaultError) {
            return try Header.read(from: vault, mayRepair: false)
        } catch {
            if error == .headerDamaged { return nil }
            throw error
        }
    }

    private static func isBare(_ vault: any PartHost) throws(VaultError) -> Bool {
        do throws(Errno) { return try vault.isBare() } catch { throw failure(error) }
    }

    /// Begins a first copy: creates a log that names the vault, unless there is one, and the segments' directory.
    private func beginFirst() throws(VaultError) {
        let isBegun = try CopyLog.find(in: vault) != nil
        try changing { () throws(Errno) in
            if !isBegun { _ = try CopyLog(makingIn: vault, header.clearFields) }
            try vault.syncNames()
            if layout.isShared { return }
            try vault.makeSegmentsPlace(layout)
            try vault.syncNames()
        }
    }

    // MARK: Segments

    /// Bytes of a segment that the copy has.
    func bytes(of place: SegmentPlace) -> UInt64 {
        (try? vault.open(.segment(place, layout), .reading).size()) ?? 0
    }

    /// Bytes available on the copy's disk.
    func hostAvailable() throws(VaultError) -> UInt64 {
        try changing { () throws(Errno) in try vault.availableBytes() }
    }

    /// Begins a segment; creates its file if it is missing. Returns the bytes that the copy has of it.
    func begin(_ place: SegmentPlace) throws(VaultError) -> UInt64 {
        try endSegment()
        return try changing { () throws(Errno) in
            let segment: any PartBytes
            do throws(Errno) { segment = try vault.open(.segment(place, layout), .writing) } catch
                where error == .noEntry
            {
                segment = try vault.open(.segment(place, layout), .making)
                hasNewFiles = true
            }
            open = (place, segment, false)
            return try segment.size()
        }
    }

    /// Reads the copy's bytes of the segment. Returns how many there are.
    private func read(_ offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) throws(VaultError) -> Int {
        guard let open else { return 0 }
        do throws(Errno) { return try open.segment.read(bytes, at: offset) } catch {
            throw .system(error, "cannot read the copy")
        }
    }

    /// Fills `bytes` with the copy's own bytes from `offset` on, and beyond their end with random ones, as in parts
    /// never written. Used for bytes that the vault's disk cannot read.
    func keep(_ offset: UInt64, _ bytes: UnsafeMutableRawBufferPointer) throws(VaultError) {
        let count = try read(offset, into: bytes)
        fillRandom(bytes.slice(count, bytes.count - count))
    }

    /// Updates the segment to `bytes` (at most 1 MiB) from `offset` on: compares, and writes the 4 KiB pages that
    /// differ.
    /// - Parameters:
    ///   - end: where the copy's segment ended.
    ///   - trust: which differences are changes of the vault. A complete copy keeps its own bytes where others are.
    /// - Returns: the ranges of `bytes` that it kept so.
    func update(
        _ offset: UInt64, _ bytes: UnsafeRawBufferPointer, end: UInt64, trust: SourceTrust
    ) throws(VaultError) -> [Range<Int>] {
        let there = comparison.slice(0, bytes.count)
        // Bytes from the segment's old end on are new and need no comparison.
        let count = min(try read(offset, into: there), Int(max(end, offset) - offset))
        let old = UnsafeRawBufferPointer(there.slice(0, count))
        if areEqual(bytes, old) { return [] }
        var kept: [Range<Int>] = []
        for range in differingPages(bytes.slice(0, count), old) {
            for (part, isTrusted) in isWhole ? trust.parts(range, of: bytes) : [(range, true)] {
                if isTrusted {
                    try write(
                        offset + UInt64(part.lowerBound), bytes.slice(part.lowerBound, part.count), end: end)
                } else {
                    kept.append(part)
                }
            }
        }
        if count < bytes.count {
            try write(offset + UInt64(count), bytes.slice(count, bytes.count - count), end: end)
        }
        return kept
    }

    /// The spaces whose roots in this copy are those of `heads`, byte for byte: such a copy has all that they lead to.
    func spaces(withRootsOf heads: RootSnapshot) -> Set<Int> {
        guard isWhole, let own = try? RootSnapshot(vault, layout) else { return [] }
        return heads.spaces(equalIn: own)
    }

    /// Changes bytes of the segment: through the log if they are part of a whole copy, else directly.
    /// - Parameter end: where the copy's segment ended.
    private func write(_ offset: UInt64, _ bytes: UnsafeRawBufferPointer, end: UInt64) throws(VaultError) {
        guard let open else { return }
        try changing { () throws(Errno) in
            if isWhole && offset < end {
                if log == nil { log = try CopyLog(makingIn: vault, header.clearFields) }
                try log?.add(open.place, offset, bytes)
            } else {
                self.open?.isWritten = true
                try open.segment.write(bytes, at: offset)
            }
        }
        bytesWritten += UInt64(bytes.count)
    }

    /// Syncs the segment if it was written.
    func endSegment() throws(VaultError) {
        guard let ended = open else { return }
        open = nil
        if ended.isWritten {
            try changing { () throws(Errno) in try ended.segment.sync() }
        }
    }

    // MARK: Finishing

    /// Discards the log, because the bytes read are no consistent state.
    func beginAgain() throws(VaultError) {
        try endSegment()
        guard isWhole else { return }
        bytesWritten = 0
        try giveUp()
    }

    /// Discards the log, so that a whole copy keeps its old state.
    func giveUp() throws(VaultError) {
        guard isWhole, log != nil else { return }
        log = nil
        try CopyLog.remove(from: vault)
    }

    /// Publishes the new state of the copy. Its heads are written last.
    func finish(_ heads: RootSnapshot) throws(VaultError) {
        for (place, bytes) in heads.roots.sorted(by: { $0.key.number < $1.key.number }) {
            try writeRoots(place, bytes, except: heads.unreadable[place] ?? [])
        }
        try endSegment()
        try syncDirectories()
        if !isWhole { return try finishFirst(heads) }
        let isSameHeader = try currentHeader() == heads.header
        if log == nil && isSameHeader { return }
        try changing { () throws(Errno) in
            if log == nil { log = try CopyLog(makingIn: vault, header.clearFields) }
            try log?.end(with: heads.header)
            try vault.syncNames()
        }
        // From now on the copy may depend on its log, so a failure no longer removes it.
        let whole = log
        log = nil
        try whole?.apply(to: vault)
    }

    private func writeRoots(
        _ place: SegmentPlace, _ bytes: [UInt8], except unreadable: [Range<Int>]
    ) throws(VaultError) {
        let end = try begin(place)
        var bytes = bytes
        let result = bytes.withUnsafeMutableBytes { bytes -> Result<Void, VaultError> in
            do throws(VaultError) {
                let claim = RootSnapshot.claimBytes.clamped(to: 0..<bytes.count)
                for range in unreadable + [claim] where !range.isEmpty {
                    try keep(UInt64(range.lowerBound), bytes.slice(range.lowerBound, range.count))
                }
                _ = try update(
                    0, UnsafeRawBufferPointer(bytes), end: end,
                    trust: SourceTrust(differs: true, hasZeros: true))
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try result.get()
    }

    private func currentHeader() throws(VaultError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        do throws(Errno) {
            let count = try vault.open(.header, .reading).read(&bytes, at: 0)
            return Array(bytes.prefix(count))
        } catch { throw .system(error, "cannot read the copy's header") }
    }

    private func finishFirst(_ heads: RootSnapshot) throws(VaultError) {
        try changing { () throws(Errno) in
            let file = try vault.open(.header, .writing)
            try file.write(heads.header, at: 0)
            try file.sync()
        }
        bytesWritten += UInt64(heads.header.count)
        try CopyLog.remove(from: vault)
    }

    private func syncDirectories() throws(VaultError) {
        guard hasNewFiles else { return }
        try vault.syncSegmentNames(layout)
        hasNewFiles = false
    }
}

/// Which differences of a segment from the copy's are changes, and not damage.
struct SourceTrust {
    /// Whether pages may differ at all.
    var differs: Bool
    /// Whether pages may be all zeros. In a vault of several spaces none ever is: all is random, or sealed.
    var hasZeros: Bool

    /// The parts of a range of pages, each with whether it is a change.
    func parts(_ range: Range<Int>, of bytes: UnsafeRawBufferPointer) -> [(
        range: Range<Int>, isTrusted: Bool
    )] {
        if differs && hasZeros { return [(range, true)] }
        var parts: [(range: Range<Int>, isTrusted: Bool)] = []
        for start in stride(from: range.lowerBound, to: range.upperBound, by: Geometry.pageBytes) {
            let page = start..<min(start + Geometry.pageBytes, range.upperBound)
            let isTrusted =
                differs && (hasZeros || bytes.slice(page.lowerBound, page.count).contains { $0 != 0 })
            if let last = parts.last, last.isTrusted == isTrusted {
                parts[parts.count - 1].range = last.range.lowerBound..<page.upperBound
            } else {
                parts.append((page, isTrusted))
            }
        }
        return parts
    }
}

/// Runs of 4 KiB pages in which two areas of equal size differ. The last page may be shorter.
private func differingPages(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> [Range<Int>] {
    var runs: [Range<Int>] = []
    for start in stride(from: 0, to: a.count, by: Geometry.pageBytes) {
        let count = min(Geometry.pageBytes, a.count - start)
        if areEqual(a.slice(start, count), b.slice(start, count)) { continue }
        if let last = runs.last, last.upperBound == start {
            runs[runs.count - 1] = last.lowerBound..<start + count
        } else {
            runs.append(start..<start + count)
        }
    }
    return runs
}

private func areEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count, let first = a.baseAddress, let second = b.baseAddress else {
        return a.count == b.count
    }
    return memcmp(first, second, a.count) == 0
}
