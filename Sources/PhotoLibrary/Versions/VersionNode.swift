/// A virtual directory of versions, whose inode number encodes it.
package enum VersionNode: Equatable, Sendable {
    /// `.versions` beside the photos of a directory.
    case beside(UInt64)
    /// The directory of the versions of a file.
    case of(UInt64)

    /// Below the bits of `VirtualInode`, and above the numbers of real inodes.
    private static let besideBit: UInt64 = 1 << 61
    private static let fileBit: UInt64 = 1 << 60

    package init?(_ number: UInt64) {
        let ino = number & ~(Self.besideBit | Self.fileBit)
        switch number >> 60 {
        case Self.besideBit >> 60: self = .beside(ino)
        case Self.fileBit >> 60: self = .of(ino)
        default: return nil
        }
    }

    package var number: UInt64 {
        switch self {
        case .beside(let ino): ino | Self.besideBit
        case .of(let ino): ino | Self.fileBit
        }
    }
}
