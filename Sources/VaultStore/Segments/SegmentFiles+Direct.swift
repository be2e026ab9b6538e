import Glibc
import LinuxIO
import VaultFormat

/// Writes past the page cache.
extension SegmentFiles {
    /// Opens the file of all spaces anew with O_DIRECT, the same file that other writes go to. Nil if the host cannot.
    /// The caller closes it.
    func openDirectly() -> Int32? {
        guard layout.isShared, let segment = try? segment(0, for: .writing),
            let file = try? calls.openDirect(directory, fileName(0))
        else { return nil }
        // Another file may have got the name.
        if let own = try? calls.status(segment.descriptor), let found = try? calls.status(file),
            own.device == found.device, own.inode == found.inode
        {
            return file
        }
        calls.close(file)
        return nil
    }

    /// Writes whole pages by a descriptor of `openDirectly`. Returns false if the host refuses such a write.
    func write(
        _ sector: UInt64, _ bytes: UnsafeRawBufferPointer, toDisk file: Int32
    ) throws(StoreError) -> Bool {
        let (number, offset) = try place(sector, bytes.count)
        let end = offset + UInt64(bytes.count)
        if end > leastBytes { try checkEnd(offset..<end, number, segment(number, for: .writing)) }
        try willWrite()
        do throws(Errno) { try calls.writeFully(file, bytes, at: offset) } catch {
            if error == Errno(EINVAL) { return false }
            throw refused(error, number)
        }
        cover?.didWrite()
        return true
    }
}
