internal import CFuse3
internal import FileRequests
internal import Glibc
internal import PhotoLibrary

/// Packs directory entries into the answer to READDIR or READDIRPLUS, in libfuse's layout.
struct ListingPacker {
    private let buffer: UnsafeMutableRawBufferPointer
    private let name: UnsafeMutableBufferPointer<CChar>
    private let plus: Bool
    private let request: fuse_req_t
    private var usedBytes = 0
    /// The virtual inodes of which the kernel gets a reference with the packed entries.
    private(set) var lookups: [UInt64] = []
    /// See `fuse_entry_param`.
    var timeoutMax = Double.infinity

    /// NAME_MAX of Linux, and a NUL.
    private static let nameBytesMax = 256

    init(byteCount: Int, plus: Bool, request: fuse_req_t) {
        buffer = .allocate(byteCount: byteCount, alignment: 8)
        name = .allocate(capacity: Self.nameBytesMax)
        self.plus = plus
        self.request = request
    }

    /// The entries packed so far.
    var packed: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<usedBytes]) }

    /// Adds one entry. Returns false if it does not fit.
    mutating func add(_ item: DirectoryEntry) -> Bool {
        precondition(item.name.bytes.count < Self.nameBytesMax)
        for (index, byte) in item.name.bytes.enumerated() { name[index] = CChar(bitPattern: byte) }
        name[item.name.bytes.count] = 0
        let room = buffer.count - usedBytes
        let start = (buffer.baseAddress! + usedBytes).assumingMemoryBound(to: CChar.self)
        let needed = plus ? addPlus(item, start, room) : addPlain(item, start, room)
        if needed > room { return false }
        usedBytes += needed
        if plus, let ino = cacheable(item)?.attributes.ino, Library.mayTakeLong(ino) { lookups.append(ino) }
        return true
    }

    func free() {
        buffer.deallocate()
        name.deallocate()
    }

    private func addPlain(_ item: DirectoryEntry, _ start: UnsafeMutablePointer<CChar>, _ room: Int) -> Int {
        var status = stat()
        status.st_ino = ino_t(item.ino)
        status.st_mode = item.mode
        return fuse_add_direntry(request, start, room, name.baseAddress, &status, off_t(item.cookie))
    }

    /// The attributes that the kernel may keep. A name that is never cached, as in moments, is looked up all the same:
    /// an inode for it would be made in vain.
    private func cacheable(_ item: DirectoryEntry) -> Entry? {
        item.entry.flatMap { $0.entryTimeout > 0 ? $0 : nil }
    }

    /// An item without attributes ("." and "..") is sent with node number 0: the kernel then creates no inode for it.
    private func addPlus(_ item: DirectoryEntry, _ start: UnsafeMutablePointer<CChar>, _ room: Int) -> Int {
        let entry = cacheable(item)
        var parameter = entry.map { fuse_entry_param($0, timeoutMax) } ?? fuse_entry_param()
        if entry == nil {
            parameter.attr.st_ino = ino_t(item.ino)
            parameter.attr.st_mode = item.mode
        }
        return fuse_add_direntry_plus(request, start, room, name.baseAddress, &parameter, off_t(item.cookie))
    }
}
