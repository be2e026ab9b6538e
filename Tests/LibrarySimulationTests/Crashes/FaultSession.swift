import Glibc
import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing
import VaultCatalogue

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// A library on a disk in memory whose calls can be made to fail. Commits are made by hand.
final class FaultSession: LibraryUser {
    let vault: MemoryVault
    private(set) var disk: MemoryDisk
    private(set) var calls: FaultyCalls
    let caller = Caller(uid: 0, gid: 0)
    /// Days that the trash keeps its files; 0: nothing comes there.
    private let trashDays: Int
    private let maker = StandInMaker()
    private var opened: Library?

    var library: Library {
        guard let opened else { preconditionFailure("the session is unmounted") }
        return opened
    }

    var isMounted: Bool { opened != nil }

    init(_ vault: MemoryVault, capacity: UInt64? = nil, trashDays: Int = 0) throws {
        self.vault = vault
        self.trashDays = trashDays
        disk = MemoryDisk(vault.empty, isRecording: false)
        if let capacity { disk.setCapacity(capacity) }
        calls = FaultyCalls(disk)
        try mount()
    }

    func mount() throws {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.pictureMaker = maker
        options.settleMilliseconds = 1 << 40
        options.commitsByHand = true
        options.trashDays = trashDays
        options.limits = vault.limits
        let unlocked = try vault.unlock(calls)
        let library = try Library.open(unlocked, options: options)
        library.didGoLive()
        opened = library
    }

    func unmount() throws {
        defer { kill() }
        try library.close()
        // On a cluster its lock is given up.
        opened = nil
        disk.closeAll()
    }

    /// Lets go of everything without another write, as the end of the process does.
    func kill() {
        guard let opened else { return }
        opened.abandonUnsaved()
        disk.closeAll()
        self.opened = nil
    }

    /// fsync(2) of a directory.
    func makeDurable() throws { try library.fsyncDirectory(try library.openDirectory(3)) }

    func commit(durable: Bool) { library.session.committer.commitByHand(durable: durable) }

    /// The tree that a mount finds after a power cut now.
    func treeAfterPowerCut() throws -> TreeDump {
        let left = try FaultSession(vault, on: try MemoryVault.rebooted(disk.state.durable))
        defer { left.kill() }
        return try left.dump()
    }

    /// A session on another's disk; it is not mounted yet.
    init(_ vault: MemoryVault, unmountedOn state: DiskState, trashDays: Int) {
        self.vault = vault
        self.trashDays = trashDays
        disk = MemoryDisk(state, isRecording: false)
        calls = FaultyCalls(disk)
    }

    /// Opens the vault of a disk, after an audit.
    private init(_ vault: MemoryVault, on state: DiskState) throws {
        self.vault = vault
        trashDays = 30
        disk = MemoryDisk(state, isRecording: false)
        calls = FaultyCalls(disk)
        let space = try vault.openSpace(disk)
        try audit(space, "after a power cut")
        try space.auditSlots()
        disk.closeAll()
        try mount()
    }
}
