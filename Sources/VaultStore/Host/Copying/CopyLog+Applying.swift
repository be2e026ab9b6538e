import Glibc
import LinuxIO
import VaultFormat

/// Applying the log to the copy.
extension CopyLog {
    /// Completes an interrupted backup, if there was one, in a vault whose header is invalid. Takes the vault's lock.
    ///
    /// Throws `unfinishedCopy` if the backup must be run again.
    static func applyAny(to vault: any VaultHost) throws(VaultError) {
        guard let log = try find(in: vault) else { return }
        guard try log.isWhole() else { throw .unfinishedCopy }
        try vault.lock()
        try log.apply(to: vault)
    }

    /// Whether a vault has a log.
    static func isIn(_ vault: any PartHost) -> Bool { (try? vault.open(.copyLog, .reading)) != nil }

    /// Removes a log that is invalid because the header is valid. Under the vault's lock, and before anything other
    /// than the backup changes the vault: that log must never become valid again.
    static func remove(from vault: any PartHost) throws(VaultError) {
        do throws(Errno) { try vault.removeLog() } catch {
            // A directory of that name is no log.
            if error == .noEntry || error == .readOnlyFileSystem || error == Errno(EISDIR) { return }
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot remove \(name)")
        }
    }

    /// Applies a whole log, the header last, and removes it. Can be repeated after every interruption.
    func apply(to vault: any PartHost) throws(VaultError) {
        do throws(Errno) {
            let header = try vault.open(.header, .writing)
            try header.truncate(to: 0)
            try header.sync()
        } catch { throw CopyTarget.failure(error) }
        var writer = LogWriter(vault: vault, layout: Header.layout(ofClearFields: clearFields))
        try forEach { (record, bytes) throws(VaultError) in
            switch record {
            case .segment(let place, let offset): try writer.write(place, offset, bytes)
            case .header: try writer.writeHeader(bytes)
            }
        }
        try Self.remove(from: vault)
    }
}

/// Writes records into segments, with one segment open at a time.
private struct LogWriter {
    let vault: any PartHost
    let layout: SegmentLayout
    private var place: SegmentPlace?
    private var segment: (any PartBytes)?

    init(vault: any PartHost, layout: SegmentLayout) { (self.vault, self.layout) = (vault, layout) }

    mutating func write(
        _ place: SegmentPlace, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer
    ) throws(VaultError) {
        if place != self.place {
            try sync()
            (self.place, segment) = (place, try open(place))
        }
        guard let segment else { return }
        do throws(Errno) { try segment.write(bytes, at: offset) } catch { throw CopyTarget.failure(error) }
    }

    private func open(_ place: SegmentPlace) throws(VaultError) -> any PartBytes {
        do throws(Errno) { return try vault.open(.segment(place, layout), .making) } catch {
            throw CopyTarget.failure(error)
        }
    }

    private func sync() throws(VaultError) {
        guard let segment else { return }
        do throws(Errno) { try segment.sync() } catch { throw CopyTarget.failure(error) }
    }

    func writeHeader(_ bytes: UnsafeRawBufferPointer) throws(VaultError) {
        try sync()
        do throws(Errno) {
            let header = try vault.open(.header, .writing)
            try header.write(bytes, at: 0)
            try header.sync()
        } catch { throw CopyTarget.failure(error) }
    }
}
