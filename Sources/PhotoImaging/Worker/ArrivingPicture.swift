internal import CShims
internal import Glibc
internal import Synchronization

// A picture on its way into a worker, in a memory file that both have mapped:
//
//     word   bytes that are there (UInt32), only ever more, or `givenUp`; waited for by futex(2)
//     bytes  from `WorkerProtocol.pictureHeaderBytes` on: the picture
//
// The client writes while the worker decodes: reading a photo and opening what is sealed takes a sixth of the time that
// decoding it does, and the one need not wait for the other.

/// Instead of a number of bytes: no more will come.
private let givenUp = UInt32.max

/// The client's side: a picture that only this process can write, and of which nobody can change the size.
struct PictureFile: ~Copyable {
    private let file: MemoryFile
    private let mapping: UnsafeMutableRawBufferPointer

    /// Room for a picture, nothing of which is there yet. Nil when there is no memory or no descriptor left.
    static func make(byteCount: Int) -> PictureFile? {
        guard let file = MemoryFile.empty(byteCount: WorkerProtocol.pictureHeaderBytes + byteCount) else {
            return nil
        }
        let start = mmap(nil, file.byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor, 0)
        guard let start, start != MAP_FAILED else { return nil }
        let picture = PictureFile(file: file, start: start)
        // The mapping was there before the seal and stays writable; no other can be had.
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

    /// Shared with a worker by sending it.
    var descriptor: Int32 { file.descriptor }

    private var byteCount: Int { mapping.count - WorkerProtocol.pictureHeaderBytes }

    private var arrived: UnsafeMutablePointer<Atomic<UInt32>> {
        mapping.baseAddress!.assumingMemoryBound(to: Atomic<UInt32>.self)
    }

    /// Copies all of `source`, and lets the worker know as it comes. False when it cannot be read in full, or is no
    /// longer wanted: the worker then gives it up.
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

    /// Large enough to be read quickly, and soon there.
    private static let pieceBytesMax = 256 << 10
}

/// The worker's side. What has not arrived yet must not be looked at: it is zeros, and then no more.
package final class ArrivingPicture {
    /// All that will be there.
    private let bytes: UnsafeRawBufferPointer
    /// Nil: all is there.
    private let coming: (arrived: UnsafePointer<Atomic<UInt32>>, giveUp: () -> Never)?

    /// One that is in memory already, for as long as this is.
    package init(whole bytes: UnsafeRawBufferPointer) {
        (self.bytes, coming) = (bytes, nil)
    }

    /// One in a mapped memory file of the client's. `giveUp` is called when the rest of it will not come.
    package init(file: UnsafeRawBufferPointer, giveUp: @escaping () -> Never) {
        coming = (file.baseAddress!.assumingMemoryBound(to: Atomic<UInt32>.self), giveUp)
        bytes = UnsafeRawBufferPointer(rebasing: file[WorkerProtocol.pictureHeaderBytes...])
    }

    /// Length of the whole picture.
    package var byteCount: Int { bytes.count }

    /// Where it begins.
    package var start: UnsafePointer<UInt8>? { bytes.bindMemory(to: UInt8.self).baseAddress }

    /// Blocks until at least `count` bytes are there, or all. Returns how many are.
    package func wait(for count: Int) -> Int {
        guard let coming else { return bytes.count }
        while true {
            let there = coming.arrived.pointee.load(ordering: .acquiring)
            if there == givenUp { coming.giveUp() }
            if there >= min(count, bytes.count) { return min(Int(there), bytes.count) }
            shim_futex_wait(coming.arrived, there)
        }
    }

    /// The first `count` bytes, or all where there are fewer.
    package func prefix(_ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: bytes[..<min(wait(for: count), count)])
    }

    /// All of it.
    package var whole: UnsafeRawBufferPointer { prefix(bytes.count) }
}
