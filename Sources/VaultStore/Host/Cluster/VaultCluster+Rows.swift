import ClusterIO
import Glibc
import LinuxIO
import Synchronization
import VaultCrypto
import VaultFormat

/// The rows of segments of a vault of several spaces: made whole, full of random bytes, and never removed.
extension VaultCluster {
    /// Whether all objects of a row are there, unless one was lost: the last one is made last, and has all its bytes
    /// only then.
    func isWholeRow(_ row: Int, _ layout: ClusterLayout) throws(Errno) -> Bool {
        try pool.size(of: layout.lastObject(row)) == layout.objectBytes
    }

    /// The number of whole rows.
    func rowCount(_ layout: ClusterLayout) throws(Errno) -> Int {
        let known = rowsKnown.load(ordering: .relaxed)
        // In few requests: the end lies between the last whole row found and the first one missing.
        var (found, step) = (known, 1)
        while found + step <= Geometry.segmentsMax, try isWholeRow(found + step - 1, layout) {
            (found, step) = (found + step, step * 2)
        }
        var missing = min(found + step, Geometry.segmentsMax + 1)
        while found + 1 < missing {
            let middle = (found + missing) / 2
            if try isWholeRow(middle - 1, layout) { found = middle } else { missing = middle }
        }
        rowsKnown.store(max(known, found), ordering: .relaxed)
        return found
    }

    // MARK: Making

    /// Makes rows full of random bytes, from one number up to another. Objects that are there stay as they are.
    ///
    /// - Parameter progress: called with the bytes of all rows, before some objects are made and at the end.
    func makeRows(
        _ rows: Range<Int>, _ layout: ClusterLayout,
        _ progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let total = UInt64(rows.upperBound) * layout.layout.rowBytes
        let maker = ObjectMaker(pool, layout)
        for row in rows {
            let begin = UInt64(row) * layout.layout.rowBytes
            // The last one by itself: then the row counts as whole.
            let (others, last) = (0..<layout.objectsPerSegment - 1, layout.objectsPerSegment - 1)
            for start in stride(from: 0, to: others.count, by: ObjectMaker.objectsAtOnce) {
                try progress(begin + UInt64(start) * layout.objectBytes, total)
                try maker.make(row, Array(others[start...].prefix(ObjectMaker.objectsAtOnce)))
            }
            try progress(begin + UInt64(last) * layout.objectBytes, total)
            try maker.make(row, [last])
        }
        try progress(total, total)
    }

    func completeSegments(_ layout: SegmentLayout) throws(VaultError) {
        guard layout.isShared else { return }
        let objects = objects(layout)
        let count = try segmentCount(layout)
        do throws(VaultError) {
            guard try isBegun(count, objects) else { return }
            try makeRows(count..<count + 1, objects) { _, _ in }
        } catch {
            switch error {
            // Without room the spaces stay as they are. Opening the space for writing reports the other.
            case .noRoom, .notWritable: return
            default: throw error
            }
        }
    }

    /// Whether a killed `grow` has made some of a row.
    private func isBegun(_ row: Int, _ layout: ClusterLayout) throws(VaultError) -> Bool {
        guard row < Geometry.segmentsMax else { return false }
        do throws(Errno) { return try pool.size(of: layout.object(row)) != nil } catch {
            throw .system(error, "cannot read the vault on the cluster")
        }
    }

    func grow(
        _ header: Header, bytesPerSpace: UInt64, progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError) {
        let layout = objects(header.layout)
        let count = try segmentCount(header.layout)
        let wanted = try Vault.segmentCountWanted(bytesPerSpace, header, now: count)
        guard wanted > count else { return }
        let (begun, rowBytes) = (UInt64(count) * header.layout.rowBytes, header.layout.rowBytes)
        try requireRoom(for: UInt64(wanted - count) * rowBytes)
        // If it fails, objects of a row that is not whole stay: a mount may be about to complete it.
        try makeRows(count..<wanted, layout) { (done, total) throws(VaultError) in
            progress(done - begun, total - begun)
        }
    }

    // MARK: Repairs

    func damage(_ layout: SegmentLayout) throws(VaultError) -> [FileDamage] {
        guard layout.isShared else { return FileDamage.gaps(try listing(layout).numbers) }
        let layout = objects(layout)
        let missing = try missingObjects(layout, least: 1).sorted { $0.key < $1.key }
        return missing.map { row, indices in
            FileDamage(
                file: layout.object(row, indices[0]),
                cause: indices.count == 1
                    ? "missing, or growing the vault was interrupted"
                    : "\(indices.count) objects of this row are missing, or growing the vault was interrupted"
            )
        }
    }

    /// Makes the missing objects of several spaces again, so that all rows are whole, at least so many.
    func mendSegments(_ layout: SegmentLayout, least segmentCount: Int) throws(VaultError) {
        guard layout.isShared else { return }
        let objects = objects(layout)
        let missing = try missingObjects(objects, least: min(segmentCount, Geometry.segmentsMax))
        let maker = ObjectMaker(pool, objects)
        for (row, indices) in missing.sorted(by: { $0.key < $1.key }) {
            for index in indices { try maker.make(row, [index]) }
        }
    }

    /// By row, the indices of its missing objects.
    ///
    /// - Parameter least: rows that there should be at least.
    func missingObjects(_ layout: ClusterLayout, least: Int = 0) throws(VaultError) -> [Int: [Int]] {
        var present: [Int: Set<Int>] = [:]
        for object in try objects() where object.isShared {
            present[object.segment, default: []].insert(object.index)
        }
        var missing: [Int: [Int]] = [:]
        for row in 0..<max(least, (present.keys.max() ?? -1) + 1) {
            let there = present[row] ?? []
            if there.count == layout.objectsPerSegment { continue }
            missing[row] = (0..<layout.objectsPerSegment).filter { !there.contains($0) }
        }
        return missing
    }
}

/// Makes objects of several spaces.
private final class ObjectMaker {
    private let pool: ClusterPool
    private let layout: ClusterLayout
    private let stream = RandomStream()
    private let bytes: UnsafeMutableRawBufferPointer

    /// Objects that are written at once: librados has copies of their bytes.
    static let objectsAtOnce = 4

    init(_ pool: ClusterPool, _ layout: ClusterLayout) {
        (self.pool, self.layout) = (pool, layout)
        bytes = .allocate(byteCount: Self.objectsAtOnce * Int(layout.objectBytes), alignment: 4096)
    }

    deinit { bytes.deallocate() }

    /// Makes some objects of a row, full of random bytes, except those that are there.
    func make(_ row: Int, _ indices: [Int]) throws(VaultError) {
        let size = Int(layout.objectBytes)
        let some = bytes.slice(0, indices.count * size)
        stream.fill(some)
        let writes = indices.enumerated().map { place, index in
            (
                object: layout.object(row, index),
                steps: [
                    ClusterPool.Step.creation,
                    .write(UnsafeRawBufferPointer(some.slice(place * size, size)), at: 0),
                ]
            )
        }
        do throws(Errno) { try pool.applyAll(writes, .refuse, except: .exists) } catch {
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw error.meansNoRoom ? .noRoom : .system(error, "cannot write the vault's segments")
        }
    }
}
