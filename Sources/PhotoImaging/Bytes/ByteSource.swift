/// A source of a picture's bytes: an open photo, a file, or memory.
///
/// The readers read little (see ``ReadLimits``) and check everything they get: the content may be hostile, but the
/// source is trusted to keep this contract.
public protocol ByteSource {
    /// The length in bytes. Read once, when reading begins.
    var byteCount: UInt64 { get }

    /// Copies bytes from `offset` on into `buffer` and returns how many: fewer than `buffer.count` only at
    /// the end, -1 on an I/O error. Past the end it returns 0.
    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int

    /// The first range from `offset` on that may contain bytes other than zeros; nil: only zeros follow. The bytes
    /// before it are a hole, and need not be read.
    func storedRange(from offset: UInt64) -> Range<UInt64>?
}

extension ByteSource {
    /// For a source that knows of no holes: everything from `offset` on.
    public func storedRange(from offset: UInt64) -> Range<UInt64>? {
        let end = byteCount
        return offset < end ? offset..<end : nil
    }
}

/// Bytes that are in memory already: an unpacked metadata block, or a test's picture.
public struct MemoryByteSource: ByteSource, Sendable {
    /// All of the bytes.
    public let bytes: [UInt8]

    /// A source of `bytes`.
    public init(_ bytes: [UInt8]) {
        self.bytes = bytes
    }

    public var byteCount: UInt64 { UInt64(bytes.count) }

    public func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < UInt64(bytes.count) else { return 0 }
        let start = Int(offset)
        let count = min(buffer.count, bytes.count - start)
        bytes.withUnsafeBytes { all in
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: all[start..<start + count]))
        }
        return count
    }
}
