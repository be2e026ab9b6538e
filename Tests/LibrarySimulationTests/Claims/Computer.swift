import Glibc
import LibraryFixtures
import LinuxIO
import Synchronization
import TestFixtures
import TestSupport
import VaultCatalogue

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// A computer that has the disk of a vault in common with others, by a host whose locks stay where they are.
final class Computer: Sendable {
    let name: String
    let vault: MemoryVault
    let disk: MemoryDisk
    let turns: Turns
    /// Whether the disk is its own, and others have it by way of this computer.
    let isLocal: Bool
    let claims: Bool
    private let running = Mutex<Set<UInt32>>([])
    private let lastProcess = Mutex<UInt32>(0)
    /// All writes of all its processes.
    let writes = Mutex<[ComputerWrite]>([])
    /// Waits for claims so far.
    let waits = Mutex(0)

    init(
        _ name: String, _ vault: MemoryVault, _ disk: MemoryDisk, _ turns: Turns, isLocal: Bool = false,
        claims: Bool = true
    ) throws {
        (self.name, self.vault, self.disk, self.turns) = (name, vault, disk, turns)
        (self.isLocal, self.claims) = (isLocal, claims)
        try disk.plant("/boot/\(name)", Array("the boot of \(name)".utf8))
    }

    /// Another process of this computer.
    func start() -> ComputerProcess {
        let number = lastProcess.withLock { last in
            last += 1
            return last
        }
        _ = running.withLock { $0.insert(number) }
        return ComputerProcess(self, number: number)
    }

    fileprivate func end(_ number: UInt32) { _ = running.withLock { $0.remove(number) } }

    fileprivate func host(_ number: UInt32) -> ClaimHost {
        ClaimHost(
            claims: claims, machine: Array(name.utf8),
            process: ProcessIdentity(namespace: 1, id: number, start: UInt64(number)),
            life: { [self] process in running.withLock { $0.contains(process.id) ? .running : .ended } },
            now: { [turns] in turns.now },
            sleep: { [self] milliseconds in
                waits.withLock { $0 += 1 }
                turns.wait(milliseconds: milliseconds)
            })
    }
}

struct ComputerWrite {
    var time: Int64
    var process: String
    var path: String
    var offset: UInt64
    var count: Int

    /// Whether it touches sectors of a segment.
    func touches(_ sectors: Range<UInt64>, _ layout: SegmentLayout) -> Bool {
        sectors.contains { sector in
            let number = Int(sector * 512 / layout.segmentBytes)
            let place = SegmentPlace(space: 0, number: number)
            guard path == layout.fileName(number) else { return false }
            let start = layout.start(place) + sector * 512 % layout.segmentBytes
            return offset < start + 512 && start < offset + UInt64(count)
        }
    }
}

/// A process of a computer, and its calls. Each may be stopped between any two of them.
final class ComputerProcess: ForwardingCalls, LibraryUser {
    let real: any FileSystemCalls
    let computer: Computer
    let number: UInt32
    let caller = Caller(uid: 0, gid: 0)
    /// Open descriptors, and the path each was opened by.
    private let opened = Mutex<[Int32: String]>([:])
    private let mounted = Mutex<Library?>(nil)
    /// Called before each write, with its offset.
    let beforeWrite = Mutex<(@Sendable (UInt64) -> Void)?>(nil)
    /// Called before each call.
    let beforeCall = Mutex<(@Sendable (SystemCall) -> Void)?>(nil)
    let failsToOpen = Mutex(false)

    fileprivate init(_ computer: Computer, number: UInt32) {
        (self.computer, self.number) = (computer, number)
        real = computer.disk
    }

    deinit { kill() }

    var library: Library {
        guard let library = mounted.withLock({ $0 }) else { preconditionFailure("nothing is mounted") }
        return library
    }
    var space: Space { library.session.space }

    /// Mounts the space.
    func mount(takingOver: Bool = false) throws {
        let unlocked = try computer.vault.unlock(self, host: computer.host(number))
        let space = try unlocked.openSpace(readOnly: false, takingOver: takingOver ? { _ in } : nil)
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.thumbnails = .off
        options.commitsByHand = true
        let catalogue = try Catalogue(storage: space, readOnly: false)
        let library = try Library(space: space, catalogue: catalogue, options: options, unlocked: unlocked)
        library.session.committer.makesRoom = false
        mounted.withLock { $0 = library }
    }

    func commit(durable: Bool) { library.session.committer.commitByHand(durable: durable) }

    /// As an unmount; the process ends.
    func unmount() throws {
        defer { kill() }
        try library.close()
    }

    /// As `kill -9`.
    func kill() {
        mounted.withLock { library in
            library?.abandonUnsaved()
            library = nil
        }
        computer.end(number)
        for descriptor in opened.withLock({ $0.keys }) { real.close(descriptor) }
        opened.withLock { $0 = [:] }
    }

    // MARK: Calls

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        beforeCall.withLock { $0 }?(call)
        computer.turns.pause()
    }

    func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        let isBootID = path == MemoryVault.bootPath
        if !isBootID { try willCall(.open(path: path, flags: flags), d) }
        if failsToOpen.withLock({ $0 }) { throw .inputOutput }
        let path = isBootID ? "/boot/\(computer.name)" : path
        let descriptor = try real.open(d, path, flags: flags, mode: mode)
        opened.withLock { $0[descriptor] = path }
        return descriptor
    }
    func close(_ d: Int32) {
        if opened.withLock({ $0.removeValue(forKey: d) }) != nil { real.close(d) }
    }
    func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try willCall(.write, d)
        beforeWrite.withLock({ $0 })?(offset)
        let path = opened.withLock { $0[d] } ?? ""
        computer.writes.withLock {
            $0.append(
                ComputerWrite(
                    time: computer.turns.now, process: "\(computer.name), process \(number)", path: path,
                    offset: offset, count: bytes.count))
        }
        return try real.pwrite(d, bytes, at: offset)
    }
    func lock(_ d: Int32) throws(Errno) {}
    func hostStatus(_ d: Int32) throws(Errno) -> HostStatus {
        var status = try real.hostStatus(d)
        // FUSE, where the disk is another computer's.
        if !computer.isLocal { status.typeMagic = 0x6573_5546 }
        return status
    }
}
