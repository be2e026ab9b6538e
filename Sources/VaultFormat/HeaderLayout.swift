/// Byte layout of `obscura.vault`: two equal copies of 4096 bytes. See the format specification, *Header*.
public enum HeaderLayout {
    public static let magic: [UInt8] = [0x4F, 0x42, 0x53, 0x43, 0x55, 0x52, 0x41, 0x0A]  // "OBSCURA\n"
    public static let copyBytes = 4096
    public static let copyOffsets: [UInt64] = [0, 65_536]
    public static let fileBytes: UInt64 = 131_072

    public static let versionOffset = 8
    public static let spaceCountOffset = 10
    /// The release that is needed, in a header of a later version; zeros in version 1.
    public static let releaseOffset = 12
    public static let segmentBytesOffset = 16
    public static let kdfMemoryOffset = 24
    public static let kdfPassesOffset = 32
    public static let saltOffset = 40
    public static let saltBytes = 16
    /// Bytes before the key slots. They are part of every key slot's associated data.
    public static let clearBytes = 64
    public static let keySlotsOffset = clearBytes
    public static let checksumOffset = copyBytes - checksumBytes
    public static let checksumBytes = 32

    // A key slot.
    public static let keySlotBytes = 128
    public static let keySlotNonceOffset = 0
    public static let keySlotCommitmentOffset = 24
    public static let keySlotCommitmentBytes = 32
    public static let keySlotSealedOffset = 56
    /// Space key (32), space number (1), version of the slot less 1 (1), zeros (2), the release that is needed (4),
    /// zeros (16).
    public static let keySlotPlainBytes = 56
    public static let keySlotVersionOffset = 33
    public static let keySlotReleaseOffset = 36
    public static let keySlotTagOffset = keySlotSealedOffset + keySlotPlainBytes

    public static func keySlotOffset(_ index: Int) -> Int { keySlotsOffset + index * keySlotBytes }

    // A credential slot: room for the credential id of a hardware key, behind the key slots. Random so far.
    /// A nonce, a tag, and an id of the longest kind (FIDO2: 1023 bytes) with what belongs to it.
    public static let credentialSlotBytesMax = 1152

    /// Bytes of each credential slot; with eight spaces 368, which the ids of common keys need a third of.
    public static func credentialSlotBytes(spaces: Int) -> Int {
        min(credentialSlotBytesMax, (checksumOffset - keySlotOffset(spaces)) / spaces / 16 * 16)
    }

    public static func credentialSlotOffset(_ index: Int, spaces: Int) -> Int {
        keySlotOffset(spaces) + index * credentialSlotBytes(spaces: spaces)
    }
}

/// Bounds of the cost that a header may impose on the machine: a header cannot be authenticated before the password is
/// stretched. Including the program's own memory a password costs less than 512 MB and, on our machine, 20 s.
public enum KDFLimits {
    public static let memoryBytes: ClosedRange<UInt64> = 8 << 20...448 << 20
    public static let passes: ClosedRange<UInt32> = 1...64
}
