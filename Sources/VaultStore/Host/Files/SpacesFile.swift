import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// The file of all spaces, extended by random bytes.
final class SpacesFile {
    private let file: Int32
    private let calls: any FileSystemCalls
    /// The size before this object wrote anything.
    private let firstSize: UInt64
    private var size: UInt64
    private let stream = RandomStream()
    /// Whether bytes were written twice, so that `stream` does not repeat them.
    private var isCovered = false

    private static let blockBytes = 1 << 20

    /// Opens the file; creates it if it is missing.
    init(_ directory: Int32, _ calls: any FileSystemCalls) throws(VaultError) {
        self.calls = calls
        do throws(Errno) {
            file = try calls.openRegular(
                directory, SegmentLayout.sharedName, flags: O_RDWR | O_CREAT, mode: 0o600)
            do throws(Errno) { firstSize = try calls.status(file).size } catch {
                calls.close(file)
                throw error
            }
            size = firstSize
        } catch { throw Self.failure(error) }
    }

    deinit { calls.close(file) }

    /// Reserves disk up to `bytes`, if the host can; else throws if the host takes no file of that size. The size
    /// stays, because it determines how many segments are usable.
    func reserve(_ bytes: UInt64, _ directory: Int32) throws(VaultError) {
        if size >= bytes { return }
        var limit = rlimit()
        if getrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit) == 0, bytes > limit.rlim_cur {
            throw .fileTooLarge
        }
        do throws(Errno) { try calls.reserve(file, bytes: bytes) } catch {
            if error != .notSupported { throw Self.failure(error) }
            try probe(bytes, directory)
        }
    }

    /// The sizes at which hosts end that cannot reserve disk are 2 and 4 GiB. No more is asked for, because some of
    /// them would fill the file with zeros.
    private static let probedBytes: Range<UInt64> = 2 << 30..<4 << 30 + 4096
    private static let probeName = "spaces.probe"

    /// Throws `fileTooLarge` if the host refuses to make a file of that size: without this it would say so after
    /// gigabytes. The file is without a name as soon as it is there.
    private func probe(_ bytes: UInt64, _ directory: Int32) throws(VaultError) {
        guard bytes >= Self.probedBytes.lowerBound else { return }
        do throws(Errno) {
            let probe = try calls.openRegular(
                directory, Self.probeName, flags: O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
            defer { calls.close(probe) }
            try calls.unlink(directory, Self.probeName)
            try calls.truncate(probe, to: min(bytes, Self.probedBytes.upperBound))
        } catch {
            // All else is found out by writing.
            if error == .fileTooLarge || error == Errno(EINVAL) { throw .fileTooLarge }
        }
    }

    /// Fills the file up to `bytes` and syncs it. Calls `progress` with size and goal before every MiB.
    ///
    /// - Parameter coverBytes: as many bytes are written once more, in equal parts along the way: so nothing but the
    ///   time of the whole tells how many.
    func complete(
        _ bytes: UInt64, coverBytes: UInt64 = 0, _ progress: (UInt64, UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let block = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockBytes, alignment: 4096)
        defer { block.deallocate() }
        let begin = size
        for part in 1...Self.parts where coverBytes > 0 || part == Self.parts {
            let start = size
            size = max(size, begin + (bytes - min(bytes, begin)) / Self.parts * part)
            if part == Self.parts { size = max(start, bytes) }
            try write(start..<size, block) { position throws(VaultError) in try progress(position, bytes) }
            var left = size > start ? coverBytes / Self.parts : 0
            isCovered = isCovered || left > 0
            while left > 0 {
                // Blocks without disk space yet would be written only once.
                let end = min(size, start + left)
                try write(start..<end, block) { _ throws(VaultError) in try progress(size, bytes) }
                left -= end - start
            }
        }
    }

    private static let parts: UInt64 = 16

    /// Writes random bytes to a part of the file and syncs it. Calls `progress` before every MiB.
    private func write(
        _ range: Range<UInt64>, _ block: UnsafeMutableRawBufferPointer,
        _ progress: (_ position: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        var position = range.lowerBound
        while position < range.upperBound {
            try progress(position)
            stream.fill(block)
            let count = Int(min(range.upperBound - position, UInt64(block.count)))
            do throws(Errno) {
                try calls.writeFully(file, UnsafeRawBufferPointer(block.slice(0, count)), at: position)
            } catch { throw Self.failure(error) }
            position += UInt64(count)
        }
        do throws(Errno) { try calls.dataSync(file) } catch { throw Self.failure(error) }
    }

    /// Cuts the file to whole rows, which also frees the disk reserved beyond. Best effort.
    ///
    /// - Parameter givesBack: also removes the rows that this object wrote and nobody used.
    func shorten(toWhole rowBytes: UInt64, givesBack: Bool) {
        guard let found = try? calls.status(file).size else { return }
        var end = found / rowBytes * rowBytes
        if givesBack, !isCovered, end > firstSize {
            let used = (usedEnd(below: end) + rowBytes - 1) / rowBytes * rowBytes
            end = max(firstSize / rowBytes * rowBytes, used)
        }
        // Bytes behind the last row are only room.
        try? calls.truncate(file, to: end)
    }

    /// The end of the last block below `end` that holds other bytes than those written here; 0 if there is none.
    private func usedEnd(below end: UInt64) -> UInt64 {
        let (wanted, found) = (
            UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockBytes, alignment: 4096),
            UnsafeMutableRawBufferPointer.allocate(byteCount: Self.blockBytes, alignment: 4096)
        )
        defer {
            wanted.deallocate()
            found.deallocate()
        }
        guard let expected = wanted.baseAddress, let read = found.baseAddress else { return end }
        stream.rewind()
        var (offset, used) = (firstSize, UInt64(0))
        while offset < end {
            let count = Int(min(end - offset, UInt64(Self.blockBytes)))
            stream.fill(wanted)
            let isRead = (try? calls.readFully(file, found.slice(0, count), at: offset)) == count
            guard isRead else { return end }
            offset += UInt64(count)
            if memcmp(expected, read, count) != 0 { used = offset }
        }
        return used
    }

    private static func failure(_ error: Errno) -> VaultError {
        if error == .fileTooLarge { return .fileTooLarge }
        if error.refusesWriting { return .notWritable(.io(error)) }
        return error.meansNoRoom ? .noRoom : .system(error, "cannot write the vault's segments")
    }
}
