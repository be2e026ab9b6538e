import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat
import VaultStore

/// `grow`, ended at each of its calls: by a kill, or by a disk without room.
@Suite("Commands: grow") struct GrowTests {
    private let directory = TemporaryDirectory()
    private let calls = TracedCalls()

    private static let row: UInt64 = 2 * 4 << 20

    private func size(_ path: String) throws -> UInt64 {
        let attributes = try FileManager.default.attributesOfItem(atPath: path + "/spaces")
        return try #require(attributes[.size] as? UInt64)
    }

    private func isEven(_ path: String) throws -> Bool { try size(path) % Self.row == 0 }

    private func shrink(_ path: String) throws {
        calls.forgetReservations()
        #expect(truncate(path + "/spaces", off_t(4 * Self.row)) == 0)
    }

    private func grow(_ path: String) throws {
        try Vault.grow(path, bytesPerSpace: 24 << 20, calls: calls) { _, _ in }
    }

    /// Killed before or in each call that changes something; then mounted, on a disk with room and on one without.
    @Test(arguments: [false, true]) func `killed anywhere, grow leaves spaces even`(isFull: Bool) throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        calls.leaveHoles()
        var (changes, ended) = (0, false)
        var counts: Set<Int> = []
        while !ended {
            calls.die(after: changes)
            do {
                try grow(path)
                ended = true
            } catch { #expect(calls.isRetired) }
            calls.revive()
            let before = try Vault.info(path).segmentsPerSpace
            calls.setFull(isFull)
            _ = try openSpace(path, calls: calls)
            calls.setFull(false)
            let count = try Vault.info(path).segmentsPerSpace
            // A growth that was begun is completed; without room for it the spaces are as large as they were.
            #expect(try isEven(path), "after \(changes) changes")
            #expect(count == before || count == before + 1)
            counts.insert(count)
            // The same command goes on.
            if changes % 5 == 0 {
                try grow(path)
                #expect(try size(path) == 6 * Self.row)
            }
            try shrink(path)
            changes += 1
        }
        #expect(changes > 15)
        #expect(counts == [4, 5, 6])
    }

    /// The disk is full from some point on, though `grow` looked before: others write too.
    @Test(arguments: [false, true])
    func `without disk anywhere, grow leaves the vault as it was, or whole segments of a mount`(
        isMounted: Bool
    ) throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        calls.reserveNothing()
        let unlocked = isMounted ? try Vault.unlock(path, password: secret("one")) : nil
        defer { withExtendedLifetime(unlocked) {} }
        for after in stride(from: 0, to: 16 << 20, by: 1 << 20) as StrideTo<UInt64> {
            var isTold = false
            var failure: VaultError?
            do throws(VaultError) {
                try Vault.grow(path, bytesPerSpace: 24 << 20, calls: calls) { done, _ in
                    if done >= after, !isTold {
                        isTold = true
                        calls.setFull(true)
                    }
                }
            } catch { failure = error }
            #expect(failure == .noRoom)
            #expect(try size(path) == (after < Self.row || !isMounted ? 4 : 5) * Self.row)
            calls.setFull(false)
            try shrink(path)
        }
        calls.setFull(true)
        #expect(throws: VaultError.noRoom) { try grow(path) }
        #expect(try size(path) == 4 * Self.row)
    }

    @Test func `disk that was set aside is enough`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        var isTold = false
        try Vault.grow(path, bytesPerSpace: 24 << 20, calls: calls) { _, _ in
            if !isTold { calls.setFull(true) }
            isTold = true
        }
        #expect(try size(path) == 6 * Self.row)
    }

    @Test func `on FAT a space of more than 4 GiB is refused at once`() throws {
        final class Calls: ForwardingCalls {
            func hostStatus(_ descriptor: Int32) throws(Errno) -> HostStatus {
                HostStatus(totalBytes: 1 << 40, availableBytes: 1 << 40, typeMagic: 0x4D44)
            }
        }
        let path = directory.path + "/fat"
        #expect(throws: VaultError.fileTooLarge) {
            try Vault.create(
                at: path, spaces: 2, bytesPerSpace: 2 << 30, kdf: quickKDF, password: secret("one"),
                calls: Calls()
            ) { _, _ in }
        }
        #expect(!FileManager.default.fileExists(atPath: path))
        try Vault.create(
            at: path, spaces: 2, bytesPerSpace: 16 << 20, kdf: quickKDF, password: secret("one"),
            calls: Calls(), coverBytes: 0
        ) { _, _ in }
        #expect(throws: VaultError.fileTooLarge) {
            try Vault.grow(path, bytesPerSpace: 2 << 30, calls: Calls()) { _, _ in }
        }
        #expect(try Vault.info(path).segmentsPerSpace == 4)
    }

    /// A mount may have come and gone while `grow` was writing.
    @Test func `a segment in which something was written stays`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        calls.reserveNothing()
        var failure: VaultError?
        do throws(VaultError) {
            try Vault.grow(path, bytesPerSpace: 32 << 20, calls: calls) { done, _ in
                guard done == 3 * Self.row else { return }
                let file = open(path + "/spaces", O_WRONLY)
                // In the second of the new rows, which are three.
                _ = pwrite(file, "used", 4, off_t(5 * Self.row + 4096))
                close(file)
                calls.setFull(true)
            }
        } catch { failure = error }
        #expect(failure == .noRoom)
        #expect(try size(path) == 6 * Self.row)
    }

    @Test func `a killed grow is given back by one that finds no room`() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        #expect(truncate(path + "/spaces", off_t(4 * Self.row + 12_345)) == 0)
        calls.reserveNothing()
        #expect(throws: VaultError.noRoom) {
            try Vault.grow(path, bytesPerSpace: 24 << 20, calls: calls) { _, _ in calls.setFull(true) }
        }
        #expect(try size(path) == 4 * Self.row)
    }

    /// Such hosts say so only when a file reaches its end, after gigabytes.
    @Test func `a host whose files end somewhere is asked before anything is written`() throws {
        final class Calls: ForwardingCalls {
            let written = Atomic<Int>(0)
            func reserve(_ descriptor: Int32, bytes: UInt64) throws(Errno) { throw .notSupported }
            func truncate(_ descriptor: Int32, to size: UInt64) throws(Errno) {
                if size >= 4 << 30 { throw .fileTooLarge }
                try real.truncate(descriptor, to: size)
            }
            func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
                written.wrappingAdd(bytes.count, ordering: .relaxed)
                return try real.pwrite(d, bytes, at: offset)
            }
        }
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        let calls = Calls()
        #expect(throws: VaultError.fileTooLarge) {
            try Vault.grow(path, bytesPerSpace: 3 << 30, calls: calls) { _, _ in }
        }
        #expect(calls.written.load(ordering: .relaxed) == 0)
        #expect(try size(path) == 4 * Self.row)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: path).sorted() == ["obscura.vault", "spaces"])
    }

    /// With any name that a host of that kind gives itself.
    @Test func `a file that is too large is told so`() throws {
        final class Calls: ForwardingCalls {
            func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
                if case .allocate = call { throw .notSupported }
            }
            func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
                if offset >= 36 << 20 { throw .fileTooLarge }
                return try real.pwrite(d, bytes, at: offset)
            }
        }
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        #expect(throws: VaultError.fileTooLarge) {
            try Vault.grow(path, bytesPerSpace: 24 << 20, calls: Calls()) { _, _ in }
        }
        #expect(try size(path) == 4 * Self.row)
    }
}
