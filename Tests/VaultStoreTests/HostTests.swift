import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// A host that lets files be read and not written.
final class ReadOnlyHost: ForwardingCalls {
    let error: Errno
    let isOn = Mutex(true)

    init(_ error: Errno) { self.error = error }

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        let isWriting: Bool
        switch call {
        case .open(_, let flags): isWriting = flags & O_ACCMODE != O_RDONLY || call.isChange
        case .access: isWriting = true
        // fdatasync(2) without a write succeeds everywhere.
        case .sync: isWriting = false
        default: isWriting = call.isChange
        }
        if isWriting && isOn.withLock({ $0 }) { throw error }
    }
}

/// Vaults on hosts that do not let them be written, and vaults of which a segment is gone.
@Suite("Exit codes: hosts that cannot be written") struct HostTests {
    let directory = TemporaryDirectory()

    private func makeWritten(spaces: Int) throws -> (path: String, index: Int) {
        let path = try makeVault(directory, spaces: spaces, bytes: spaces == 1 ? nil : 16 << 20)
        let unlocked = try patiently { try Vault.unlock(path, password: secret("one")) }
        let space = try unlocked.openSpace(.writing)
        space.stage(0, 7)
        try space.commit(durable: true)
        try space.close()
        return (path, unlocked.index)
    }

    /// Opens a space for the length of `body`, which alone may keep it: its owner has the vault.
    private func open<R>(
        _ path: String, _ access: SpaceAccess, _ calls: any FileSystemCalls = LinuxCalls.shared,
        _ body: (Space) throws -> R
    ) throws -> R {
        try body(try unlock(path, calls).openSpace(access))
    }

    private func firstPage(_ path: String, _ access: SpaceAccess = .writing) throws -> UInt8 {
        try open(path, access) { try $0.page(0) }
    }

    private func unlock(_ path: String, _ calls: any FileSystemCalls = LinuxCalls.shared) throws
        -> UnlockedSpace
    {
        try patiently { try Vault.unlock(path, password: secret("one"), calls: calls) }
    }

    private func segment(_ vault: (path: String, index: Int), _ number: Int) throws -> SegmentFile {
        try SegmentFile(vault.path, space: vault.index, number)
    }

    /// The answer of each way of opening; reading works all the same.
    private func expect(
        _ stop: WriteStop, _ path: String, _ calls: any FileSystemCalls = LinuxCalls.shared,
        location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(throws: VaultError.notWritable(stop), sourceLocation: location) {
            try open(path, .writing, calls) { _ in }
        }
        try open(path, .writingIfPossible, calls) { space in
            #expect(space.isReadOnly && space.writeStop == stop, sourceLocation: location)
            #expect(try space.page(0) == 7, sourceLocation: location)
            space.stage(0, 8)
            #expect(throws: StoreError.readOnly, sourceLocation: location) { try space.commit(durable: true) }
            try space.close()
        }
        #expect(try open(path, .reading, calls) { try $0.page(0) } == 7, sourceLocation: location)
    }

    @Test(arguments: [1, 2], [Errno.readOnlyFileSystem, .accessDenied, .notPermitted])
    func `a host that refuses writing`(spaces: Int, error: Errno) throws {
        let vault = try makeWritten(spaces: spaces)
        try expect(.io(error), vault.path, ReadOnlyHost(error))
        // Nothing of it stays.
        #expect(try firstPage(vault.path) == 7)
    }

    @Test func `a directory in which nothing can be made, where segments are made on demand`() throws {
        final class Calls: ForwardingCalls {
            func checkWritable(_ directory: Int32) throws(Errno) { throw .accessDenied }
        }
        let vault = try makeWritten(spaces: 1)
        try expect(.io(.accessDenied), vault.path, Calls())
    }

    @Test(arguments: [1, 2]) func `files that may not be read are no damage`(spaces: Int) throws {
        final class Calls: ForwardingCalls {
            func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
                if case .open("spaces", _) = call { throw .accessDenied }
                if case .open("segments", _) = call { throw .accessDenied }
            }
        }
        let vault = try makeWritten(spaces: spaces)
        let refusal = VaultError.system(
            .accessDenied, "cannot read the vault's files: check their owner and mode")
        #expect(throws: refusal) { try open(vault.path, .reading, Calls()) { _ in } }
        #expect(throws: refusal) { _ = try Vault.checkFiles(vault.path, calls: Calls()) }
    }

    @Test func `one segment that may only be read`() throws {
        final class Calls: ForwardingCalls {
            func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
                if case .open("000001.seg", let flags) = call, flags & O_ACCMODE != O_RDONLY {
                    throw .accessDenied
                }
            }
        }
        let vault = try makeWritten(spaces: 1)
        try expect(.io(.accessDenied), vault.path, Calls())
    }

    @Test(arguments: [0, 1]) func `a segment of pages is missing`(number: Int) throws {
        let vault = try makeWritten(spaces: 1)
        let (path, other) = (try segment(vault, number).path, try segment(vault, 1 - number).path)
        try FileManager.default.moveItem(atPath: path, toPath: directory.path + "/kept")
        try expect(.segmentMissing(number), vault.path)
        // A mount leaves it alone: it may still be put back.
        #expect(!FileManager.default.fileExists(atPath: path))
        try FileManager.default.moveItem(atPath: directory.path + "/kept", toPath: path)
        #expect(try firstPage(vault.path) == 7)
        for path in [path, other] { try FileManager.default.removeItem(atPath: path) }
        #expect(throws: VaultError.self) { try firstPage(vault.path, .writingIfPossible) }
    }

    @Test(arguments: [0, 1]) func `a segment of pages is short`(number: Int) throws {
        let vault = try makeWritten(spaces: 1)
        let path = try segment(vault, number).path
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path))
        for size in [0, 4096, 20_000, 70_000] {
            #expect(truncate(path, off_t(size)) == 0)
            try expect(.segmentShort(number), vault.path)
        }
        try bytes.write(to: URL(fileURLWithPath: path))
        #expect(try firstPage(vault.path) == 7)
    }

    /// Where the file of all spaces was cut, a mount makes its last number whole and no more.
    @Test func `segments behind the end of a file that was cut are missing, and a repair makes them anew`()
        throws
    {
        let vault = try makeWritten(spaces: 2)
        let second = try segment(vault, 1)
        #expect(truncate(second.path, off_t(second.start)) == 0)
        let begun = UInt64(vault.index) * second.length
        if begun == 0 { try expect(.segmentMissing(1), vault.path) }
        // Of the spaces together only whole numbers count, and only a growth that was begun is completed.
        #expect(truncate(second.path, off_t(2 * second.length)) == 0)
        try expect(.segmentMissing(1), vault.path)
        #expect(try Vault.info(vault.path).segmentsPerSpace == 1)
        try patiently { try unlock(vault.path).repairFiles(segmentCount: 2) }
        #expect(try Vault.info(vault.path).segmentsPerSpace == 2)
        try open(vault.path, .writing) { space in
            #expect(try space.page(0) == 7)
            space.stage(0, 8)
            try space.commit(durable: true)
            try space.close()
        }
        #expect(try firstPage(vault.path) == 8)
    }

    /// A row of the catalogue, or a count, that speaks of missing bytes: nothing may be written behind the file's
    /// end, where it would leave a hole in other spaces.
    @Test func `nothing is written behind the end of the file of all spaces`() throws {
        let vault = try makeWritten(spaces: 2)
        try open(vault.path, .writing) { space in
            let end = UInt64(space.segments.count) * UInt64(space.sectors.perSegment)
            let missing = StoreError.segmentMissing(space.segments.count)
            for sector in [end, end + 7] { #expect(throws: missing) { try write(space.parts.disk, sector) } }
        }
        #expect(try SegmentFile(vault.path, space: 0, 0).path.hasSuffix("/spaces"))
        let attributes = try FileManager.default.attributesOfItem(atPath: vault.path + "/spaces")
        #expect(
            attributes[.size] as? UInt64 == (try Vault.info(vault.path).bytesOnDisk) - HeaderLayout.fileBytes)
    }

    private func write(_ disk: SpaceDisk, _ sector: UInt64) throws {
        try bytes(512, seed: 1).withUnsafeBytes { try disk.write(sector, $0) }
    }

    // MARK: While it is open

    /// A change to the file of a segment.
    enum Loss: CaseIterable {
        case removed, moved, replaced, cut
    }

    @Test(arguments: [1, 2], Loss.allCases)
    func `a segment of pages that is lost while it is open fails the next durable commit`(
        spaces: Int, loss: Loss
    ) throws {
        let vault = try makeWritten(spaces: spaces)
        let path = try segment(vault, 0).path
        try open(vault.path, .writing) { space in
            space.stage(0, 8)
            try space.commit(durable: true)
            let kept = try Data(contentsOf: URL(fileURLWithPath: path))
            switch loss {
            case .removed: try FileManager.default.removeItem(atPath: path)
            case .moved: try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
            // Under the same name an older state of the same file.
            case .replaced: try kept.write(to: URL(fileURLWithPath: path), options: .atomic)
            case .cut: #expect(truncate(path, 0) == 0)
            }
            space.stage(0, 9)
            if loss == .cut && spaces == 1 {
                // A write behind its end makes it longer again; lost bytes are found by a check.
                try space.commit(durable: true)
            } else {
                // Of a file that is cut all behind the last write is missing.
                #expect {
                    try space.commit(durable: true)
                } throws: { error in
                    if case .segmentShort = error as? StoreError, loss == .cut { return true }
                    return error as? StoreError == .segmentMissing(0)
                }
            }
            #expect(try space.page(0) == 9)
            guard loss == .moved else { return }
            // Put back, it is as before: the same commit succeeds.
            space.stopWriting(.segmentMissing(0))
            #expect(throws: StoreError.readOnly) { try space.commit(durable: true) }
            try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
            #expect(space.resumeWriting())
            try space.commit(durable: true)
            try space.close()
        }
        if loss == .moved { #expect(try firstPage(vault.path, .reading) == 9) }
    }

    @Test func `a claim does not make the file longer that was cut`() throws {
        let vault = try makeWritten(spaces: 2)
        let path = vault.path + "/spaces"
        try open(vault.path, .writing) { space in
            #expect(truncate(path, 4096) == 0)
            space.stage(0, 8)
            #expect(throws: StoreError.readOnly) { try space.commit(durable: true) }
            #expect(space.writeStop == .segmentShort(0))
        }
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.size] as? UInt64 == 4096)
    }

    @Test func `a host that numbers a file anew at each opening is no loss`() throws {
        final class Calls: ForwardingCalls {
            let count = Mutex<UInt64>(0)
            func status(_ descriptor: Int32) throws(Errno) -> FileStatus {
                var status = try real.status(descriptor)
                status.inode = count.withLock { count in
                    count += 1
                    return count
                }
                return status
            }
        }
        let vault = try makeWritten(spaces: 1)
        try open(vault.path, .writing, Calls()) { space in
            for value in 8..<12 as Range<UInt8> {
                space.stage(0, value)
                try space.commit(durable: true)
            }
            try space.close()
        }
        #expect(try firstPage(vault.path) == 11)
    }

    @Test(arguments: [Errno.readOnlyFileSystem, .accessDenied])
    func `a host that begins to refuse writing ends it at once`(error: Errno) throws {
        final class Calls: ForwardingCalls {
            let error: Errno
            let isOn = Mutex(false)
            init(_ error: Errno) { self.error = error }
            func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
                if case .write = call, isOn.withLock({ $0 }) { throw error }
            }
        }
        let vault = try makeWritten(spaces: 1)
        let calls = Calls(error)
        let space = try unlock(vault.path, calls).openSpace(.writing)
        let data = bytes(200_000, seed: 1)
        let runs = try space.writeAll(1, data)
        calls.isOn.withLock { $0 = true }
        #expect(throws: StoreError.io(error)) { try space.writeAll(2, data) }
        #expect(space.writeStop == .io(error))
        #expect(throws: StoreError.readOnly) { try space.writeAll(3, data) }
        #expect(try space.readAll(1, runs) == data)
        // A reason for good is not replaced, and nothing is written after that though the host would take it.
        calls.isOn.withLock { $0 = false }
        space.stopWriting(.claimLost)
        #expect(space.writeStop == .io(error))
        space.stopWriting(.givenUp)
        #expect(space.writeStop == .givenUp && !space.resumeWriting())
        #expect(throws: StoreError.readOnly) { try space.commit(durable: true) }
    }

    @Test func `a segment of content without a file costs no write`() throws {
        let path = try makeVault(directory)
        var kept: Space? = try openSpace(path)
        let data = bytes(20 << 20, seed: 2)
        kept?.adopt(try kept?.writeAll(1, data) ?? [])
        try kept?.commit(durable: true)
        try kept?.close()
        kept = nil
        let lost = directory.path + "/vault/segments/000002.seg"
        try FileManager.default.removeItem(atPath: lost)
        let space = try openSpace(path)
        for number in 2..<12 as Range<UInt64> {
            let runs = try space.writeAll(number, bytes(300_000, seed: number))
            space.adopt(runs)
            #expect(try space.readAll(number, runs) == bytes(300_000, seed: number))
        }
        try space.commit(durable: true)
        #expect(!FileManager.default.fileExists(atPath: lost))
    }

    @Test func `a log of a backup that cannot be removed keeps the vault from being changed`() throws {
        final class Calls: ForwardingCalls {
            func unlink(_ directory: Int32, _ path: String) throws(Errno) { throw .accessDenied }
        }
        let vault = try makeWritten(spaces: 2)
        try Data("x".utf8).write(to: URL(fileURLWithPath: vault.path + "/" + CopyLog.name))
        try expect(.io(.accessDenied), vault.path, Calls())
    }

    // MARK: Passwords

    @Test func `passwords are not changed where the header cannot be written`() throws {
        let vault = try makeWritten(spaces: 2)
        let calls = ReadOnlyHost(.readOnlyFileSystem)
        let refused = VaultError.notWritable(.io(.readOnlyFileSystem))
        #expect(throws: refused) {
            try Vault.changePassword(vault.path, old: secret("one"), new: secret("two"), calls: calls)
        }
        #expect(throws: refused) {
            try Vault.addSpace(vault.path, new: secret("two"), surviving: [secret("one")], calls: calls)
        }
        #expect(throws: refused) {
            try Vault.removeSpace(vault.path, password: secret("one"), calls: calls)
        }
        #expect(throws: refused) {
            try Vault.grow(vault.path, bytesPerSpace: 32 << 20, calls: calls) { _, _ in }
        }
        let image = try Vault.headerImage(vault.path, calls: calls)
        #expect(throws: refused) { _ = try HeaderRestoration(vault.path, image: image, calls: calls) }
        #expect(try firstPage(vault.path) == 7)
    }
}
