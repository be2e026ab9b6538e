import Glibc
import LinuxIO
import VaultFormat

/// The rows of segments of a vault of several spaces: the file of all spaces, which only grows.
extension VaultFiles {
    /// Appends random bytes to the file of all spaces until each has `count` segments. Existing bytes stay.
    ///
    /// Disk for all of it is reserved first if the host can; else the host is asked whether it takes a file of that
    /// size. If this throws, the file is cut to whole rows; the caller removes an empty file.
    ///
    /// - Parameters:
    ///   - coverBytes: as many of the new bytes are written once more.
    ///   - mayGiveBack: asked after a failure: whether no mount is using the file, so that new rows are removed too.
    ///     Rows in which anything was written meanwhile stay.
    static func fill(
        _ directory: Int32, _ layout: SegmentLayout, to count: Int,
        _ calls: any FileSystemCalls, coverBytes: UInt64 = 0, mayGiveBack: () -> Bool = { false },
        _ progress: (UInt64, UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let file = try SpacesFile(directory, calls)
        let end = UInt64(count) * layout.rowBytes
        do throws(VaultError) {
            try file.reserve(end, directory)
            try file.complete(end, coverBytes: coverBytes, progress)
        } catch {
            file.shorten(toWhole: layout.rowBytes, givesBack: mayGiveBack())
            throw error
        }
    }

    /// Throws `noRoom` or `fileTooLarge` if the host has no room for a file of all spaces of `size` bytes, or cannot
    /// hold one.
    static func requireRoom(
        for size: UInt64, _ directory: Int32, _ calls: any FileSystemCalls
    ) throws(VaultError) {
        guard let host = try? calls.hostStatus(directory) else { return }
        // Disk that a killed `grow` reserved belongs to the file.
        try requireRoom(for: size, held: bytesHeld(directory, calls), on: host)
    }

    /// The same, for a file that has `held` bytes already.
    static func requireRoom(for size: UInt64, held: UInt64, on host: HostStatus) throws(VaultError) {
        if host.typeMagic == fatMagic && size > fatFileBytesMax { throw .fileTooLarge }
        let missing = size - min(size, held)
        guard missing == 0 || host.availableBytes > missing else { throw .noRoom }
    }

    /// The size of the file of all spaces, or of its disk blocks if that is more; 0 if there is no file.
    private static func bytesHeld(_ directory: Int32, _ calls: any FileSystemCalls) -> UInt64 {
        let name = SegmentLayout.sharedName
        guard let file = try? calls.openRegular(directory, name, flags: O_RDONLY, mode: 0) else { return 0 }
        defer { calls.close(file) }
        guard let status = try? calls.status(file) else { return 0 }
        return max(status.size, (Quantity(status.blocks) * Quantity(512)).value)
    }

    /// FAT12 to FAT32: linux/magic.h.
    static let fatMagic: UInt64 = 0x4D44
    static let fatFileBytesMax: UInt64 = 4 << 30 - 1

    // MARK: Growing

    func grow(
        _ header: Header, bytesPerSpace: UInt64, progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError) {
        let layout = header.layout
        let lock = try lockSpaces()
        defer { calls.close(lock) }
        let wanted = try Vault.segmentCountWanted(bytesPerSpace, header, now: segmentCount(layout))
        let (size, end) = (fileBytes(SegmentLayout.sharedName) ?? 0, UInt64(wanted) * layout.rowBytes)
        if end > size {
            try Self.requireRoom(for: end, directory, calls)
            // The lock is kept until the file has its size again: a mount would use new segments.
            let takeLock = { (try? self.lock()) != nil }
            try Self.fill(directory, layout, to: wanted, calls, mayGiveBack: takeLock) {
                (done, total) throws(VaultError) in
                progress(done - size, total - size)
            }
        }
        blurTraces(layout)
    }

    /// Locks the file of all spaces: one `grow` at a time. A mounted daemon does not hold this lock.
    func lockSpaces() throws(VaultError) -> Int32 {
        do throws(Errno) {
            let descriptor = try calls.openRegular(
                directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0)
            do throws(Errno) { try calls.lock(descriptor) } catch {
                calls.close(descriptor)
                throw error.meansLocked ? .wouldBlock : error
            }
            return descriptor
        } catch {
            if error == .wouldBlock { throw .inUse }
            if error == .noEntry { throw .damaged("\(SegmentLayout.sharedName) is missing") }
            throw .system(error, "cannot lock the vault's segments")
        }
    }

    /// Completes an interrupted `grow`, unless one is running.
    func completeSegments(_ layout: SegmentLayout) throws(VaultError) {
        guard layout.isShared, let size = fileBytes(SegmentLayout.sharedName),
            size % layout.rowBytes != 0
        else { return }
        do throws(VaultError) {
            let lock = try lockSpaces()
            defer { calls.close(lock) }
            try Self.fill(directory, layout, to: segmentCount(layout) + 1, calls) { _, _ in }
        } catch {
            switch error {
            // Without room the spaces stay as they are. A running `grow` does this itself.
            case .inUse, .noRoom, .fileTooLarge: return
            // Opening the space for writing reports that.
            case .notWritable: return
            default: throw error
            }
        }
    }
}
