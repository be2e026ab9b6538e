package import FileRequests
import LinuxIO

/// The meaning of a virtual inode, which no table has: a directory or a picture below `.thumbs` and `.sh_thumbnails`.
package enum VirtualNode: Hashable, Sendable {
    /// `.thumbs` of a directory or a directory in it.
    case folder(ThumbnailFolder)
    /// The picture of a photo, or of a copy that stands for one.
    case picture(of: UInt64, ThumbnailKind, PictureVersion)
    /// A pile or contact sheet that leaves out the files `hidden`, which the caller may not read. Callers
    /// with other rights get another inode, so that the kernel's page cache never shows them this caller's
    /// picture.
    case composition(directory: UInt64, Composition, hidden: [UInt64], PictureVersion)
    /// `.sh_thumbnails` of a directory.
    case repository(directory: UInt64)
    /// `normal`, `large` and so on in `.sh_thumbnails`.
    case sizeDirectory(directory: UInt64, RepositorySize)
    /// The PNG in it of the photo with that name in the directory.
    case shared(directory: UInt64, name: [UInt8], RepositorySize, PictureVersion)

    /// `.thumbs` of a directory.
    package static func thumbs(of directory: UInt64) -> VirtualNode {
        .folder(ThumbnailFolder(directory: directory, kind: nil, isMirror: directory == WellKnownInode.root))
    }

    package var isDirectory: Bool {
        switch self {
        case .folder, .repository, .sizeDirectory: true
        case .picture, .composition, .shared: false
        }
    }

    /// The real directory whose photos it shows; nil for a photo's picture, which is the same in all directories.
    package var directory: UInt64? {
        switch self {
        case .folder(let folder): folder.directory
        case .picture: nil
        case .composition(let directory, _, _, _), .repository(let directory),
            .sizeDirectory(let directory, _), .shared(let directory, _, _, _):
            directory
        }
    }
}

/// Distinguishes the pictures that a photo or a directory has had, one after another.
///
/// Each is an inode of its own. A program that has the former one open reads that to its end, and one that opens the
/// name after a change gets no page or size of the former one, which the kernel keeps by inode.
package struct PictureVersion: Hashable, Sendable {
    fileprivate static let bitCount: UInt64 = 20
    fileprivate static let mask: UInt64 = 1 << bitCount - 1

    let number: UInt64

    fileprivate init(number: UInt64) { self.number = number }

    /// - Parameter parts: another list after each change.
    package init(of parts: [UInt64]) {
        // FNV-1a by words; the highest bits depend on all others.
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for part in parts { hash = (hash ^ part) &* 0x0000_0100_0000_01B3 &* 0x9E37_79B9_7F4A_7C15 }
        number = hash >> (64 - Self.bitCount)
    }
}

/// A directory of thumbnails.
package struct ThumbnailFolder: Hashable, Sendable {
    /// The real directory whose photos it shows.
    package var directory: UInt64
    /// Nil for `.thumbs` itself, which has the standard pictures, and directories for the other kinds.
    package var kind: ThumbnailKind?
    /// Whether it belongs to the root's `.thumbs`, and so shows directories as well.
    package var isMirror: Bool

    package init(directory: UInt64, kind: ThumbnailKind? = nil, isMirror: Bool) {
        self.directory = directory
        self.kind = kind
        self.isMirror = isMirror
    }
}

/// Numbers of virtual inodes.
///
/// The numbers of `.thumbs` of a directory and of the standard picture of a photo, which are by far the most, encode
/// their node (a picture's only if its photo has a number below 2^40). All others are counted, and known until the
/// kernel forgets them.
package enum VirtualInode {
    private static let directoryBit: UInt64 = 1 << 62
    private static let pictureBit: UInt64 = 1 << 63
    private static let bits = directoryBit | pictureBit
    /// Of a picture: below them is the file's number, and between both the version's.
    private static let fileBitCount: UInt64 = 40
    private static let fileMask: UInt64 = 1 << fileBitCount - 1

    /// The number that encodes a node; nil if its number is counted.
    package static func number(encoding node: VirtualNode) -> UInt64? {
        switch node {
        case .picture(let file, .standard, let version) where file <= fileMask:
            file | version.number << fileBitCount | pictureBit
        case .folder(let folder) where node == .thumbs(of: folder.directory): folder.directory | directoryBit
        default: nil
        }
    }

    /// The node that a number encodes; nil for a counted number.
    package static func node(decoding ino: UInt64) -> VirtualNode? {
        switch ino & bits {
        case pictureBit:
            .picture(
                of: ino & fileMask, .standard,
                PictureVersion(number: ino >> fileBitCount & PictureVersion.mask))
        case directoryBit: .thumbs(of: ino & ~bits)
        default: nil
        }
    }

    package static func counted(_ count: UInt64) -> UInt64 { bits | count }
}

/// The counted virtual inodes that the kernel holds. Numbers are never reused.
package final class VirtualNodes: @unchecked Sendable {
    private let lock = Lock()
    // All under `lock`.
    private var numbers: [VirtualNode: UInt64] = [:]
    private var nodes: [UInt64: (node: VirtualNode, lookups: UInt64)] = [:]
    private var count: UInt64 = 0

    /// Returns the inode number for the reply to a lookup. The kernel returns each such reference with FORGET.
    package func noteLookup(of node: VirtualNode) -> UInt64 {
        if let number = VirtualInode.number(encoding: node) { return number }
        return lock.withLock {
            if let number = numbers[node] {
                nodes[number]?.lookups += 1
                return number
            }
            count += 1
            let number = VirtualInode.counted(count)
            numbers[node] = number
            nodes[number] = (node, 1)
            return number
        }
    }

    /// Returns the node of a number; throws `.stale` if the number is not known any more.
    package func node(_ number: UInt64) throws(FileError) -> VirtualNode {
        if let node = VirtualInode.node(decoding: number) { return node }
        guard let node = lock.withLock({ nodes[number]?.node }) else { throw .stale }
        return node
    }

    /// FORGET: the kernel returns `count` lookups.
    package func forget(_ number: UInt64, count: UInt64) {
        lock.withLock {
            guard let known = nodes[number] else { return }
            if known.lookups > count {
                nodes[number]?.lookups -= count
            } else {
                nodes[number] = nil
                numbers[known.node] = nil
            }
        }
    }

    /// The number of counted nodes.
    package var knownCount: Int { lock.withLock { nodes.count } }
}
