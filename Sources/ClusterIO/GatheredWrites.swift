import LinuxIO

/// Small writes that wait for others to the same object, to go there in one request.
///
/// Nothing is promised of a write before the next `settle`, and no root is written before that: so they may wait.
///
/// Unchecked Sendable: everything mutable is guarded by `lock`.
final class GatheredWrites: @unchecked Sendable {
    /// The writes to an object, in order.
    struct Batch {
        /// The lock that they require.
        var lock: ClusterLock?
        var pieces: [(offset: UInt64, bytes: [UInt8])] = []

        var steps: [ClusterPool.Step] {
            (lock.map { [.lock($0)] } ?? []) + pieces.map { .writeArray($0.bytes, at: $0.offset) }
        }

        /// Returns how many bytes more there are: a page that is written again replaces the former one.
        mutating func add(_ bytes: [UInt8], at offset: UInt64) -> Int {
            if let index = pieces.lastIndex(where: { $0.offset == offset }),
                pieces[index].bytes.count == bytes.count,
                index == pieces.count - 1 || !overlaps(offset, bytes.count, after: index)
            {
                pieces[index].bytes = bytes
                return 0
            }
            pieces.append((offset, bytes))
            return bytes.count
        }

        /// Whether a later piece has some of these bytes.
        private func overlaps(_ offset: UInt64, _ count: Int, after index: Int) -> Bool {
            pieces[(index + 1)...].contains {
                $0.offset < offset + UInt64(count) && offset < $0.offset + UInt64($0.bytes.count)
            }
        }
    }

    private let lock = Lock()
    private var batches: [String: Batch] = [:]
    private var bytes = 0

    /// The largest write that waits.
    static let pieceBytesMax = 32 << 10
    /// With more bytes all go.
    static let bytesMax = 1 << 20

    /// Adds a write. Calls `start` with every batch if there are many bytes.
    func add(
        _ piece: [UInt8], at offset: UInt64, of object: String, _ required: ClusterLock?,
        start: (String, Batch) throws(Errno) -> Void
    ) throws(Errno) {
        let result = lock.withLock { () -> Result<Void, Errno> in
            var batch = batches.removeValue(forKey: object) ?? Batch()
            batch.lock = batch.lock ?? required
            bytes += batch.add(piece, at: offset)
            batches[object] = batch
            return bytes > Self.bytesMax ? startAll(start) : .success(())
        }
        try result.get()
    }

    /// False only if no write to an object waits. Never waits for batches that are being begun.
    func mayHave(_ object: String) -> Bool {
        guard lock.tryLock() else { return true }
        defer { lock.unlock() }
        return batches[object] != nil
    }

    /// Calls `start` with the batches of these objects; of all if nil. Whoever waits for them then finds them begun.
    func flush(
        _ objects: Set<String>?, start: (String, Batch) throws(Errno) -> Void
    ) throws(Errno) {
        let result = lock.withLock { () -> Result<Void, Errno> in
            guard let objects else { return startAll(start) }
            for object in objects where batches[object] != nil {
                if case .failure(let error) = startOne(object, start) { return .failure(error) }
            }
            return .success(())
        }
        try result.get()
    }

    private func startAll(_ start: (String, Batch) throws(Errno) -> Void) -> Result<Void, Errno> {
        for object in Array(batches.keys) {
            if case .failure(let error) = startOne(object, start) { return .failure(error) }
        }
        return .success(())
    }

    /// A batch that could not be begun stays.
    private func startOne(
        _ object: String, _ start: (String, Batch) throws(Errno) -> Void
    ) -> Result<Void, Errno> {
        guard let batch = batches[object] else { return .success(()) }
        do throws(Errno) { try start(object, batch) } catch { return .failure(error) }
        batches[object] = nil
        bytes -= batch.pieces.reduce(0) { $0 + $1.bytes.count }
        return .success(())
    }
}
