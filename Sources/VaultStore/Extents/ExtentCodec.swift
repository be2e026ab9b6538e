import LinuxIO
import VaultCrypto
import VaultFormat

/// Seals and opens extents and their descriptors.
struct ExtentCodec: Sendable {
    private let content: SealingKey
    private let descriptor: SealingKey

    init(_ keys: SpaceKeys) { (content, descriptor) = (keys.content, keys.descriptor) }

    /// Fills one extent: nonce, sealed descriptor, sealed payload, and random bytes to the end of its last sector.
    func seal(
        _ meant: Descriptor, _ plain: UnsafeRawBufferPointer, into extent: UnsafeMutableRawBufferPointer
    ) {
        let nonce = extent.slice(0, Geometry.nonceBytes)
        fillRandom(nonce)
        sealDescriptor(meant, into: extent)
        withUnsafeTemporaryAllocation(byteCount: Descriptor.associatedBytes, alignment: 8) { associated in
            meant.encodeAssociatedData(into: associated)
            let payload = extent.slice(Geometry.extentHeaderBytes, plain.count)
            let tagOffset = Geometry.extentHeaderBytes + plain.count
            content.seal(
                plain, into: payload, tag: extent.slice(tagOffset, Geometry.tagBytes),
                nonce: UnsafeRawBufferPointer(nonce), associated: UnsafeRawBufferPointer(associated))
            let end = tagOffset + Geometry.tagBytes
            fillRandom(extent.slice(end, extent.count - end))
        }
    }

    /// Seals a descriptor into the beginning of an extent, under the nonce already there.
    func sealDescriptor(_ meant: Descriptor, into extent: UnsafeMutableRawBufferPointer) {
        withUnsafeTemporaryAllocation(byteCount: Descriptor.associatedBytes, alignment: 8) { associated in
            meant.encodeAssociatedData(into: associated)
            descriptor.seal(
                UnsafeRawBufferPointer(associated.slice(2, Geometry.descriptorBytes)),
                into: extent.slice(Geometry.nonceBytes, Geometry.descriptorBytes),
                tag: extent.slice(Geometry.nonceBytes + Geometry.descriptorBytes, Geometry.tagBytes),
                nonce: UnsafeRawBufferPointer(extent.slice(0, Geometry.nonceBytes)),
                associated: UnsafeRawBufferPointer(associated.slice(0, 2)))
        }
    }

    /// Opens an extent's payload in place.
    func open(_ meant: Descriptor, _ extent: UnsafeMutableRawBufferPointer) -> Bool {
        open(
            meant, UnsafeRawBufferPointer(extent),
            into: extent.slice(Geometry.extentHeaderBytes, extent.count - Geometry.extentOverheadBytes))
    }

    /// Opens an extent's payload into `target`, which does not overlap it, or is it.
    func open(
        _ meant: Descriptor, _ extent: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
    ) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Descriptor.associatedBytes, alignment: 8) { associated in
            meant.encodeAssociatedData(into: associated)
            return content.open(
                extent.slice(Geometry.extentHeaderBytes, extent.count - Geometry.extentOverheadBytes),
                into: target, tag: extent.slice(extent.count - Geometry.tagBytes, Geometry.tagBytes),
                nonce: extent.slice(0, Geometry.nonceBytes), associated: UnsafeRawBufferPointer(associated))
        }
    }

    /// Opens an extent's descriptor from its first 80 bytes; nil if it does not belong to this space.
    func openDescriptor(_ extent: UnsafeRawBufferPointer) -> Descriptor? {
        withUnsafeTemporaryAllocation(byteCount: Geometry.descriptorBytes + 2, alignment: 8) { plain in
            plain.setNumber(formatVersion, 0)
            let bytes = plain.slice(2, Geometry.descriptorBytes)
            let tagOffset = Geometry.nonceBytes + Geometry.descriptorBytes
            guard
                descriptor.open(
                    extent.slice(Geometry.nonceBytes, Geometry.descriptorBytes), into: bytes,
                    tag: extent.slice(tagOffset, Geometry.tagBytes),
                    nonce: extent.slice(0, Geometry.nonceBytes),
                    associated: UnsafeRawBufferPointer(plain.slice(0, 2)))
            else { return nil }
            return Descriptor(decoding: UnsafeRawBufferPointer(bytes))
        }
    }
}

extension Descriptor {
    /// The descriptor of a run's chunk. The extents of a snapshot are those of its source.
    init(_ role: ExtentRole, _ content: UInt64, _ run: ExtentRun, _ chunk: Int) {
        self.init(
            role: role, content: role == .content ? SnapshotID.source(content) : content,
            offset: run.offset + UInt64(chunk * Geometry.chunkBytes),
            length: UInt32(run.plainBytes(ofChunk: chunk)), generation: run.generation, epoch: run.epoch)
    }
}
