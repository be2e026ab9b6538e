import LinuxIO

/// What an inode is that no table has: all of them directories and pictures below `.thumbs` and `.sh_thumbnails`.
enum VirtualNode: Hashable, Sendable {
    /// `.thumbs` of a directory or a directory in it.
    case folder(ThumbnailFolder)
    /// The picture of a photo, or of a copy that stands for one.
    case picture(of: UInt64, ThumbnailKind)
    /// Without the files that some callers may not read: who may read others is shown another inode, so that the
    /// kernel's pages are never those of another caller's picture.
    case composition(directory: UInt64, Composition, hidden: [UInt64])
    /// `.sh_thumbnails` of a directory.
    case repository(directory: UInt64)
    /// `.sh_thumbnails/normal` and its like.
    case sizeDirectory(directory: UInt64, RepositorySize)
    /// The PNG there of the photo with that name in the directory.
    case shared(directory: UInt64, name: [UInt8], RepositorySize)

    /// `.thumbs` of a directory.
    static func thumbs(of directory: UInt64) -> VirtualNode {
        .folder(ThumbnailFolder(directory: directory, kind: nil, isMirror: directory == WellKnownInode.root))
    }

    var isDirectory: Bool {
        switch self {
        case .folder, .repository, .sizeDirectory: true
        case .picture, .composition, .shared: false
        }
    }

    /// The directory that it shows, or shows something of; nil for a photo's picture, which is the same in all.
    var directory: UInt64? {
        switch self {
        case .folder(let folder): folder.directory
        case .picture: nil
        case .composition(let directory, _, _), .repository(let directory), .sizeDirectory(let directory, _),
            .shared(let directory, _, _):
            directory
        }
    }
}

/// A directory of thumbnails.
struct ThumbnailFolder: Hashable, Sendable {
    /// Whose photos it shows.
    var directory: UInt64
    /// Nil for `.thumbs` itself, which has the standard pictures and directories for the others.
    var kind: ThumbnailKind?
    /// Whether it belongs to the root's `.thumbs`, and so shows directories as well.
    var isMirror: Bool
}

/// Numbers of inodes that no table has.
///
/// `.thumbs` of a directory and the standard picture of a photo, which are by far the most, have numbers that
/// tell them. All others are counted, and known for as long as the kernel knows them.
enum VirtualInode {
    private static let directoryBit: UInt64 = 1 << 62
    private static let pictureBit: UInt64 = 1 << 63
    private static let bits = directoryBit | pictureBit

    static func isVirtual(_ ino: UInt64) -> Bool { ino & bits != 0 }

    /// The number that tells a node; nil where it must be counted.
    static func number(telling node: VirtualNode) -> UInt64? {
        switch node {
        case .picture(let file, .standard): file | pictureBit
        case .folder(let folder) where node == .thumbs(of: folder.directory): folder.directory | directoryBit
        default: nil
        }
    }

    /// The node that a number tells; nil where it was counted.
    static func node(told ino: UInt64) -> VirtualNode? {
        switch ino & bits {
        case pictureBit: .picture(of: ino & ~bits, .standard)
        case directoryBit: .thumbs(of: ino & ~bits)
        default: nil
        }
    }

    static func counted(_ count: UInt64) -> UInt64 { bits | count }
}

/// The counted virtual inodes that the kernel knows. Numbers do not recur.
final class VirtualNodes: @unchecked Sendable {
    private let lock = Lock()
    // All under `lock`.
    private var numbers: [VirtualNode: UInt64] = [:]
    private var nodes: [UInt64: (node: VirtualNode, lookups: UInt64)] = [:]
    private var count: UInt64 = 0

    /// The number to answer a lookup with. The kernel gives each such answer back by FORGET.
    func noteLookup(of node: VirtualNode) -> UInt64 {
        if let number = VirtualInode.number(telling: node) { return number }
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

    /// What a number that was given out means.
    func node(_ number: UInt64) throws(FileError) -> VirtualNode {
        if let node = VirtualInode.node(told: number) { return node }
        guard let node = lock.withLock({ nodes[number]?.node }) else { throw .stale }
        return node
    }

    /// FORGET: the kernel gives `count` lookups back.
    func forget(_ number: UInt64, count: UInt64) {
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

    /// How many are known.
    var knownCount: Int { lock.withLock { nodes.count } }
}
