import Glibc
import LinuxIO
import VaultFormat

/// Repairs of the files themselves. Under the vault's lock.
extension VaultFiles {
    func exchange(_ steps: [(Int, Int)], _ layout: SegmentLayout) throws(VaultError) {
        let directory = try openSegments(layout)
        defer { calls.close(directory) }
        do throws(Errno) {
            let spare = (try calls.list(directory).compactMap(SegmentLayout.number).max() ?? 0) + 1
            for (place, segment) in steps {
                try exchangeNames(directory, place, segment, spare: spare)
            }
            try calls.sync(directory)
        } catch {
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot rename the vault's segments")
        }
    }

    /// - Parameter spare: an unused number, for hosts that cannot exchange names atomically.
    private func exchangeNames(_ directory: Int32, _ first: Int, _ second: Int, spare: Int) throws(Errno) {
        let (first, second) = (SegmentLayout.name(first), SegmentLayout.name(second))
        do throws(Errno) {
            return try calls.rename(directory, first, second, isExchange: true)
        } catch {
            switch error.rawValue {
            // The name of a missing segment is free.
            case ENOENT: return try calls.rename(directory, first, second, isExchange: false)
            case EINVAL, ENOSYS, EOPNOTSUPP: break
            default: throw error
            }
        }
        let spare = SegmentLayout.name(spare)
        try calls.rename(directory, second, spare, isExchange: false)
        try calls.rename(directory, first, second, isExchange: false)
        try calls.rename(directory, spare, first, isExchange: false)
    }

    func mendSegments(_ layout: SegmentLayout, least segmentCount: Int) throws(VaultError) {
        guard layout.isShared else { return try cutSegments(layout) }
        let lock = try lockSpaces()
        defer { calls.close(lock) }
        let size = fileBytes(SegmentLayout.sharedName) ?? 0
        let begun = self.segmentCount(layout) + (size % layout.rowBytes == 0 ? 0 : 1)
        let count = max(begun, min(segmentCount, Geometry.segmentsMax))
        if UInt64(count) * layout.rowBytes == size { return }
        try Self.requireRoom(for: UInt64(count) * layout.rowBytes, directory, calls)
        try Self.fill(directory, layout, to: count, calls) { _, _ in }
    }

    /// Cuts files of segments at the size of a segment: nothing refers to what lies behind.
    private func cutSegments(_ layout: SegmentLayout) throws(VaultError) {
        for number in (try? listing(layout).numbers) ?? [] {
            let path = layout.path(SegmentPlace(space: 0, number: number))
            guard let size = fileBytes(path), size > layout.segmentBytes else { continue }
            do throws(Errno) {
                let file = try calls.openRegular(directory, path, flags: O_RDWR, mode: 0)
                defer { calls.close(file) }
                try calls.truncate(file, to: layout.segmentBytes)
                try calls.sync(file)
            } catch { throw .system(error, "cannot cut \(path) at the end of the segment") }
        }
    }
}
