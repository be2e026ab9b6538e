import Glibc
import LinuxIO
import VaultFormat

/// Whether what was written to a segment can be found under its name. A file that was removed, moved away or replaced
/// while it is open takes writes and syncs all the same, and none of them can be read once it is closed.
extension SegmentFiles {
    /// To be called after a segment's file was synced. Throws `segmentMissing` where its name is gone or is another
    /// file's, `segmentShort` where the file was cut. What the host does not tell is no fault.
    ///
    /// - Parameter number: of any segment that the file has.
    func checkPresence(of number: Int, _ segment: OpenSegment) throws(StoreError) {
        let named: Int32
        do throws(Errno) {
            named = try calls.openRegular(directory, fileName(number), flags: O_RDONLY, mode: 0)
        } catch {
            if error == .noEntry { throw .segmentMissing(number) }
            return
        }
        defer { calls.close(named) }
        // Before the size is asked for: others write meanwhile.
        let end = segment.writtenEnd
        guard let found = try? calls.status(named), let own = try? calls.status(segment.descriptor) else {
            return
        }
        if own.size < max(min(end, segment.writtenEnd), leastBytes) {
            throw .segmentShort(layout.isShared ? layout.rows(ofFile: own.size) : number)
        }
        if (found.device, found.inode) == (own.device, own.inode) { return }
        // Some hosts number a file anew each time it is opened.
        let last = end - min(end, UInt64(Geometry.pageBytes))..<end
        for _ in 0..<Self.comparisons {
            if bytes(of: named, last) == bytes(of: segment.descriptor, last) { return }
        }
        throw .segmentMissing(number)
    }

    /// Between two readings others may write.
    private static let comparisons = 16

    private func bytes(of descriptor: Int32, _ range: Range<UInt64>) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: range.count)
        guard let count = try? calls.readFully(descriptor, at: range.lowerBound, into: &bytes) else {
            return nil
        }
        return Array(bytes[..<count])
    }

    /// Whether a segment's file is there under its name, or the host does not tell.
    func hasFile(_ number: Int) -> Bool {
        do throws(Errno) {
            calls.close(try calls.openRegular(directory, fileName(number), flags: O_RDONLY, mode: 0))
            return true
        } catch { return error != .noEntry }
    }

    /// Whether there is something to write a segment to. Of the file of all spaces its size decides: that it is gone is
    /// found when it is synced.
    func hasRoom(for number: Int) -> Bool {
        guard layout.isShared else { return hasFile(number) }
        let found = try? bytes(number, segment(number))
        return found.map { $0 == segmentBytes } ?? true
    }

    /// Makes sure that segments can be made.
    func checkDirectoryWritable() throws(StoreError) {
        do throws(Errno) { try calls.checkWritable(directory) } catch { throw .io(error) }
    }

    /// Makes sure that a segment can be written, and is `bytes` long. Throws `segmentMissing`, `segmentShort`, or the
    /// error of the host.
    func checkWritable(_ number: Int, bytes: UInt64) throws(StoreError) {
        let found = try self.bytes(number, segment(number, for: .writing))
        if layout.isShared && found == 0 { throw .segmentMissing(number) }
        if found < bytes { throw .segmentShort(number) }
    }
}
