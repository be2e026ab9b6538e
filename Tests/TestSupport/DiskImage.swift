import Foundation

/// 4096 bytes of a file in memory. Nobody changes them once they are part of an image: images share them.
public final class DiskPage: @unchecked Sendable {
    public static let bytes = 4096
    public static let sectorBytes = 512
    static let sectors = bytes / sectorBytes

    let memory = UnsafeMutableRawPointer.allocate(byteCount: DiskPage.bytes, alignment: 16)

    /// A copy of another page, or zeros.
    init(copying other: DiskPage?) {
        if let other {
            memcpy(memory, other.memory, Self.bytes)
        } else {
            memset(memory, 0, Self.bytes)
        }
    }

    deinit { memory.deallocate() }

    /// Whether some sectors of both are the same, byte for byte; nil stands for zeros.
    public func equals(_ other: DiskPage?, in sectors: Range<Int>) -> Bool {
        if other === self { return true }
        let offset = sectors.lowerBound * Self.sectorBytes
        guard let other else { return isZero(offset, sectors.count * Self.sectorBytes) }
        return memcmp(memory + offset, other.memory + offset, sectors.count * Self.sectorBytes) == 0
    }

    private func isZero(_ offset: Int, _ count: Int) -> Bool {
        UnsafeRawBufferPointer(start: memory + offset, count: count).allSatisfy { $0 == 0 }
    }
}

/// The sectors of one page that one write changed.
public struct WrittenPage: Sendable {
    /// The offsets of the sectors that it changes, and their new bytes.
    public var change: (offset: UInt64, bytes: [UInt8]) {
        let first = sectors.lowerBound * DiskPage.sectorBytes
        let part = UnsafeRawBufferPointer(
            start: content.memory + first, count: sectors.count * DiskPage.sectorBytes)
        return (UInt64(index * DiskPage.bytes + first), Array(part))
    }

    var index: Int
    var content: DiskPage
    var sectors: Range<Int>

    /// Offset in the file of the byte after it.
    var end: UInt64 { UInt64(index * DiskPage.bytes + sectors.upperBound * DiskPage.sectorBytes) }
}

/// A file in memory; pages without an object are zeros.
public struct FileImage: Sendable {
    public private(set) var pages: [DiskPage?] = []
    /// Of these, objects.
    private var written = 0
    public internal(set) var size: UInt64 = 0
    /// Pages from the first that have disk blocks though nothing was written to them, fallocate(2).
    var preallocated = 0
    /// Of an object of a cluster.
    var attributes: [String: [UInt8]] = [:]

    public init() {}

    /// A page, nil where it is zeros.
    public func page(_ index: Int) -> DiskPage? { index < pages.count ? pages[index] : nil }

    mutating func apply(_ written: WrittenPage) {
        while pages.count <= written.index { pages.append(nil) }
        if pages[written.index] == nil { self.written += 1 }
        if written.sectors.count == DiskPage.sectors {
            pages[written.index] = written.content
        } else {
            let page = DiskPage(copying: pages[written.index])
            let offset = written.sectors.lowerBound * DiskPage.sectorBytes
            memcpy(
                page.memory + offset, written.content.memory + offset,
                written.sectors.count * DiskPage.sectorBytes)
            pages[written.index] = page
        }
        size = max(size, written.end)
    }

    /// Disk blocks of 512 bytes.
    var blocks: UInt64 {
        let unwritten = preallocated == 0 ? 0 : (0..<preallocated).count { page($0) == nil }
        return UInt64((written + unwritten) * DiskPage.sectors)
    }

    /// Makes zeros of whole pages.
    mutating func punch(_ range: Range<Int>) {
        for index in range where index < pages.count && pages[index] != nil {
            pages[index] = nil
            written -= 1
        }
    }

    /// Forgets all pages from a number on.
    mutating func dropPages(from kept: Int) {
        guard pages.count > kept else { return }
        punch(kept..<pages.count)
        pages.removeSubrange(kept...)
    }

    mutating func resize(to newSize: UInt64) {
        if newSize < size {
            let kept = Int((newSize + UInt64(DiskPage.bytes) - 1) / UInt64(DiskPage.bytes))
            dropPages(from: kept)
            let within = Int(newSize % UInt64(DiskPage.bytes))
            if within > 0, kept <= pages.count, let last = pages[kept - 1] {
                let page = DiskPage(copying: last)
                memset(page.memory + within, 0, DiskPage.bytes - within)
                pages[kept - 1] = page
            }
        }
        size = newSize
    }

    /// How many bytes from `offset` on were copied: fewer where the file ends.
    func read(at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer) -> Int {
        guard offset < size, let target = bytes.baseAddress else { return 0 }
        let count = Int(min(UInt64(bytes.count), size - offset))
        var done = 0
        while done < count {
            let at = Int(offset) + done
            let within = at % DiskPage.bytes
            let length = min(count - done, DiskPage.bytes - within)
            if let page = page(at / DiskPage.bytes) {
                memcpy(target + done, page.memory + within, length)
            } else {
                memset(target + done, 0, length)
            }
            done += length
        }
        return count
    }
}

/// The files and directories of a disk at one moment. Copies are cheap: they share pages.
public struct DiskImage: Sendable {
    public static let root = 1

    public internal(set) var files: [Int: FileImage] = [:]
    public internal(set) var directories: [Int: [String: Int]] = [root: [:]]

    public init() {}

    /// The inode at a path from a directory, nil where there is none. "" and "." are the directory itself.
    public func inode(_ path: String, from directory: Int = root) -> Int? {
        var inode = path.hasPrefix("/") ? Self.root : directory
        for part in path.split(separator: "/") where part != "." {
            guard let found = directories[inode]?[String(part)] else { return nil }
            inode = found
        }
        return inode
    }

    public func file(_ path: String) -> FileImage? { inode(path).flatMap { files[$0] } }
}
