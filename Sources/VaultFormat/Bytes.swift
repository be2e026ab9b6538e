/// Little-endian numbers in raw memory: the format stores every number so. Offsets are in bytes. Layouts are fixed, so
/// access past the end is a programmer's error and traps.
extension UnsafeRawBufferPointer {
    @inlinable
    public func number<T: FixedWidthInteger>(_ offset: Int, as type: T.Type = T.self) -> T {
        unsafe T(littleEndian: loadUnaligned(fromByteOffset: offset, as: T.self))
    }

    /// The bytes `offset ..< offset + count`, rebased to start at 0.
    @inlinable
    public func slice(_ offset: Int, _ count: Int) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(rebasing: self[offset..<offset + count])
    }
}

extension UnsafeMutableRawBufferPointer {
    @inlinable
    public func setNumber<T: FixedWidthInteger>(_ value: T, _ offset: Int) {
        unsafe storeBytes(of: value.littleEndian, toByteOffset: offset, as: T.self)
    }

    @inlinable
    public func slice(_ offset: Int, _ count: Int) -> UnsafeMutableRawBufferPointer {
        unsafe UnsafeMutableRawBufferPointer(rebasing: self[offset..<offset + count])
    }

    @inlinable
    public func zero() {
        if let baseAddress, count > 0 {
            unsafe baseAddress.initializeMemory(as: UInt8.self, repeating: 0, count: count)
        }
    }
}
