package import FileRequests
import Glibc
import LinuxIO
import VaultFormat
import VaultStore

/// Reading a file's bytes. No lock is held while the store reads and opens chunks.
extension FileState {
    /// Attempts at a read that fails while the file changes.
    private static let attemptsMax = 8

    /// Passes `reply` the bytes from `offset` on: `count`, or fewer at the file's end.
    package func read<R>(_ offset: UInt64, _ count: Int, _ reply: (UnsafeRawBufferPointer) -> R)
        throws(FileError)
        -> R
    {
        if let direct = try unsafe readDirect(offset, count, reply) { return direct }
        let wanted = min(count, FileContext.requestBytesMax)
        let buffer = unsafe context.replies.take()
        defer { unsafe context.replies.give(buffer) }
        let got = try unsafe copy(offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted]))
        return unsafe reply(UnsafeRawBufferPointer(rebasing: buffer[..<got]))
    }

    /// The common case: one sealed chunk holds all the bytes, and `reply` gets them from the buffer it is opened in.
    private func readDirect<R>(
        _ offset: UInt64, _ count: Int, _ reply: (UnsafeRawBufferPointer) -> R
    ) throws(FileError) -> R? {
        for _ in 0..<Self.attemptsMax {
            view.lock()
            let seen = changeCount
            guard offset < size else {
                view.unlock()
                return unsafe reply(UnsafeRawBufferPointer(start: nil, count: 0))
            }
            let end = min(offset + UInt64(count), size)
            let index = Chunk.index(offset)
            let at = map.firstIndex(after: offset)
            guard end <= Chunk.start(index + 1), at < map.pieces.count, dirty[index] == nil,
                map.pieces[at].run.offset <= offset, map.pieces[at].run.end >= end
            else {
                view.unlock()
                return nil
            }
            let run = map.pieces[at].run
            let content = map.content
            view.unlock()
            let buffer = unsafe context.chunks.take()
            defer { unsafe context.chunks.give(buffer) }
            do throws(StoreError) {
                let number = (offset - run.offset) / Chunk.bytes
                let plain = try unsafe context.space.read(
                    role: .content, content: content, run: run, chunk: Int(number), into: buffer)
                let first = Int(offset - run.offset - number * Chunk.bytes)
                guard first + Int(end - offset) <= plain.count else { throw StoreError.damaged }
                return unsafe reply(
                    UnsafeRawBufferPointer(rebasing: plain[first..<first + Int(end - offset)]))
            } catch {
                // Rewritten during the read? Then retry; else the damage is real.
                if error != .damaged || view.withLock({ changeCount == seen }) { throw FileError(error) }
            }
        }
        throw .damaged
    }

    /// Copies bytes from `offset` on into `buffer`. Returns their number: fewer than `buffer` holds only at the file's
    /// end.
    package func copy(_ offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) throws(FileError) -> Int {
        for _ in 0..<Self.attemptsMax {
            view.lock()
            let seen = changeCount
            guard offset < size else {
                view.unlock()
                return 0
            }
            let count = Int(min(UInt64(buffer.count), size - offset))
            let target = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            let map = self.map
            let unsealed = unsafe dirty.isEmpty ? [] : copyDirty(offset, into: target)
            view.unlock()
            do throws(FileError) {
                try unsafe copySealed(map, offset, into: target, except: unsealed)
                return count
            } catch {
                if error != .damaged || view.withLock({ changeCount == seen }) { throw error }
            }
        }
        throw .damaged
    }

    /// Copies the bytes of dirty chunks and returns the chunks' indexes. Under `view`.
    private func copyDirty(_ offset: UInt64, into target: UnsafeMutableRawBufferPointer) -> [UInt64] {
        var found: [UInt64] = []
        let end = offset + UInt64(target.count)
        for index in Chunk.index(offset)...Chunk.index(end - 1) {
            guard let chunk = dirty[index], let source = unsafe chunk.buffer.baseAddress,
                let start = target.baseAddress
            else { continue }
            found.append(index)
            let lower = max(offset, Chunk.start(index))
            let upper = min(end, Chunk.start(index + 1))
            let valid = max(lower, min(upper, Chunk.start(index) + chunk.valid))
            unsafe memcpy(
                start + Int(lower - offset), source + Int(lower - Chunk.start(index)), Int(valid - lower))
            unsafe memset(start + Int(valid - offset), 0, Int(upper - valid))
        }
        return found
    }

    private func copySealed(
        _ map: ExtentMap, _ offset: UInt64, into target: UnsafeMutableRawBufferPointer, except: [UInt64]
    ) throws(FileError) {
        let end = offset + UInt64(target.count)
        if except.isEmpty { return try unsafe copyStored(map, offset, into: target) }
        var position = offset
        while position < end {
            let index = Chunk.index(position)
            let upper = min(end, Chunk.start(index + 1))
            if !except.contains(index) {
                let part = unsafe target[Int(position - offset)..<Int(upper - offset)]
                try unsafe copyStored(map, position, into: UnsafeMutableRawBufferPointer(rebasing: part))
            }
            position = upper
        }
    }

    /// Copies sealed bytes, and zeros for holes.
    func copyStored(
        _ map: ExtentMap, _ offset: UInt64, into target: UnsafeMutableRawBufferPointer
    ) throws(FileError) {
        guard let start = target.baseAddress, unsafe !target.isEmpty else { return }
        let end = offset + UInt64(target.count)
        let scratch = unsafe context.extents.take()
        defer { unsafe context.extents.give(scratch) }
        var (position, at) = (offset, map.firstIndex(after: offset))
        var next: [StoredChunk] = []
        while position < end {
            guard at < map.pieces.count, map.pieces[at].run.offset < end else {
                unsafe memset(start + Int(position - offset), 0, Int(end - position))
                break
            }
            let run = map.pieces[at].run
            if run.offset > position {
                unsafe memset(start + Int(position - offset), 0, Int(run.offset - position))
                position = run.offset
            }
            let chunk = Int((position - run.offset) / Chunk.bytes)
            let first = Int(position - run.offset) % Int(Chunk.bytes)
            let stored = run.plainBytes(ofChunk: chunk)
            guard stored > first else { throw .damaged }
            let count = min(stored - first, Int(end - position))
            let part = unsafe UnsafeMutableRawBufferPointer(
                start: start + Int(position - offset), count: count)
            let wanted = unsafe StoredChunk(run: run, chunk: chunk, from: first, into: part)
            if unsafe !context.space.areNeighbours(next, wanted, in: scratch) {
                try unsafe readStored(next, of: map.content, through: scratch)
                next.removeAll(keepingCapacity: true)
            }
            next.append(wanted)
            position += UInt64(count)
            if position >= run.end { at += 1 }
        }
        try unsafe readStored(next, of: map.content, through: scratch)
    }

    private func readStored(
        _ chunks: [StoredChunk], of content: UInt64, through scratch: UnsafeMutableRawBufferPointer
    ) throws(FileError) {
        guard !chunks.isEmpty else { return }
        try unsafe stored(context.space.read(role: .content, content: content, chunks, through: scratch))
    }

    /// lseek(2) for data and holes. The end of the file is a hole.
    package func seek(_ offset: UInt64, _ target: SeekTarget) throws(FileError) -> UInt64 {
        view.lock()
        defer { view.unlock() }
        guard offset < size else { throw .noSuchDeviceOrAddress }
        switch target {
        case .data:
            guard let found = nextData(offset) else { throw .noSuchDeviceOrAddress }
            return found
        case .hole: return endOfData(offset)
        }
    }

    /// The first range of data at or after `offset`, sealed or dirty; nil if a hole reaches the file's end.
    package func storedRange(from offset: UInt64) -> Range<UInt64>? {
        view.lock()
        defer { view.unlock() }
        guard offset < size, let start = nextData(offset) else { return nil }
        return start..<endOfData(start)
    }

    /// Under `view`.
    private func nextData(_ offset: UInt64) -> UInt64? {
        let sealed = map.nextStored(offset)
        let unsealed = dirty.filter { Chunk.start($0.key) + $0.value.valid > offset }.keys.min()
            .map { max(offset, Chunk.start($0)) }
        let found = min(sealed ?? .max, unsealed ?? .max)
        return found < size ? found : nil
    }

    /// Where the hole after `offset` begins. Under `view`.
    private func endOfData(_ offset: UInt64) -> UInt64 {
        var position = offset
        while position < size {
            var end = map.endOfStored(position)
            if let chunk = dirty[Chunk.index(position)] {
                end = max(end, Chunk.start(Chunk.index(position)) + chunk.valid)
            }
            if end <= position { return position }
            position = end
        }
        return size
    }
}
