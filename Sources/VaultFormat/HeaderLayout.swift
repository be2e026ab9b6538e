/// Byte layout of `obscura.vault`: two equal copies of 4096 bytes. See the format specification, *Header*.
public enum HeaderLayout {
    public static let magic: [UInt8] = [0x4F, 0x42, 0x53, 0x43, 0x55, 0x52, 0x41, 0x0A]  // "OBSCURA\n"
    public static let copyBytes = 4096
    public static let copyOffsets: [UInt64] = [0, 65_536]
    public static let fileBytes: UInt64 = 131_072

    public static let versionOffset = 8
    public static let spaceCountOffset = 10
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
    /// Space key (32), space number (1), zeros (23).
    public static let keySlotPlainBytes = 56
    public static let keySlotTagOffset = keySlotSealedOffset + keySlotPlainBytes

    public static func keySlotOffset(_ index: Int) -> Int { keySlotsOffset + index * keySlotBytes }
}

/// Bounds of the cost that a header may impose on the machine: a header cannot be authenticated before the password is
/// stretched. Including the program's own memory a password costs less than 512 MB and, on our machine, 20 s.
public enum KDFLimits {
    public static let memoryBytes: ClosedRange<UInt64> = 8 << 20...448 << 20
    public static let passes: ClosedRange<UInt32> = 1...64
}
