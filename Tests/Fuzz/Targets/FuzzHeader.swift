import VaultCrypto
import VaultFormat

@testable import VaultStore

/// A copy of a header as the maker of a vault can write it, with its right checksum.
func fuzzHeader(_ bytes: UnsafeRawBufferPointer) {
    var copy = Header(
        spaces: 2, segmentBytes: Geometry.segmentBytesUsual,
        kdf: KDFParameters(memoryBytes: KDFLimits.memoryBytes.lowerBound, passes: 1)
    ).image()
    var input = Input(bytes)
    let isSealed = input.number(UInt8.self) & 1 == 0
    input.patch(&copy)
    if isSealed { seal(&copy) }
    guard let header = try? Header.read(image: copy) else { return }
    precondition((1...Geometry.spacesMax).contains(header.spaceCount))
    precondition(Geometry.isPlausible(segmentBytes: header.segmentBytes))
    precondition(KDFLimits.memoryBytes.contains(header.kdf.memoryBytes))
    _ = try? header.openKeySlots(SecretBytes(count: 32))
    var again = header
    again.setKeySlot(0, key: SecretBytes(count: 32), stretched: SecretBytes(count: 32))
    precondition((try? again.openKeySlots(SecretBytes(count: 32)))?.space == 0)
}

/// Puts right the checksum of the first copy.
private func seal(_ image: inout [UInt8]) {
    var sum = [UInt8](repeating: 0, count: HeaderLayout.checksumBytes)
    image.withUnsafeBytes { image in
        sum.withUnsafeMutableBytes { hash([image.slice(0, HeaderLayout.checksumOffset)], into: $0) }
    }
    image.replaceSubrange(
        HeaderLayout.checksumOffset..<HeaderLayout.checksumOffset + sum.count, with: sum)
}
