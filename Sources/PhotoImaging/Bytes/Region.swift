/// A part of a source with offsets of its own. Every block of metadata is passed on in this form.
struct Region {
    let reader: BoundedReader
    /// Where the region begins in the reader's source.
    let start: UInt64
    /// Its length in bytes; it ends inside the source.
    let count: UInt64

    init(_ reader: BoundedReader) {
        self.reader = reader
        start = 0
        count = reader.byteCount
    }

    private init(reader: BoundedReader, start: UInt64, count: UInt64) {
        self.reader = reader
        self.start = start
        self.count = count
    }

    /// A region of bytes in memory, unpacked from the file.
    init(unpacked bytes: [UInt8]) {
        let reader = BoundedReader(
            MemoryByteSource(bytes), headBytes: ReadLimits.viewBytesMax, isWholeFile: false)
        self.init(reader)
    }

    func contains(_ offset: UInt64, _ length: UInt64) -> Bool {
        offset <= count && length <= count - offset
    }

    /// The part of the `length` bytes at `offset` that lies inside.
    func clipped(_ offset: UInt64, _ length: UInt64) -> Region {
        let lower = min(offset, count)
        return Region(reader: reader, start: start + lower, count: min(length, count - lower))
    }

    /// Everything from `offset` on.
    func from(_ offset: UInt64) -> Region {
        clipped(offset, .max)
    }

    /// The `length` bytes at `offset`, or nil if they are not all inside.
    func inside(_ offset: UInt64, _ length: UInt64) -> Region? {
        contains(offset, length) ? clipped(offset, length) : nil
    }

    @inline(__always)
    private func load<T: FixedWidthInteger>(_ offset: UInt64, _ order: ByteOrder, as type: T.Type) -> T? {
        guard contains(offset, UInt64(MemoryLayout<T>.size)),
            let pointer = reader.locate(start + offset, MemoryLayout<T>.size)
        else { return nil }
        let value = pointer.loadUnaligned(as: T.self)
        return order == .big ? T(bigEndian: value) : T(littleEndian: value)
    }

    func u8(_ offset: UInt64) -> UInt8? { load(offset, .big, as: UInt8.self) }
    func u16(_ offset: UInt64, _ order: ByteOrder = .big) -> UInt16? { load(offset, order, as: UInt16.self) }
    func u32(_ offset: UInt64, _ order: ByteOrder = .big) -> UInt32? { load(offset, order, as: UInt32.self) }
    func u64(_ offset: UInt64, _ order: ByteOrder = .big) -> UInt64? { load(offset, order, as: UInt64.self) }

    /// Whether the bytes at `offset` are `text`.
    func matches(_ text: StaticString, at offset: UInt64 = 0) -> Bool {
        let length = text.utf8CodeUnitCount
        guard contains(offset, UInt64(length)), let pointer = reader.locate(start + offset, length) else {
            return false
        }
        return ByteView(pointer, count: length).matches(text, at: 0)
    }

    /// Lends up to `length` bytes at `offset`, clipped to the region and to ``ReadLimits/viewBytesMax``.
    func withView<R>(_ offset: UInt64 = 0, _ length: UInt64 = .max, _ body: (ByteView) -> R?) -> R? {
        guard offset <= count else { return nil }
        return reader.withView(start + offset, min(length, count - offset), body)
    }

    /// The same for a `body` without a result.
    func lend(_ offset: UInt64 = 0, _ length: UInt64 = .max, _ body: (ByteView) -> Void) {
        _ = withView(offset, length) { view -> Void? in body(view) }
    }
}

/// The four characters of `name` as a number, the form in which types of boxes and chunks are compared.
@inline(__always)
func fourCC(_ name: StaticString) -> UInt32 {
    precondition(name.utf8CodeUnitCount == 4)
    let bytes = name.utf8Start
    return UInt32(bytes[0]) << 24 | UInt32(bytes[1]) << 16 | UInt32(bytes[2]) << 8 | UInt32(bytes[3])
}
