import Glibc
import LinuxIO
import VaultFormat

/// Access past the caches of this computer.
extension SegmentFiles {
    func openDirectly() -> (any DirectSegments)? { DirectFile(self) }

    /// Past this kernel's cache, unless the disk is local: then everything that is written goes through it. In a vault
    /// of several spaces the cache would show where the claim of this one is.
    func readAnew(
        _ number: Int, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer
    ) throws(Errno) {
        let offset = start(number) + offset
        guard isOnLocalDisk && !layout.isShared else {
            _ = try calls.readPastCache(directory, fileName(number), bytes, at: offset)
            return
        }
        let file = try calls.openRegular(directory, fileName(number), flags: O_RDONLY, mode: 0)
        defer { calls.close(file) }
        _ = try calls.readFully(file, bytes, at: offset)
    }

    func writeAnew(
        _ number: Int, at offset: UInt64, _ bytes: UnsafeRawBufferPointer, isInTime: () -> Bool
    ) throws(StoreError) -> Bool {
        let offset = start(number) + offset
        do throws(Errno) {
            let file = try calls.openRegular(directory, fileName(number), flags: O_RDWR, mode: 0)
            defer { calls.close(file) }
            // A truncated file of all spaces is not extended. A segment's own file may be: it may have just been
            // created again.
            let size = layout.isShared ? try calls.status(file).size : .max
            if size >= offset + UInt64(bytes.count) {
                guard isInTime() else { return false }
                try calls.writeFully(file, bytes, at: offset)
                cover?.didWrite()
                cover?.willSync()
                try calls.dataSync(file)
                return true
            }
        } catch { throw error == .noEntry ? .segmentMissing(number) : StoreError(error) }
        throw .segmentShort(number)
    }
}

/// The file of all spaces, opened anew with O_DIRECT.
private final class DirectFile: DirectSegments {
    private let files: SegmentFiles
    private let descriptor: Int32

    /// Nil if the host cannot, or another file has got the name.
    init?(_ files: SegmentFiles) {
        let calls = files.calls
        guard files.layout.isShared, let segment = try? files.segment(0, for: .writing),
            let file = try? calls.openDirect(files.directory, files.fileName(0))
        else { return nil }
        (self.files, descriptor) = (files, file)
        guard let own = try? calls.status(segment.descriptor), let found = try? calls.status(file),
            own.device == found.device, own.inode == found.inode
        else { return nil }
    }

    deinit { files.calls.close(descriptor) }

    func write(
        _ number: Int, at place: UInt64, _ bytes: UnsafeRawBufferPointer
    ) throws(StoreError) -> Bool {
        let offset = files.start(number) + place
        let end = offset + UInt64(bytes.count)
        if end > files.leastBytes {
            try files.checkEnd(offset..<end, number, files.segment(number, for: .writing))
        }
        do throws(Errno) { try files.calls.writeFully(descriptor, bytes, at: offset) } catch {
            if error == Errno(EINVAL) { return false }
            throw files.refused(error, number)
        }
        files.cover?.didWrite()
        return true
    }
}
