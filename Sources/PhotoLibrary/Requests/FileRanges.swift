public import FileRequests
import Glibc
import LinuxIO
import VaultCatalogue
import VaultFormat
import VaultStore

/// Operations on ranges of a file: room, holes, and copying between files.
public struct FileRanges: Sendable {
    let session: TreeSession

    /// fallocate(2): 0, KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE. Room is checked, not reserved: writes are copy-on-write
    /// and go to new sectors each time.
    public func allocate(_ handle: FileHandle, mode: Int32, offset: UInt64, length: UInt64) throws(FileError)
    {
        guard let file = handle.state, handle.isWritable else { throw .badHandle }
        guard !session.isReadOnly else { throw .readOnly }
        guard length > 0 else { throw .invalid }
        guard offset <= FileState.sizeMax, length <= FileState.sizeMax - offset else { throw .fileTooBig }
        let keepsSize = mode & FallocateMode.keepSize != 0
        let kind = mode & ~FallocateMode.keepSize
        guard kind == 0 || kind == FallocateMode.zeroRange || (kind == FallocateMode.punchHole && keepsSize)
        else { throw .notSupported }
        file.writer.lock()
        defer { file.writer.unlock() }
        let now = Timestamp.now()
        let end = offset + length
        if kind == 0 {
            let size = file.view.withLock { file.size }
            let more = end > size ? end - max(size, offset) : 0
            guard session.space.sectors.capacity.available >= more else {
                throw session.space.failure(.noRoom)
            }
        } else {
            try file.clear(offset, end, now: now)
        }
        if !keepsSize && end > file.view.withLock({ file.size }) { try file.truncate(to: end, now: now) }
        try session.save(file)
    }

    /// lseek(2) with SEEK_DATA or SEEK_HOLE.
    public func seek(_ handle: FileHandle, offset: UInt64, whence: SeekTarget) throws(FileError) -> UInt64 {
        if let file = handle.state { return try file.seek(offset, whence) }
        guard offset < UInt64(handle.fixed.count) else { throw .noSuchDeviceOrAddress }
        return whence == .data ? offset : UInt64(handle.fixed.count)
    }

    /// copy_file_range(2). Returns the number of bytes copied: fewer than requested at the source's end, or after a
    /// limit, so that the caller calls again.
    public func copyRange(
        from source: FileHandle, offset: UInt64, to target: FileHandle, offset targetOffset: UInt64,
        count: UInt64
    ) throws(FileError) -> Int {
        guard let from = source.state, let to = target.state, target.isWritable else { throw .badHandle }
        guard !session.isReadOnly else { throw .readOnly }
        var wanted = Int(min(count, UInt64(session.space.limits.copiedBytes)))
        if from === to {
            let (low, high) = (min(offset, targetOffset), max(offset, targetOffset))
            guard high - low >= UInt64(wanted) else { throw .invalid }
        } else {
            let stored = from.storedRange(from: offset)
            let end = max(offset, stored?.lowerBound ?? from.view.withLock { from.size })
            if end - offset >= Chunk.bytes {
                let length = min(count, end - offset)
                try makeHole(in: to, target, targetOffset, length)
                return Int(length)
            }
            if let stored { wanted = Int(min(UInt64(wanted), stored.upperBound - offset)) }
        }
        let buffer = unsafe session.context.replies.take()
        defer { unsafe session.context.replies.give(buffer) }
        var done = 0
        while done < wanted {
            let part = unsafe UnsafeMutableRawBufferPointer(
                rebasing: buffer[..<min(buffer.count, wanted - done)])
            do throws(FileError) {
                let got = try unsafe from.copy(offset + UInt64(done), into: part)
                guard got > 0 else { break }
                let bytes = unsafe UnsafeRawBufferPointer(rebasing: part[..<got])
                let written = try unsafe writeCopied(to, target, targetOffset + UInt64(done), bytes)
                done += written
                if written < got { break }
            } catch {
                // An error after some bytes would make cp(1) give up; its next call meets the error by itself.
                if done > 0 { return done }
                throw error
            }
        }
        return done
    }

    /// Punches a hole into a range of a file, and extends the file if it ends before.
    private func makeHole(
        in file: FileState, _ handle: FileHandle, _ offset: UInt64, _ length: UInt64
    ) throws(FileError) {
        guard offset <= FileState.sizeMax, length <= FileState.sizeMax - offset else { throw .fileTooBig }
        file.writer.lock()
        defer { file.writer.unlock() }
        file.noteWriter(handle)
        let (end, now) = (offset + length, Timestamp.now())
        try file.clear(offset, end, now: now)
        if file.view.withLock({ file.size < end }) { try file.truncate(to: end, now: now) }
    }

    private func writeCopied(
        _ file: FileState, _ handle: FileHandle, _ offset: UInt64, _ bytes: UnsafeRawBufferPointer
    ) throws(FileError) -> Int {
        file.writer.lock()
        defer { file.writer.unlock() }
        file.noteWriter(handle)
        return try unsafe file.write(at: offset, bytes, now: .now())
    }
}

extension FileState {
    /// Counts the handle as a writer again, if one of its owners had closed it.
    func noteWriter(_ handle: FileHandle) {
        view.withLock {
            guard handle.isClosing else { return }
            handle.isClosing = false
            writerCount += 1
        }
    }
}

/// fallocate(2)'s flags, from linux/falloc.h.
private enum FallocateMode {
    static let keepSize: Int32 = 0x01
    static let punchHole: Int32 = 0x02
    static let zeroRange: Int32 = 0x10
}
