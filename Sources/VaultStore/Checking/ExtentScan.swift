import LinuxIO
public import VaultFormat

/// An extent found by its own descriptor.
public struct FoundExtent: Sendable {
    public var descriptor: Descriptor
    /// Linear number of its first sector.
    public var sector: UInt64
}

/// Finds extents without a catalogue, by the descriptor at the start of each.
public struct ExtentScan: Sendable {
    private let disk: SpaceDisk
    private let codec: ExtentCodec
    private let buffers: BufferPool

    public init(of space: Space) {
        (disk, codec, buffers) = (space.parts.disk, space.parts.extentCodec, space.parts.buffers)
    }

    /// Checks every sector of a segment for an extent that begins there and opens as a whole, and continues behind it.
    /// Skips unreadable sectors. Thread-safe.
    ///
    /// - Parameter found: called with each extent and its plaintext; nil if only its descriptor opens.
    public func scan(segment: Int, _ found: (FoundExtent, UnsafeRawBufferPointer?) -> Void) {
        let window = buffers.take()
        let extent = buffers.take()
        defer {
            buffers.give(window)
            buffers.give(extent)
        }
        let perSegment = disk.sectorsPerSegment
        // A missing file has no sectors.
        let end = min(perSegment, (try? disk.writtenSectors(segment)) ?? 0)
        var loaded = 0..<0
        var index = 0
        while index < end {
            if !loaded.contains(index) { loaded = load(segment, index..<end, into: window) }
            var count = 1
            let head = sectors(index, in: loaded, of: window, 1)
            if let descriptor = descriptorUnlessEmpty(head) {
                let taken = Geometry.sectors(forPlaintext: Int(descriptor.length))
                if index + taken > loaded.upperBound, loaded.lowerBound < index {
                    loaded = load(segment, index..<end, into: window)
                }
                let place = FoundExtent(
                    descriptor: descriptor, sector: UInt64(segment * perSegment + index))
                if index + taken <= loaded.upperBound,
                    let plain = open(
                        descriptor, sectors(index, in: loaded, of: window, taken), copyingInto: extent)
                {
                    found(place, plain)
                    count = taken
                } else {
                    found(place, nil)
                }
            }
            index += count
        }
    }

    /// Opens an extent in a copy, because the scan reads the sectors again if it does not open.
    private func open(
        _ descriptor: Descriptor, _ sectors: UnsafeRawBufferPointer,
        copyingInto extent: UnsafeMutableRawBufferPointer
    ) -> UnsafeRawBufferPointer? {
        extent.copyMemory(from: sectors)
        let whole = extent.slice(0, Int(descriptor.length) + Geometry.extentOverheadBytes)
        guard codec.open(descriptor, whole) else { return nil }
        return UnsafeRawBufferPointer(whole.slice(Geometry.extentHeaderBytes, Int(descriptor.length)))
    }

    private func sectors(
        _ index: Int, in loaded: Range<Int>, of window: UnsafeMutableRawBufferPointer, _ count: Int
    ) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            window.slice((index - loaded.lowerBound) * Geometry.sectorBytes, count * Geometry.sectorBytes))
    }

    /// Opens a descriptor; nil also for sectors that were never written: no nonce is all zeros.
    private func descriptorUnlessEmpty(_ head: UnsafeRawBufferPointer) -> Descriptor? {
        if head.number(0, as: UInt64.self) == 0, head.number(8, as: UInt64.self) == 0 { return nil }
        return codec.openDescriptor(head)
    }

    /// Reads as many sectors of a range as fit into the window; unreadable ones become zeros.
    private func load(
        _ segment: Int, _ range: Range<Int>, into window: UnsafeMutableRawBufferPointer
    ) -> Range<Int> {
        let count = min(range.count, window.count / Geometry.sectorBytes)
        let first = UInt64(segment * disk.sectorsPerSegment + range.lowerBound)
        let bytes = window.slice(0, count * Geometry.sectorBytes)
        do throws(StoreError) { try disk.read(first, into: bytes) } catch {
            for step in stride(from: 0, to: count, by: Geometry.sectorsPerPage) {
                let length = min(Geometry.sectorsPerPage, count - step)
                let part = bytes.slice(step * Geometry.sectorBytes, length * Geometry.sectorBytes)
                do throws(StoreError) { try disk.read(first + UInt64(step), into: part) } catch {
                    part.zero()
                }
            }
        }
        return range.lowerBound..<range.lowerBound + count
    }
}
