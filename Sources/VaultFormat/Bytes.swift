/// Little-endian numbers in raw memory: every number of the format is stored so. Offsets are bytes; reading or
/// writing past the end is a programmer's error and traps, as the layouts are fixed.
extension UnsafeRawBufferPointer {
    @inlinable
    public func number<T: FixedWidthInteger>(_ offset: Int, as type: T.Type = T.self) -> T {
        T(littleEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// The bytes `offset ..< offset + count` as a buffer of their own.
    @inlinable
    public func slice(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(rebasing: self[offset..<offset + count])
    }
}

extension UnsafeMutableRawBufferPointer {
    @inlinable
    public func setNumber<T: FixedWidthInteger>(_ value: T, _ offset: Int) {
        storeBytes(of: value.littleEndian, toByteOffset: offset, as: T.self)
    }

    @inlinable
    public func slice(_ offset: Int, _ count: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(rebasing: self[offset..<offset + count])
    }

    @inlinable
    public func zero() {
        if let baseAddress, count > 0 {
            baseAddress.initializeMemory(as: UInt8.self, repeating: 0, count: count)
        }
    }
}
