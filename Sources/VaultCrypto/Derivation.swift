import CSodium
import VaultFormat

/// Parameters of Argon2id, as RFC 9106 names them: memory in bytes, passes over it, one lane.
public struct KDFParameters: Sendable, Hashable {
    public var memoryBytes: UInt64
    public var passes: UInt32

    public init(memoryBytes: UInt64, passes: UInt32) {
        self.memoryBytes = memoryBytes
        self.passes = passes
    }

    /// Values that a vault's header may name.
    public static let memoryBytesRange = KDFLimits.memoryBytes
    public static let passesRange = KDFLimits.passes

    /// 256 MiB and 3 passes: 0.6 s on the machines we measure on.
    public static let standard = KDFParameters(memoryBytes: 256 << 20, passes: 3)
}

/// Stretches a password with Argon2id to `count` bytes; nil if the memory cannot be allocated.
public func stretch(
    password: SecretBytes, salt: UnsafeRawBufferPointer, parameters: KDFParameters, count: Int
) -> SecretBytes? {
    precondition(salt.count == Int(crypto_pwhash_saltbytes()))
    let result = SecretBytes(count: count)
    let status = result.withUnsafeMutableBytes { out in
        password.withUnsafeBytes { password in
            crypto_pwhash(
                out.octets, UInt64(out.count),
                UnsafeRawPointer(password.octets).assumingMemoryBound(to: CChar.self), UInt64(password.count),
                salt.octets, UInt64(parameters.passes),
                Int(parameters.memoryBytes), crypto_pwhash_alg_argon2id13())
        }
    }
    return status == 0 ? result : nil
}

/// BLAKE2b of `parts`, concatenated, into `out` (16 to 64 bytes); keyed if `key` is given.
public func hash(
    _ parts: [UnsafeRawBufferPointer], key: SecretBytes? = nil, into out: UnsafeMutableRawBufferPointer
) {
    Sodium.prepare()
    withUnsafeTemporaryAllocation(byteCount: crypto_generichash_statebytes(), alignment: 64) { memory in
        guard let base = memory.baseAddress else { return }
        let state = OpaquePointer(base)
        crypto_generichash_init(state, key?.pointer, key?.count ?? 0, out.count)
        for part in parts { crypto_generichash_update(state, part.octets, UInt64(part.count)) }
        crypto_generichash_final(state, out.octets, out.count)
        wipe(memory)
    }
    if key != nil { sodium_stackzero(hashStackBytes) }
}

/// More stack than libsodium's BLAKE2b uses, which holds the key on the stack as its first block.
private let hashStackBytes = 4096

/// A key of `count` bytes for one purpose, derived from `key`: keyed BLAKE2b of the purpose's name.
public func deriveKey(_ key: SecretBytes, purpose: StaticString, count: Int = 32) -> SecretBytes {
    let result = SecretBytes(count: count)
    let name = UnsafeRawBufferPointer(start: purpose.utf8Start, count: purpose.utf8CodeUnitCount)
    result.withUnsafeMutableBytes { hash([name], key: key, into: $0) }
    return result
}

/// Fills memory with a keyed ChaCha20 stream: without the key indistinguishable from `fillRandom`, and an order of
/// magnitude faster. The key lives only as long as this object.
public final class RandomStream: @unchecked Sendable {
    private let key = SecretBytes.random(count: 32)
    private var block: UInt64 = 0

    public init() { Sodium.prepare() }

    /// Begins again with the first bytes.
    public func rewind() { block = 0 }

    /// Not thread-safe. `bytes.count` must be a multiple of 64.
    public func fill(_ bytes: UnsafeMutableRawBufferPointer) {
        precondition(bytes.count % 64 == 0)
        let base = bytes.octets
        bytes.baseAddress?.initializeMemory(as: UInt8.self, repeating: 0, count: bytes.count)
        let nonce = [UInt8](repeating: 0, count: 8)
        crypto_stream_chacha20_xor_ic(base, base, UInt64(bytes.count), nonce, block, key.pointer)
        block += UInt64(bytes.count / 64)
    }
}
