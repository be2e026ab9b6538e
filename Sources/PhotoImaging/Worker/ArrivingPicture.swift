internal import CShims
internal import Glibc
internal import Synchronization

// A picture on its way into a worker, in a memory file that both have mapped:
//
//     word   number of bytes that have arrived (UInt32), never decreasing, or `givenUp`; futex(2) waits on it
//     bytes  from `WorkerProtocol.pictureHeaderBytes` on: the picture
//
// The client writes while the worker decodes. Reading and decrypting a photo takes a sixth of the time of decoding it,
// and the two overlap.

/// Replaces the number of bytes when no more will arrive.
private let givenUp = UInt32.max

/// The client's side: only this process can write the picture, and its size is sealed.
struct PictureFile: ~Copyable {
    private let file: MemoryFile
    private let mapping: UnsafeMutableRawBufferPointer

    /// A file for a picture of which nothing has arrived yet. Nil if memory or descriptors are short.
    static func make(byteCount: Int) -> PictureFile? {
        guard let file = MemoryFile.empty(byteCount: WorkerProtocol.pictureHeaderBytes + byteCount) else {
            return nil
        }
        let start = mmap(nil, file.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0)
        guard let start, start != MAP_FAILED else { return nil }
        let picture = PictureFile(file: file, start: start)
        // The existing mapping stays writable after F_SEAL_FUTURE_WRITE; new writable ones are refused.
        let seals = shim_F_SEAL_SHRINK | shim_F_SEAL_GROW | shim_F_SEAL_FUTURE_WRITE | shim_F_SEAL_SEAL
        guard picture.file.seal(seals) else { return nil }
        return picture
    }

    private init(file: consuming MemoryFile, start: UnsafeMutableRawPointer) {
        mapping = UnsafeMutableRawBufferPointer(start: start, count: file.byteCount)
        self.file = file
    }

    deinit {
        munmap(mapping.baseAddress, mapping.count)
    }

    /// Sent to a worker, which maps it.
    var descriptor: Int32 { file.descriptor }

    private var byteCount: Int { mapping.count - WorkerProtocol.pictureHeaderBytes }

    private var arrived: UnsafeMutablePointer<Atomic<UInt32>> {
        mapping.baseAddress!.assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    /// Copies all of `source` and wakes the worker after each piece. Returns false if the source cannot be read in
    /// full or `isWanted` returns false; the worker then gives the picture up.
    func fill(from source: some ByteSource, while isWanted: () -> Bool) -> Bool {
        var done = 0
        while done < byteCount {
            let room = mapping[(WorkerProtocol.pictureHeaderBytes + done)...].prefix(Self.pieceBytesMax)
            let count =
                isWanted()
                ? source.read(at: UInt64(done), into: UnsafeMutableRawBufferPointer(rebasing: room)) : -1
            done += max(count, 0)
            arrived.pointee.store(count > 0 ? UInt32(done) : givenUp, ordering: .releasing)
            shim_futex_wake(arrived)
            if count <= 0 { return false }
        }
        return true
    }

    /// Large enough for fast reads, small enough for the first piece to arrive soon.
    private static let pieceBytesMax = 256 << 10
}

/// The worker's side. Bytes that have not arrived yet must not be read: they are zeros now and change later.
package final class ArrivingPicture {
    /// The whole picture, whether arrived or not.
    private let bytes: UnsafeRawBufferPointer
    /// Nil if the whole picture is already in memory.
    private let coming: (arrived: UnsafePointer<Atomic<UInt32>>, giveUp: () -> Never)?

    /// A picture that is already in memory. `bytes` must outlive this object.
    package init(whole bytes: UnsafeRawBufferPointer) {
        (self.bytes, coming) = (bytes, nil)
    }

    /// A picture in a mapped memory file of the client. `giveUp` is called if the rest will not arrive.
    package init(file: UnsafeRawBufferPointer, giveUp: @escaping () -> Never) {
        coming = (file.baseAddress!.assumingMemoryBound(to: Atomic<UInt32>.self), giveUp)
        bytes = UnsafeRawBufferPointer(rebasing: file[WorkerProtocol.pictureHeaderBytes...])
    }

    /// Length of the whole picture, in bytes.
    package var byteCount: Int { bytes.count }

    /// The first byte of the picture.
    package var start: UnsafePointer<UInt8>? { bytes.bindMemory(to: UInt8.self).baseAddress }

    /// Blocks until at least `count` bytes or the whole picture have arrived. Returns the number of arrived bytes.
    package func wait(for count: Int) -> Int {
        guard let coming else { return bytes.count }
        while true {
            let there = coming.arrived.pointee.load(ordering: .acquiring)
            if there == givenUp { coming.giveUp() }
            if there >= min(count, bytes.count) { return min(Int(there), bytes.count) }
            shim_futex_wait(coming.arrived, there)
        }
    }

    /// The first `count` bytes, or all if there are fewer. Blocks until they have arrived.
    package func prefix(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[..<min(wait(for: count), count)])
    }

    /// The whole picture. Blocks until it has arrived.
    package var whole: UnsafeRawBufferPointer { prefix(bytes.count) }
}
