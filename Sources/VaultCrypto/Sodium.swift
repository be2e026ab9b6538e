import CSodium

/// Initializes libsodium before its first use: `sodium_malloc` before `sodium_init` aborts the process.
enum Sodium {
    private static let isReady: Bool = sodium_init() >= 0

    @inline(__always)
    static func prepare() {
        // Without a working random source nothing in this program is safe.
        precondition(isReady, "libsodium cannot start")
    }
}

/// Fills `bytes` from the kernel's random generator.
public func fillRandom(_ bytes: UnsafeMutableRawBufferPointer) {
    Sodium.prepare()
    if let base = bytes.baseAddress, bytes.count > 0 { randombytes_buf(base, bytes.count) }
}

/// A random 64-bit number.
public func randomNumber() -> UInt64 {
    var number: UInt64 = 0
    withUnsafeMutableBytes(of: &number) { fillRandom($0) }
    return number
}

/// A random number in 0 ..< bound, without bias.
public func randomNumber(below bound: UInt32) -> UInt32 {
    Sodium.prepare()
    return randombytes_uniform(bound)
}

/// Overwrites `bytes` with zeros in a way that the compiler cannot optimize away.
public func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    if let base = bytes.baseAddress { sodium_memzero(base, bytes.count) }
}

/// Compares in a time that does not depend on where the bytes differ. Lengths are public.
public func constantTimeEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    guard a.count == b.count else { return false }
    guard a.count > 0, let first = a.baseAddress, let second = b.baseAddress else { return true }
    return sodium_memcmp(first, second, a.count) == 0
}

extension UnsafeRawBufferPointer {
    /// The first byte's address, typed as libsodium expects it; for an empty buffer an arbitrary address, which is
    /// never read.
    @inline(__always)
    var octets: UnsafePointer<UInt8> {
        (baseAddress ?? UnsafeRawPointer(bitPattern: 16).unsafelyUnwrapped).assumingMemoryBound(
            to: UInt8.self)
    }
}

extension UnsafeMutableRawBufferPointer {
    @inline(__always)
    var octets: UnsafeMutablePointer<UInt8> {
        (baseAddress ?? UnsafeMutableRawPointer(bitPattern: 16).unsafelyUnwrapped)
            .assumingMemoryBound(to: UInt8.self)
    }
}
