import CSodium

/// Bytes in locked, guarded, undumpable memory (`sodium_malloc`), wiped when the last reference is released.
///
/// Unchecked Sendable: the memory is written only between creation and sharing, or by one owner under its lock.
public final class SecretBytes: @unchecked Sendable, Equatable {
    private let memory: UnsafeMutableRawBufferPointer

    /// `count` zero bytes.
    public init(count: Int) {
        precondition(count >= 0)
        Sodium.prepare()
        guard let base = sodium_malloc(count) else {
            preconditionFailure("no memory can be locked for a key")
        }
        memory = UnsafeMutableRawBufferPointer(start: base, count: count)
        sodium_memzero(base, count)
    }

    /// A copy. The caller wipes the original.
    public convenience init(copying bytes: UnsafeRawBufferPointer) {
        self.init(count: bytes.count)
        memory.copyMemory(from: bytes)
    }

    /// `count` random bytes.
    public static func random(count: Int) -> SecretBytes {
        let secret = SecretBytes(count: count)
        fillRandom(secret.memory)
        return secret
    }

    deinit { sodium_free(memory.baseAddress) }

    public var count: Int { memory.count }

    public func withUnsafeBytes<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        try body(UnsafeRawBufferPointer(memory))
    }

    public func withUnsafeMutableBytes<R, E: Error>(
        _ body: (UnsafeMutableRawBufferPointer) throws(E) -> R
    ) throws(E) -> R {
        try body(memory)
    }

    /// Compares in constant time for equal lengths.
    public static func == (a: SecretBytes, b: SecretBytes) -> Bool {
        constantTimeEqual(UnsafeRawBufferPointer(a.memory), UnsafeRawBufferPointer(b.memory))
    }

    /// The key's address, valid while this object lives.
    @inline(__always)
    var pointer: UnsafePointer<UInt8> {
        UnsafePointer(memory.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self))
    }
}
