import ClusterIO
import Glibc
public import LinuxIO

/// A pool of a cluster in memory: its objects are files of a disk in memory, in the directory `/pool`.
///
/// As in RADOS, a write happens as a whole or not, writes to one object happen in the order in which they were begun,
/// and several are on their way at a time; they are answered in an order that the seed chooses. Nothing here has a
/// thread: answers are given when somebody waits for them, or begins the next write.
///
/// Requests that were on their way when a client died are in the disk's state: each of their operations may still
/// happen, until that client is shut out and another one has had an answer about an object of the same placement group.
///
/// Unchecked Sendable: all is used under the disk's lock.
public final class MemoryPool: @unchecked Sendable {
    /// How a request fails.
    enum Fault {
        /// Nothing happens.
        case error(Errno)
        /// It happens all the same.
        case done(Errno)
        /// Nothing happens, by this and any later request of its client.
        case fenced
    }

    private unowned let disk: MemoryDisk
    private let directory: Int
    private var random = RandomSource(1)
    private var clients: [Weak] = []
    private var locks: [String: (client: String, cookie: String)] = [:]
    private var versions: [String: UInt64] = [:]
    private var lastVersion: UInt64 = 1
    private var lastNumber = 0
    /// Requests between two operations of clients that are gone, on average: chosen by the seed.
    private var latePause = 4
    /// Placement groups: chosen by the seed.
    private var groups = 16
    /// Whether clients are told how many there are.
    private var tellsGroups = true
    private var hiddenNames = 0
    /// Requests for the sizes of objects, one or several at once.
    private var sizeRequests = 0
    private(set) var noteRead: (@Sendable (String, Range<UInt64>) -> Errno?)?
    /// Operations of clients that are gone.
    private var former: [ObjectOperation] = []

    private struct Weak { weak var client: MemoryConnection? }

    static let path = "pool"

    /// Under the disk's lock.
    init(_ disk: MemoryDisk) {
        self.disk = disk
        let state = disk.current
        former = state.pending.compactMap { if case .began(let operation) = $0 { operation } else { nil } }
        lastNumber = former.last?.number ?? 0
        // They may still make objects.
        for case .entered(_, _, let inode?) in former.flatMap(\.events) {
            disk.nextInode = max(disk.nextInode, inode + 1)
        }
        if let found = state.live.inode(Self.path) {
            directory = found
        } else {
            directory = disk.nextInode
            disk.nextInode += 1
            disk.note(.madeDirectory(directory))
            disk.note(.entered(directory: DiskImage.root, name: Self.path, inode: directory))
        }
    }

    /// The seed of the order in which requests are answered.
    public func order(by seed: UInt64) {
        disk.lock.withLock {
            random = RandomSource(seed)
            latePause = [4, 40, 400][chance(3)]
            groups = [1, 5, 8, 20][Int(seed % 4)]
        }
    }

    /// Whether clients are told how many placement groups there are, and so can reach all. They are unless it is set.
    ///
    /// - Parameter hidden: names that they are not told, of which each reaches a group.
    public func tellGroups(_ tells: Bool, hiding hidden: Int = 0) {
        disk.lock.withLock { (tellsGroups, hiddenNames) = (tells, hidden) }
    }

    /// Placement groups.
    public var groupCount: Int { disk.lock.withLock { groups } }

    /// Makes an object of zeros: the beginning of a test.
    public func plant(_ object: String, bytes: UInt64) {
        disk.lock.withLock {
            let inode = disk.nextInode
            disk.nextInode += 1
            disk.note(.entered(directory: directory, name: object, inode: inode))
            disk.note(.resized(file: inode, size: bytes))
            disk.settleAll()
        }
    }

    /// Calls a function before each read of an object, which fails with the error that it returns; nil for none.
    public func noteReads(_ note: (@Sendable (_ object: String, _ range: Range<UInt64>) -> Errno?)?) {
        disk.lock.withLock { noteRead = note }
    }

    /// How often clients waited for the sizes of objects.
    public var sizeWaits: Int { disk.lock.withLock { sizeRequests } }

    func noteSizeWait() { disk.lock.withLock { sizeRequests += 1 } }

    /// Whether a client that was shut out is there still.
    public var hasClientShutOut: Bool {
        disk.lock.withLock { clients.contains { $0.client?.isOver == true } }
    }

    /// A client of its own.
    ///
    /// - Parameter fault: asked before every request.
    func connect(fault: @escaping @Sendable () -> Fault?) -> MemoryConnection {
        let client = MemoryConnection(disk, self, fault)
        disk.lock.withLock { clients = clients.filter { $0.client != nil } + [Weak(client: client)] }
        return client
    }

    /// Ends all clients, as the end of their processes does. Requests that they have begun take effect.
    func killAll() {
        let ended = disk.lock.withLock { () -> [MemoryConnection] in
            defer { clients = [] }
            return clients.compactMap(\.client)
        }
        for client in ended { client.end() }
    }

    // MARK: For connections

    func locked<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R { try disk.lock.withLock(body) }

    func willSync() { disk.callInterruption(.sync(file: directory)) }

    func chance(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

    func inode(_ object: String) -> Int? { disk.current.live.directories[directory]?[object] }

    func file(_ object: String) throws(Errno) -> FileImage {
        guard let inode = inode(object) else { throw .noEntry }
        return disk.current.live.files[inode] ?? FileImage()
    }

    var objects: [String] { (disk.current.live.directories[directory] ?? [:]).keys.sorted() }

    var room: (total: UInt64, available: UInt64) {
        let pages = min(disk.capacityPages, 1 << 28)
        let bytes = UInt64(DiskPage.bytes)
        return (UInt64(pages) * bytes, UInt64(max(0, pages - disk.usedPages)) * bytes)
    }

    func version(of object: String) -> UInt64 { versions[object] ?? 1 }

    /// Nobody is told of a client that is gone: its lock ends by itself.
    func take(_ lock: ClusterLock, of object: String, _ client: MemoryConnection) throws(Errno) {
        if let holder = locks[object], holder != (client.address, lock.cookie), isAlive(holder.client) {
            throw Errno(EBUSY)
        }
        locks[object] = (client.address, lock.cookie)
        changed(object)
    }

    func has(_ lock: ClusterLock, of object: String, _ client: MemoryConnection) -> Bool {
        locks[object].map { $0 == (client.address, lock.cookie) } ?? false
    }

    func giveUp(_ lock: ClusterLock, of object: String, _ client: MemoryConnection) {
        if has(lock, of: object, client) { locks[object] = nil }
    }

    private func isAlive(_ address: String) -> Bool {
        clients.contains { $0.client?.address == address && $0.client?.isOver == false }
    }

    private func changed(_ object: String) {
        lastVersion += 1
        versions[object] = lastVersion
    }

    // MARK: Operations

    /// Begins all steps, or throws. Returns the operation's number; nil if it changes nothing.
    func begin(
        _ steps: [ClusterPool.Step], on object: String, version: UInt64?, isForced: Bool,
        _ client: MemoryConnection
    ) throws(Errno) -> Int? {
        if let version {
            guard inode(object) != nil else { throw .noEntry }
            if version != self.version(of: object) { throw Errno(ERANGE) }
        }
        var events: [DiskEvent] = []
        var takesLock = false
        var target = inode(object)
        let (used, next) = (disk.usedPages, disk.nextInode)
        var file = target.flatMap { disk.current.live.files[$0] } ?? FileImage()
        func change(_ event: (Int) -> DiskEvent) {
            let inode = target ?? disk.nextInode
            if target == nil { disk.nextInode += 1 }
            target = inode
            if events.isEmpty { events.append(.entered(directory: directory, name: object, inode: inode)) }
            events.append(event(inode))
            file.apply(event(inode))
        }
        do throws(Errno) {
            for step in steps {
                switch step {
                case .lock(let lock):
                    try take(lock, of: object, client)
                    takesLock = true
                    if target == nil { change { .resized(file: $0, size: 0) } }
                case .creation:
                    if target != nil { throw .exists }
                    change { .resized(file: $0, size: 0) }
                case .removal:
                    guard target != nil else { throw .noEntry }
                    disk.usedPages -= Int(file.blocks) / DiskPage.sectors
                    events.append(.entered(directory: directory, name: object, inode: nil))
                case .write(let bytes, let offset):
                    try write(bytes, at: offset, file, isForced, change)
                case .writeArray(let bytes, let offset):
                    let result = bytes.withUnsafeBytes { bytes -> Errno? in
                        do throws(Errno) {
                            try write(bytes, at: offset, file, isForced, change)
                            return nil
                        } catch { return error }
                    }
                    if let result { throw result }
                case .zeros(let range):
                    guard target != nil else { break }
                    let bytes = UInt64(DiskPage.bytes)
                    let first = Int((range.lowerBound + bytes - 1) / bytes)
                    let end = min(Int(range.upperBound / bytes), file.pages.count)
                    if first < end {
                        disk.usedPages -= (first..<end).count { file.page($0) != nil }
                        change { .punched(file: $0, pages: first..<end) }
                    }
                case .truncation(let size): change { .resized(file: $0, size: size) }
                case .attribute(let name, let value): change { .attributed(file: $0, name: name, value) }
                }
            }
        } catch {
            (disk.usedPages, disk.nextInode) = (used, next)
            throw error
        }
        changed(object)
        guard !events.isEmpty else { return nil }
        lastNumber += 1
        disk.note(
            .began(
                ObjectOperation(
                    number: lastNumber, object: object, client: client.address, takesLock: takesLock,
                    events: events)))
        return lastNumber
    }

    private func write(
        _ bytes: UnsafeRawBufferPointer, at offset: UInt64, _ file: FileImage, _ isForced: Bool,
        _ change: ((Int) -> DiskEvent) -> Void
    ) throws(Errno) {
        let pages = try disk.written(bytes, at: offset, in: file, isForced: isForced)
        let end = offset + UInt64(bytes.count)
        change { .wrote(file: $0, pages) }
        // Pages end with a sector.
        if end % UInt64(DiskPage.sectorBytes) != 0 {
            change { .resized(file: $0, size: max(end, file.size)) }
        }
    }

    /// Notes that an operation is durable.
    func answered(_ number: Int) {
        if !disk.ignoredSyncs.contains(.files) { disk.note(.answered(number)) }
    }

    // MARK: Clients that are gone

    /// Called before a request concerning an object: something of a former client may happen first.
    func willRequest(_ object: String?) {
        guard !former.isEmpty else { return }
        if chance(latePause) == 0, let late = former.randomElement(using: &random) {
            // In the order in which they were begun.
            arrive(former.first { $0.object == late.object } ?? late)
        }
        guard let object else { return }
        let reached = group(of: object)
        for late in former
        where disk.current.fenced.contains(late.client) && group(of: late.object) == reached { drop(late) }
    }

    private func group(of object: String) -> Int {
        PlacementGroups.group(of: object, namespace: "", groups: groups)
    }

    func namesInAllGroups(_ prefix: String) -> [String]? {
        guard tellsGroups else { return nil }
        let names = PlacementGroups.names(prefix, namespace: "", groups: groups)
        return names.map { Array($0.dropLast(hiddenNames)) }
    }

    private func arrive(_ late: ObjectOperation) {
        if late.takesLock, let holder = locks[late.object], isAlive(holder.client) { return drop(late) }
        former.removeAll { $0.number == late.number }
        disk.note(.arrived(late.number))
        changed(late.object)
    }

    private func drop(_ late: ObjectOperation) {
        former.removeAll { $0.number == late.number }
        disk.note(.dropped(late.number))
    }

    func fence(_ address: String) {
        disk.fence(address)
        for client in clients where client.client?.address == address { client.client?.fence() }
    }
}

extension FileImage {
    /// The bytes and attributes that an event changes.
    fileprivate mutating func apply(_ event: DiskEvent) {
        switch event {
        case .wrote(_, let pages): for page in pages { apply(page) }
        case .resized(_, let size): resize(to: size)
        case .punched(_, let pages): punch(pages)
        default: break
        }
    }
}

extension DiskImage {
    /// The file of an object, as `MemoryPool` keeps it; nil if there is none.
    public func object(_ name: String) -> FileImage? {
        guard let found = inode(MemoryPool.path).flatMap({ directories[$0]?[name] }) else { return nil }
        return files[found] ?? FileImage()
    }

    /// Whether the disk is a cluster's.
    public var isPool: Bool { inode(MemoryPool.path) != nil }
}
