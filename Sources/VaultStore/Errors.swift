public import LinuxIO

/// What can go wrong with a vault as a whole. Exit codes are the command's.
public enum VaultError: Error, Sendable, Equatable {
    /// No such vault, or not one: the path.
    case notAVault(String)
    /// A format version this program does not know.
    case unsupportedVersion(Int)
    /// Both copies of the header fail their checksum.
    case headerDamaged
    /// Wrong password, unused space, damaged slot: nothing tells them apart.
    case noSpaceOpens
    /// Another process has the vault open.
    case inUse
    /// Another computer has the space open for writing, or had and did not close it.
    case claimed
    /// A new password that already opens a space.
    case passwordTaken
    /// Every space opens with one of the given passwords.
    case noUnusedSpace
    /// Another space was asked for in a vault that has one.
    case singleSpace
    /// A header that is put back is not this vault's: why, in words without a secret.
    case foreignHeader(String)
    /// This machine cannot give the memory, in bytes, that stretching a password takes.
    case kdfMemory(UInt64)
    case noRoom
    /// The file system takes no file of the size of all spaces: FAT, of more than 4 GiB.
    case fileTooLarge
    /// `create` into a directory that has something in it: the path.
    case notEmpty(String)
    /// A copy that a backup has begun and not finished.
    case unfinishedCopy
    /// The destination of a backup is a vault of its own.
    case otherVault
    /// What is damaged, in words without a secret.
    case damaged(String)
    /// Why a size cannot be.
    case invalidSize(String)
    /// The space, or the vault, cannot be written: why.
    case notWritable(WriteStop)
    /// Whoever asked for it wants it no more: what `progress` throws to end a long piece of work.
    case interrupted
    /// A failed system call and what was being done, in words without a photo's name.
    case system(Errno, String)
}

/// What can go wrong inside an open space.
public enum StoreError: Error, Sendable, Equatable {
    /// The space, or the disk under it, is full.
    case noRoom
    /// Bytes that do not open with the key.
    case damaged
    case io(Errno)
    case readOnly
    /// A segment that is to be written has no file, or another has its name: its number.
    case segmentMissing(Int)
    /// The file of a segment that is to be written ends too early: its number.
    case segmentShort(Int)

    init(_ error: Errno) { self = error.meansNoRoom ? .noRoom : .io(error) }
}
