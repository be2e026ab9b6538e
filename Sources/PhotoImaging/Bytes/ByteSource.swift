/// Where a picture's bytes come from: an open photo, a file, or memory.
///
/// The readers ask for little (see ``ReadLimits``) and check all they are given, so that a source may be
/// hostile in content but is trusted to keep to this contract.
public protocol ByteSource {
    /// The length in bytes. It is asked for once, when reading begins.
    var byteCount: UInt64 { get }

    /// Copies bytes from `offset` on into `buffer` and returns how many: fewer than `buffer.count` only at
    /// the end, -1 on an I/O error. Past the end it returns 0.
    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int

    /// The first bytes from `offset` on that may be other than zeros; nil: all that follow are zeros. What lies before
    /// them is a hole, and need not be read.
    func storedRange(from offset: UInt64) -> Range<UInt64>?
}

extension ByteSource {
    /// Of a source that knows of no holes: all that follows.
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
