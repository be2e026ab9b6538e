import Glibc
import LinuxIO
import VaultFormat

/// Checks that the written segment still has its name. A file that was removed, moved or replaced while open accepts
/// writes and syncs nevertheless, and they are lost once it is closed.
extension SegmentFiles {
    /// Called after a segment's file was synced. Throws `segmentMissing` if its name is gone or is another file's,
    /// `segmentShort` if the file was truncated. If the host does not show it, there is no error.
    ///
    /// - Parameter number: number of any segment in the file.
    func checkPresence(of number: Int, _ segment: OpenSegment) throws(StoreError) {
        let named: Int32
        do throws(Errno) {
            named = try calls.openRegular(directory, fileName(number), flags: O_RDONLY, mode: 0)
        } catch {
            if error == .noEntry { throw .segmentMissing(number) }
            return
        }
        defer { calls.close(named) }
        // Read before the size, because of concurrent writes.
        let end = segment.writtenEnd
        guard let found = try? calls.status(named), let own = try? calls.status(segment.descriptor) else {
            return
        }
        if own.size < max(min(end, segment.writtenEnd), leastBytes) {
            throw .segmentShort(layout.isShared ? layout.rows(ofFile: own.size) : number)
        }
        if (found.device, found.inode) == (own.device, own.inode) { return }
        // Some hosts give a file a new inode number at each open, so the last page is compared.
        let last = end - min(end, UInt64(Geometry.pageBytes))..<end
        for _ in 0..<Self.comparisons {
            if bytes(of: named, last) == bytes(of: segment.descriptor, last) { return }
        }
        throw .segmentMissing(number)
    }

    /// Repeated, because another thread may write between the two reads.
    private static let comparisons = 16

    private func bytes(of descriptor: Int32, _ range: Range<UInt64>) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: range.count)
        guard let count = try? calls.readFully(descriptor, at: range.lowerBound, into: &bytes) else {
            return nil
        }
        return Array(bytes[..<count])
    }

    /// Whether a segment's file exists; true if the host does not show it.
    func exists(_ number: Int) -> Bool {
        do throws(Errno) {
            calls.close(try calls.openRegular(directory, fileName(number), flags: O_RDONLY, mode: 0))
            return true
        } catch { return error != .noEntry }
    }

    /// Whether a segment has a file to write to. For the file of all spaces its size decides: a sync detects its
    /// removal.
    func hasRoom(for number: Int) -> Bool {
        guard layout.isShared else { return exists(number) }
        let found = try? bytes(number, segment(number))
        return found.map { $0 == segmentBytes } ?? true
    }

    func storedRange(_ number: Int, from offset: UInt64) throws(StoreError) -> Range<UInt64>? {
        let (descriptor, end) = (try segment(number).descriptor, try writtenBytes(number))
        do throws(Errno) {
            let start = try calls.seek(descriptor, from: offset, hole: false)
            return start..<max(start, try calls.seek(descriptor, from: start, hole: true))
        } catch { return error == Errno(ENXIO) ? nil : offset..<max(offset, end) }
    }

    /// Checks that segments can be created.
    func requireMayCreate() throws(StoreError) {
        do throws(Errno) { try calls.checkWritable(directory) } catch { throw .io(error) }
    }

    /// Checks that a segment can be written and has at least `bytes`. Throws `segmentMissing`, `segmentShort`, or the
    /// host's error.
    func requireWritable(_ number: Int, bytes: UInt64) throws(StoreError) {
        let found = try self.bytes(number, segment(number, for: .writing))
        if layout.isShared && found == 0 { throw .segmentMissing(number) }
        if found < bytes { throw .segmentShort(number) }
    }
}
