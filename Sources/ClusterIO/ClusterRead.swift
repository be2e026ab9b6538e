extension ClusterPool {
    /// A part of an object, and where its bytes go.
    package struct Read {
        package var object: String
        package var offset: UInt64
        package var bytes: UnsafeMutableRawBufferPointer

        package init(_ object: String, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) {
            (self.object, self.offset, self.bytes) = (object, offset, bytes)
        }

        var range: Range<UInt64> { offset..<offset + UInt64(bytes.count) }

        /// The read of a part of this range.
        func part(_ range: Range<UInt64>) -> Read {
            let start = Int(range.lowerBound - offset)
            return Read(
                object, at: range.lowerBound,
                into: UnsafeMutableRawBufferPointer(rebasing: bytes[start..<start + range.count]))
        }

        /// Zeroes the bytes that an object lacks: it is shorter, or there is none.
        ///
        /// - Parameter count: as `ClusterPool.read` returns it.
        package func fillHole(after count: Int?) {
            UnsafeMutableRawBufferPointer(rebasing: bytes[(count ?? 0)...]).initializeMemory(
                as: UInt8.self, repeating: 0)
        }
    }
}
