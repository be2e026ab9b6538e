import Foundation
public import LinuxIO

/// A call that is about to begin, for tests that interrupt it.
public enum DiskCall: Sendable {
    case write(file: Int, offset: UInt64)
    case sync(file: Int)
}

/// A host's file system in memory, which knows the writes that have reached the disk: so that it can be had as it would
/// be after a power cut at any moment.
///
/// A directory's names become durable when it is synced, a file's bytes when the file is: the promise of POSIX and no
/// more. There are no owners and permissions, and links of neither kind.
public final class MemoryDisk: FileSystemCalls, @unchecked Sendable {
    private struct OpenFile {
        var inode: Int
        var isDirectory: Bool
    }

    let lock = Lock()
    // All under `lock`.
    private(set) var current: DiskState
    private var events: [DiskEvent] = []
    private let isRecording: Bool
    private var descriptors: [Int32: OpenFile] = [:]
    private var lockedBy: [Int: Int32] = [:]
    private var nextDescriptor: Int32 = 3
    var nextInode: Int
    private var interruption: (@Sendable (DiskCall) -> Void)?
    private(set) var ignoredSyncs: SyncKinds = []
    /// Syncs that succeed before one fails.
    private var syncsLeft: Int?
    private(set) var capacityPages = Int.max
    private var hasHoles = true
    var usedPages: Int
    private var madePool: MemoryPool?

    /// A disk that begins as `state`; nobody has a file of it open.
    /// - Parameter isRecording: whether there is to be a log.
    public init(_ state: DiskState, isRecording: Bool = true) {
        self.isRecording = isRecording
        current = state
        let named = state.live.directories.values.flatMap(\.values)
        nextInode = max(named.max() ?? 0, DiskImage.root) + 1
        usedPages = state.live.files.values.reduce(0) { $0 + Int($1.blocks) / DiskPage.sectors }
    }

    /// The disk with the writes that are not durable.
    public var state: DiskState { lock.withLock { current } }
    /// All that was done since this object was made.
    public var log: [DiskEvent] { lock.withLock { events } }
    public var eventCount: Int { lock.withLock { events.count } }

    /// Has `body` called, once, before the next write or sync it is interested in; it may use the disk itself.
    public func interrupt(_ body: (@Sendable (DiskCall) -> Void)?) { lock.withLock { interruption = body } }

    /// Kinds of syncs.
    public struct SyncKinds: OptionSet, Sendable {
        public let rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }

        public static let files = SyncKinds(rawValue: 1)
        public static let directories = SyncKinds(rawValue: 2)
    }

    /// These syncs succeed from now on, and do nothing.
    public func ignoreSyncs(_ kinds: SyncKinds) { lock.withLock { ignoredSyncs = kinds } }

    /// Of a file the sync after `count` more fails, once, with EIO: writes since the last one never reach
    /// the disk, though it can still be read. Nil: none fails.
    public func failSync(after count: Int?) { lock.withLock { syncsLeft = count } }

    /// Bytes of files that the disk has.
    public var usedBytes: UInt64 { lock.withLock { UInt64(usedPages * DiskPage.bytes) } }

    /// Bytes of files that the disk can take.
    public func setCapacity(_ bytes: UInt64) { lock.withLock { capacityPages = Int(bytes) / DiskPage.bytes } }

    /// Writes a file and makes it durable, with the directories that lead to it: the beginning of a test.
    public func plant(_ path: String, _ bytes: [UInt8]) throws(Errno) {
        let parts = path.split(separator: "/")
        var directory = ""
        for part in parts.dropLast() {
            directory += "/" + part
            do throws(Errno) { try makeDirectory(AT_FDCWD, directory, mode: 0o700) } catch
                where error == .exists
            {}
        }
        let file = try open(AT_FDCWD, path, flags: O_RDWR | O_CREAT, mode: 0o600)
        defer { close(file) }
        if !bytes.isEmpty { try writeFully(file, bytes, at: 0) }
        lock.withLock { current.settleAll() }
    }

    /// The objects of a cluster, which are files here.
    public var pool: MemoryPool {
        lock.withLock {
            let pool = madePool ?? MemoryPool(self)
            madePool = pool
            return pool
        }
    }

    /// From now on no hole can be punched or found, and no room allocated, as on sshfs.
    public func refuseHoles() { lock.withLock { hasHoles = false } }

    func note(_ event: DiskEvent) {
        current.apply(event)
        if isRecording { events.append(event) }
    }

    private func opened(_ descriptor: Int32) throws(Errno) -> OpenFile {
        guard let found = descriptors[descriptor] else { throw Errno(EBADF) }
        return found
    }

    private func directory(_ descriptor: Int32) throws(Errno) -> Int {
        if descriptor == AT_FDCWD { return DiskImage.root }
        let file = try opened(descriptor)
        guard file.isDirectory else { throw .notDirectory }
        return file.inode
    }

    /// The directory that a path's last part lies in, and that part; the directory itself for ".".
    private func parent(_ descriptor: Int32, _ path: String) throws(Errno) -> (directory: Int, name: String) {
        var parts = path.split(separator: "/").map(String.init)
        let name = parts.popLast() ?? "."
        let start = path.hasPrefix("/") ? DiskImage.root : try directory(descriptor)
        guard let found = current.live.inode(parts.joined(separator: "/"), from: start) else {
            throw .noEntry
        }
        guard current.live.directories[found] != nil else { throw .notDirectory }
        return (found, name)
    }

    // MARK: FileSystemCalls

    public func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        try lock.withLock { () throws(Errno) in
            let (directory, name) = try parent(d, path)
            var inode = name == "." ? directory : current.live.directories[directory]?[name]
            if inode != nil && flags & O_CREAT != 0 && flags & O_EXCL != 0 { throw .exists }
            if inode == nil && flags & O_CREAT != 0 {
                inode = nextInode
                nextInode += 1
                note(.entered(directory: directory, name: name, inode: inode))
            }
            guard let inode else { throw .noEntry }
            let isDirectory = current.live.directories[inode] != nil
            if flags & O_DIRECTORY != 0 && !isDirectory { throw .notDirectory }
            if isDirectory && flags & O_ACCMODE != O_RDONLY { throw Errno(EISDIR) }
            let descriptor = nextDescriptor
            nextDescriptor += 1
            descriptors[descriptor] = OpenFile(inode: inode, isDirectory: isDirectory)
            return descriptor
        }
    }

    /// Closes all open files, as the end of a process does.
    public func closeAll() {
        lock.withLock({ madePool })?.killAll()
        lock.withLock {
            descriptors = [:]
            lockedBy = [:]
        }
    }

    public func close(_ d: Int32) {
        lock.withLock {
            guard let file = descriptors.removeValue(forKey: d) else { return }
            if lockedBy[file.inode] == d { lockedBy[file.inode] = nil }
        }
    }

    public func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno)
        -> Int
    {
        try lock.withLock { () throws(Errno) in
            let file = try opened(d)
            guard !file.isDirectory else { throw Errno(EISDIR) }
            return current.live.files[file.inode]?.read(at: offset, into: bytes) ?? 0
        }
    }

    public func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        if lock.withLock({ interruption != nil }) {
            callInterruption(
                .write(file: try lock.withLock { () throws(Errno) in try opened(d).inode }, offset: offset))
        }
        return try lock.withLock { () throws(Errno) in
            let inode = try opened(d).inode
            let parts = try written(bytes, at: offset, in: current.live.files[inode] ?? FileImage())
            note(.wrote(file: inode, parts))
            let end = offset + UInt64(bytes.count)
            // A write that ends within a sector makes the file no longer than its end.
            if end % UInt64(DiskPage.sectorBytes) != 0, let size = current.live.files[inode]?.size,
                size > end,
                size - end < UInt64(DiskPage.sectorBytes)
            {
                note(.resized(file: inode, size: end))
            }
            return bytes.count
        }
    }

    /// The pages that a write leaves, each with the sectors it touched.
    ///
    /// - Parameter isForced: whether it goes on a full disk, too.
    func written(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, in file: FileImage, isForced: Bool = false
    ) throws(Errno) -> [WrittenPage] {
        var parts: [WrittenPage] = []
        var done = 0
        var fresh = 0
        while done < bytes.count, let source = bytes.baseAddress {
            let at = Int(offset) + done
            let (index, within) = (at / DiskPage.bytes, at % DiskPage.bytes)
            let length = min(bytes.count - done, DiskPage.bytes - within)
            let old = file.page(index)
            if old == nil && index >= file.preallocated { fresh += 1 }
            let page = DiskPage(copying: length < DiskPage.bytes ? old : nil)
            memcpy(page.memory + within, source + done, length)
            let first = within / DiskPage.sectorBytes
            let last = (within + length + DiskPage.sectorBytes - 1) / DiskPage.sectorBytes
            parts.append(WrittenPage(index: index, content: page, sectors: first..<last))
            done += length
        }
        guard isForced || usedPages + fresh <= capacityPages else { throw .noSpace }
        usedPages += fresh
        return parts
    }

    /// Under the lock.
    func settleAll() { current.settleAll() }

    /// Shuts a client of the cluster out. Under the lock.
    func fence(_ client: String) { current.fenced.insert(client) }

    func callInterruption(_ call: DiskCall) {
        let body = lock.withLock { interruption }
        body?(call)
    }

    public func dataSync(_ d: Int32) throws(Errno) { try sync(d) }

    public func sync(_ d: Int32) throws(Errno) {
        let file = try lock.withLock { () throws(Errno) in try opened(d) }
        callInterruption(.sync(file: file.inode))
        try lock.withLock { () throws(Errno) in
            if file.isDirectory {
                if !ignoredSyncs.contains(.directories) { note(.syncedDirectory(file.inode)) }
                return
            }
            if let left = syncsLeft {
                syncsLeft = left > 0 ? left - 1 : nil
                if left == 0 {
                    note(.lost(file: file.inode))
                    throw .inputOutput
                }
            }
            if !ignoredSyncs.contains(.files) { note(.synced(file: file.inode)) }
        }
    }

    public func truncate(_ d: Int32, to size: UInt64) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            let inode = try opened(d).inode
            if var file = current.live.files[inode], size < file.size {
                let kept = Int((size + UInt64(DiskPage.bytes) - 1) / UInt64(DiskPage.bytes))
                let before = file.blocks
                file.preallocated = min(file.preallocated, kept)
                file.dropPages(from: kept)
                usedPages -= Int(before - file.blocks) / DiskPage.sectors
                current.live.files[inode]?.preallocated = file.preallocated
            }
            note(.resized(file: inode, size: size))
        }
    }

    public func allocate(_ d: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            guard hasHoles else { throw .notSupported }
            let inode = try opened(d).inode
            var file = current.live.files[inode] ?? FileImage()
            let end = offset + length
            let pages = Int((end + UInt64(DiskPage.bytes) - 1) / UInt64(DiskPage.bytes))
            let fresh = (file.preallocated..<max(pages, file.preallocated)).count { file.page($0) == nil }
            guard usedPages + fresh <= capacityPages else { throw .noSpace }
            usedPages += fresh
            file.preallocated = max(file.preallocated, pages)
            current.live.files[inode] = file
            if file.size < end { note(.resized(file: inode, size: end)) }
        }
    }

    /// Room is counted when it is written.
    public func reserve(_ d: Int32, bytes: UInt64) throws(Errno) {}

    public func punchHole(_ d: Int32, offset: UInt64, length: UInt64) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            guard hasHoles else { throw .notSupported }
            let inode = try opened(d).inode
            guard let file = current.live.files[inode] else { return }
            let first = Int(offset) / DiskPage.bytes
            let end = min(Int(offset + length) / DiskPage.bytes, file.pages.count)
            // Behind the last page that was written there is nothing to punch.
            guard first < end else { return }
            let pages = first..<end
            usedPages -= pages.count { file.page($0) != nil && $0 >= file.preallocated }
            note(.punched(file: inode, pages: pages))
        }
    }

    public func seek(_ d: Int32, from offset: UInt64, hole: Bool) throws(Errno) -> UInt64 {
        try lock.withLock { () throws(Errno) in
            let file = current.live.files[try opened(d).inode] ?? FileImage()
            guard offset < file.size else { throw Errno(ENXIO) }
            guard hasHoles else { return hole ? file.size : offset }
            var page = Int(offset) / DiskPage.bytes
            let end = (Int(file.size) + DiskPage.bytes - 1) / DiskPage.bytes
            while page < end, (file.page(page) == nil) != hole { page += 1 }
            if page == end { if hole { return file.size } else { throw Errno(ENXIO) } }
            return max(offset, UInt64(page * DiskPage.bytes))
        }
    }

    public func status(_ d: Int32) throws(Errno) -> FileStatus {
        try lock.withLock { () throws(Errno) in
            let file = try opened(d)
            let image = current.live.files[file.inode]
            return FileStatus(
                device: 1, inode: UInt64(file.inode), size: image?.size ?? 0,
                blocks: image?.blocks ?? 0, isDirectory: file.isDirectory,
                isRegular: !file.isDirectory,
                modified: Timestamp(seconds: 0))
        }
    }

    public func hostStatus(_ d: Int32) throws(Errno) -> HostStatus {
        try lock.withLock { () throws(Errno) in
            _ = try opened(d)
            let capacity = min(capacityPages, 1 << 28)
            return HostStatus(
                totalBytes: UInt64(capacity * DiskPage.bytes),
                availableBytes: UInt64(max(0, capacity - usedPages) * DiskPage.bytes), typeMagic: 0xEF53)
        }
    }

    public func touch(_ d: Int32, _ path: String, count: Int) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            let (directory, name) = try parent(d, path)
            if name != "." && current.live.directories[directory]?[name] == nil { throw .noEntry }
        }
    }

    public func makeDirectory(_ d: Int32, _ path: String, mode: UInt32) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            let (directory, name) = try parent(d, path)
            guard name != ".", current.live.directories[directory]?[name] == nil else { throw .exists }
            note(.madeDirectory(nextInode))
            note(.entered(directory: directory, name: name, inode: nextInode))
            nextInode += 1
        }
    }

    public func unlink(_ d: Int32, _ path: String) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            let (directory, name) = try parent(d, path)
            guard let inode = current.live.directories[directory]?[name] else { throw .noEntry }
            guard current.live.directories[inode] == nil else { throw Errno(EISDIR) }
            note(.entered(directory: directory, name: name, inode: nil))
        }
    }

    public func rename(_ d: Int32, _ from: String, _ to: String, isExchange: Bool) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            let names = current.live.directories[try directory(d)] ?? [:]
            guard let moved = names[from] else { throw .noEntry }
            if isExchange, names[to] == nil { throw .noEntry }
            if !isExchange, names[to] != nil { throw .exists }
            note(.entered(directory: try directory(d), name: to, inode: moved))
            note(.entered(directory: try directory(d), name: from, inode: names[to]))
        }
    }

    public func checkWritable(_ d: Int32) throws(Errno) {
        _ = try lock.withLock { () throws(Errno) in try directory(d) }
    }

    public func list(_ d: Int32) throws(Errno) -> [String] {
        try lock.withLock { () throws(Errno) in
            Array((current.live.directories[try directory(d)] ?? [:]).keys)
        }
    }

    public func lock(_ d: Int32) throws(Errno) {
        try lock.withLock { () throws(Errno) in
            let inode = try opened(d).inode
            if let holder = lockedBy[inode], holder != d { throw .wouldBlock }
            lockedBy[inode] = d
        }
    }
}
