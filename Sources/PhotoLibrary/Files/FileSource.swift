import FileRequests
import Glibc
import LinuxIO
import PhotoImaging
import VaultFormat

/// An open file as a byte source for the metadata readers. They read few bytes at a time, so one chunk is cached.
@safe package final class FileSource: ByteSource {
    private let file: FileState
    private let buffer: UnsafeMutableRawBufferPointer
    private var held: Range<UInt64> = 0..<0
    /// Whether a read failed: the result is then unreliable.
    package private(set) var hasFailed = false
    package let byteCount: UInt64

    package init(_ file: FileState) {
        self.file = file
        unsafe buffer = unsafe file.context.chunks.take()
        byteCount = file.view.withLock { file.size }
    }

    deinit { unsafe file.context.chunks.give(buffer) }

    package func read(at offset: UInt64, into target: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < byteCount else { return 0 }
        let wanted = min(target.count, Int(min(byteCount - offset, UInt64(Int.max))))
        var done = 0
        while done < wanted {
            let position = offset + UInt64(done)
            if !held.contains(position), wanted - done >= Int(Chunk.bytes) {
                let part = unsafe UnsafeMutableRawBufferPointer(rebasing: target[done..<wanted])
                guard let count = unsafe copy(position, into: part) else { return -1 }
                if count == 0 { break }
                done += count
                continue
            }
            guard held.contains(position) || fill(Chunk.start(Chunk.index(position))) else { return -1 }
            guard held.contains(position), let source = unsafe buffer.baseAddress,
                let start = target.baseAddress
            else {
                break
            }
            let count = min(wanted - done, Int(held.upperBound - position))
            unsafe memcpy(start + done, source + Int(position - held.lowerBound), count)
            done += count
        }
        return done
    }

    package func storedRange(from offset: UInt64) -> Range<UInt64>? { file.storedRange(from: offset) }

    private func fill(_ start: UInt64) -> Bool {
        let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<Int(Chunk.bytes)])
        guard let count = unsafe copy(start, into: part) else { return false }
        held = start..<start + UInt64(count)
        return true
    }

    private func copy(_ start: UInt64, into part: UnsafeMutableRawBufferPointer) -> Int? {
        do throws(FileError) { return unsafe try file.copy(start, into: part) } catch {
            hasFailed = true
            return nil
        }
    }
}
