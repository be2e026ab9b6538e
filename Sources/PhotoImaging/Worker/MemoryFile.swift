internal import CShims
internal import Glibc

/// An anonymous file in memory (memfd_create(2)) that carries a picture, a thumbnail or files of a phone. Its size
/// never changes.
package struct MemoryFile: ~Copyable {
    /// For another process, which maps it.
    package let descriptor: Int32
    /// Size in bytes.
    let byteCount: Int

    /// A zeroed file for another process to write into. Nil if memory or descriptors are short.
    package static func forResult(byteCount: Int) -> MemoryFile? {
        guard let file = empty(byteCount: byteCount),
            file.seal(shim_F_SEAL_SHRINK | shim_F_SEAL_GROW | shim_F_SEAL_SEAL)
        else { return nil }
        return file
    }

    /// A read-only copy of `source`, sealed. Nil if the source cannot be read in full, memory or descriptors are
    /// short, or `isWanted` returns false.
    ///
    /// - Parameter parts: the ranges to copy, with holes between them; nil for all. They begin at multiples of the
    ///   page size.
    static func copy(
        of source: some ByteSource, byteCount: Int, parts: [Range<Int>]? = nil,
        while isWanted: () -> Bool = { true }
    ) -> MemoryFile? {
        guard let file = empty(byteCount: byteCount),
            (parts ?? [0..<byteCount]).allSatisfy({ file.fill($0, from: source, while: isWanted) }),
            file.seal(shim_F_SEAL_SHRINK | shim_F_SEAL_GROW | shim_F_SEAL_WRITE | shim_F_SEAL_SEAL)
        else { return nil }
        return file
    }

    private init(owning descriptor: Int32, byteCount: Int) {
        self.descriptor = descriptor
        self.byteCount = byteCount
    }

    deinit {
        close(descriptor)
    }

    /// Reads exactly `buffer.count` bytes at `offset`. False if the file is shorter, or on an error.
    func read(at offset: Int, into buffer: UnsafeMutableRawBufferPointer) -> Bool {
        var done = 0
        while done < buffer.count {
            let count = pread(
                descriptor, buffer.baseAddress! + done, buffer.count - done, off_t(offset + done))
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    /// A zeroed file that can still be written and resized. Nil if memory or descriptors are short.
    static func empty(byteCount: Int) -> MemoryFile? {
        let flags = shim_MFD_CLOEXEC | shim_MFD_ALLOW_SEALING
        var descriptor = shim_memfd_create("obscura", flags | shim_MFD_NOEXEC_SEAL)
        // Linux before 6.3 does not know MFD_NOEXEC_SEAL.
        if descriptor < 0 && errno == EINVAL { descriptor = shim_memfd_create("obscura", flags) }
        guard descriptor >= 0 else { return nil }
        let file = MemoryFile(owning: descriptor, byteCount: byteCount)
        guard ftruncate(descriptor, off_t(byteCount)) == 0 else { return nil }
        return file
    }

    /// Adds `seals`. F_SEAL_WRITE is granted only while no writable mapping exists; `fill` has unmapped its own.
    func seal(_ seals: Int32) -> Bool {
        fcntl(descriptor, shim_F_ADD_SEALS, seals) == 0
    }

    private func fill(_ part: Range<Int>, from source: some ByteSource, while isWanted: () -> Bool) -> Bool {
        let flags = MAP_SHARED | MAP_POPULATE
        let protection = PROT_READ | PROT_WRITE
        guard let mapping = mmap(nil, part.count, protection, flags, descriptor, off_t(part.lowerBound)),
            mapping != MAP_FAILED
        else { return false }
        defer { munmap(mapping, part.count) }
        var done = 0
        while done < part.count {
            guard isWanted() else { return false }
            let room = min(part.count - done, Self.pieceBytesMax)
            let rest = UnsafeMutableRawBufferPointer(start: mapping + done, count: room)
            let count = source.read(at: UInt64(part.lowerBound + done), into: rest)
            guard count > 0 else { return false }
            done += count
        }
        return true
    }

    /// Bytes read between two calls of `isWanted`, at most.
    private static let pieceBytesMax = 8 << 20
}
