public import LinuxIO
public import VaultFormat

/// Errors of a vault as a whole. The command maps them to exit codes.
public enum VaultError: Error, Sendable, Equatable {
    /// There is no vault at this path.
    case notAVault(String)
    /// Made by a later release, which is needed.
    case newer(NewerVersion)
    /// Both copies of the header fail their checksum.
    case headerDamaged
    /// Wrong password, unused space or damaged slot: they are indistinguishable.
    case noSpaceOpens
    /// Another process has the vault open.
    case inUse
    /// A mount has the vault, as it says itself: its computer, and since when.
    case heldBy(String)
    /// Another computer has the space open for writing, or did not close it.
    case claimed
    /// The new password already opens a space.
    case passwordTaken
    /// Every space opens with one of the given passwords.
    case noUnusedSpace
    /// Another space was requested in a vault of one space.
    case singleSpace
    /// The header to restore is not this vault's: the reason, without secrets.
    case foreignHeader(String)
    /// This machine lacks the memory, in bytes, for stretching a password.
    case kdfMemory(UInt64)
    case noRoom
    /// The file of all spaces is too large for the host file system: FAT ends at 4 GiB.
    case fileTooLarge
    /// The directory for `create` or a backup is not empty: the path.
    case notEmpty(String)
    /// The vault is a copy whose first backup was interrupted.
    case unfinishedCopy
    /// Files cannot be changed in place there.
    case unsuitableHost
    /// The destination of a backup is another vault.
    case otherVault
    /// The damaged part, described without secrets.
    case damaged(String)
    /// The size is invalid: the reason.
    case invalidSize(String)
    /// The space or the vault cannot be written: the reason.
    case notWritable(WriteStop)
    /// Cancelled: `progress` throws this to end a long operation.
    case interrupted
    /// A failed system call and the operation, described without a photo's name.
    case system(Errno, String)
}

/// Errors of an open space.
public enum StoreError: Error, Sendable, Equatable {
    /// The space, or the disk under it, is full.
    case noRoom
    /// Bytes are missing, cannot be authenticated, or contradict each other.
    case damaged
    case io(Errno)
    case readOnly
    /// Made by a later release, which is needed.
    case newer(NewerVersion)
    /// A segment has no file, or another file has its name: its number.
    case segmentMissing(Int)
    /// The file of a segment is too short: its number.
    case segmentShort(Int)

    init(_ error: Errno) { self = error.meansNoRoom ? .noRoom : .io(error) }

    init(_ fault: SegmentFault) {
        switch fault {
        case .missing(let number): self = .segmentMissing(number)
        case .short(let number): self = .segmentShort(number)
        }
    }
}
