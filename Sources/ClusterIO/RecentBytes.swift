package import LinuxIO

/// Bytes of objects that were read or written just before, or will be read soon: to a vault on a cluster what the
/// kernel's page cache is to one in files. All writes to these objects go through the pool, and are told here.
///
/// Several programs, or several requests of one, that want the same bytes read them once.
///
/// Unchecked Sendable: `parts` and `pages` are guarded by `lock`.
package final class RecentBytes: @unchecked Sendable {
    private enum Content {
        case written([UInt8])
        /// Of bytes that were asked for, or of the surroundings of a page; see `readAround`.
        case read(StartedRead, isAround: Bool)
    }

    private let pool: ClusterPool
    private let lock = Lock()
    private var parts = RecentParts<Content>(bytesMax: bytesMax, countMax: countMax)
    private var pages = PageStreams()

    private static let bytesMax = 12 << 20
    private static let countMax = 128
    /// Smaller reads are of pages, which have a cache of their own: what is around these is read, see `PageStreams`.
    private static let readBytesMin = 64 << 10
    /// One that waits for the beginning of what is read ahead need not wait for all of it.
    private static let aheadBytesMax = StartedRead.usualBytesMax

    package init(_ pool: ClusterPool) { self.pool = pool }

    deinit {
        // Nobody waits for the answers, which may take as long as a server is down.
        for part in parts.parts { cancel(part) }
    }

    // MARK: Reading

    /// Reads all parts, after the writes to these objects. Bytes that an object lacks are zeros. Returns whether all
    /// objects exist.
    ///
    /// - Parameter surroundings: of a page, the range of its object that may be read with it.
    package func read(
        _ reads: [ClusterPool.Read], within surroundings: Range<UInt64>? = nil
    ) throws(Errno) -> Bool {
        if let surroundings, let page = reads.first, reads.count == 1, !isForeseen(page) {
            readAround(page, surroundings)
        }
        var waiting: [(read: ClusterPool.Read, part: RecentParts<Content>.Part)] = []
        var others: [ClusterPool.Read] = []
        for read in reads {
            lock.withLock {
                for piece in parts.pieces(of: read.object, read.range) {
                    let some = read.part(piece.range)
                    if let part = piece.part ?? begin(read.object, piece.range, atLeast: Self.readBytesMin) {
                        waiting.append((some, part))
                    } else {
                        others.append(some)
                    }
                }
            }
        }
        var exist = try readNow(others)
        for (read, part) in waiting { exist = try finish(read, part) && exist }
        return exist
    }

    /// Whether a page itself was asked for before: then so are the pages after it, wherever they are.
    private func isForeseen(_ page: ClusterPool.Read) -> Bool {
        let content = lock.withLock { parts.part(with: page.object, page.range)?.content }
        if case .read(_, isAround: false) = content { return true }
        return false
    }

    /// Begins to read what is around a page and after it, if others near it were read just before: a directory's rows
    /// lie in thousands of pages, mostly in order, and each would take a round trip.
    private func readAround(_ page: ClusterPool.Read, _ surroundings: Range<UInt64>) {
        lock.withLock {
            guard let ahead = pages.read(page.object, page.offset) else { return }
            for window in ahead where window.overlaps(surroundings) {
                for piece in parts.pieces(of: page.object, window.clamped(to: surroundings))
                where piece.part == nil {
                    let part = begin(page.object, piece.range, atLeast: 1, isAround: true)
                    if part == nil { return }
                }
            }
        }
    }

    private func finish(
        _ read: ClusterPool.Read, _ part: RecentParts<Content>.Part
    ) throws(Errno) -> Bool {
        let offset = Int(read.offset - part.range.lowerBound)
        switch part.content {
        case .written(let bytes):
            bytes.withUnsafeBytes {
                read.bytes.copyMemory(
                    from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + read.bytes.count]))
            }
            return true
        case .read(let started, _):
            if let exists = started.copy(from: offset, to: read.bytes) { return exists }
            replace(part.object, part.range)
            return try readNow([read])
        }
    }

    /// Lends bytes that are kept, or being read, to `body`, and returns its result. Nil if none has all of them.
    package func lend(
        _ object: String, _ range: Range<UInt64>, to body: (UnsafeRawBufferPointer) -> Bool
    ) -> Bool? {
        guard let part = lock.withLock({ parts.part(with: object, range) }) else { return nil }
        let offset = Int(range.lowerBound - part.range.lowerBound)
        switch part.content {
        case .written(let bytes):
            return bytes.withUnsafeBytes {
                body(UnsafeRawBufferPointer(rebasing: $0[offset..<offset + range.count]))
            }
        case .read(let started, _): return started.lend(offset..<offset + range.count, to: body)
        }
    }

    private func readNow(_ reads: [ClusterPool.Read]) throws(Errno) -> Bool {
        guard !reads.isEmpty else { return true }
        var exist = true
        for (read, count) in zip(reads, try pool.read(reads)) {
            read.fillHole(after: count)
            exist = exist && count != nil
        }
        return exist
    }

    /// Begins to read what is not kept, for requests to come.
    package func willRead(_ object: String, _ range: Range<UInt64>) {
        lock.withLock {
            for piece in parts.pieces(of: object, range) where piece.part == nil {
                var start = piece.range.lowerBound
                while start < piece.range.upperBound {
                    let end = min(piece.range.upperBound, start + UInt64(Self.aheadBytesMax))
                    if begin(object, start..<end, atLeast: 1) == nil { return }
                    start = end
                }
            }
        }
    }

    /// With the lock held: so a write that begins after this look removes the part, by `replace`. Nil if a write
    /// to the object is on its way, which would have to be waited for, or if the range is small.
    private func begin(
        _ object: String, _ range: Range<UInt64>, atLeast bytes: Int,
        isAround: Bool = false
    ) -> RecentParts<Content>.Part? {
        guard range.count >= bytes, !pool.mayHaveWrites(to: object),
            let started = pool.startReading(object, range)
        else { return nil }
        let part = RecentParts<Content>.Part(
            object: object, range: range, content: .read(started, isAround: isAround))
        for removed in parts.insert(part) { cancel(removed) }
        return part
    }

    // MARK: Writing

    /// Called once a write to a range has begun, or has failed.
    ///
    /// - Parameter bytes: those to keep, as they will be read soon; nil for none.
    package func replace(_ object: String, _ range: Range<UInt64>, by bytes: [UInt8]? = nil) {
        lock.withLock {
            pages.wrote(object, range)
            let removed =
                bytes.map { parts.insert(.init(object: object, range: range, content: .written($0))) }
                ?? parts.remove(object, range)
            for part in removed { cancel(part) }
        }
    }

    /// Somebody who waits for it reads the bytes by itself.
    private func cancel(_ part: RecentParts<Content>.Part) {
        if case .read(let started, _) = part.content { started.cancel() }
    }
}
