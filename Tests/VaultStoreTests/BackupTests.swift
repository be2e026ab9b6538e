import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// The real calls, until this many changes of the disk have been made: from then on every one fails, also those that
/// clean up, as after a kill. Nothing is synced, which takes time and changes nothing that a test sees.
final class DyingCalls: ForwardingCalls {
    private let left: Mutex<Int>
    private let onlyError: Errno?

    /// - Parameter onlyError: one change fails, with this error, and those after it do not.
    init(after changes: Int = .max, onlyError: Errno? = nil) {
        left = Mutex(changes)
        self.onlyError = onlyError
    }

    /// Whether the failure has come.
    var isRetired: Bool { left.withLock { $0 < 0 } }

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        guard call.isChange else { return }
        let isDue = left.withLock { left in
            let isFirst = left == 0
            left = max(left - 1, -1)
            return isFirst || (left < 0 && onlyError == nil)
        }
        if isDue { throw onlyError ?? .inputOutput }
    }

    /// The last one is torn.
    func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        if isRetired && onlyError == nil { throw .inputOutput }
        do throws(Errno) { try willCall(.write, d) } catch {
            _ = try real.pwrite(
                d, UnsafeRawBufferPointer(rebasing: bytes.prefix(bytes.count / 2)), at: offset)
            throw error
        }
        return try real.pwrite(d, bytes, at: offset)
    }
    func dataSync(_ d: Int32) throws(Errno) { try willCall(.sync, d) }
    func sync(_ d: Int32) throws(Errno) { try willCall(.sync, d) }
}

/// A copy of a vault that nobody has open is that vault, byte by byte; and is never less than the copy before.
@Suite("Commands: backup, of a vault") struct BackupTests {
    let directory = TemporaryDirectory()
    private var copy: String { directory.path + "/copy" }

    @discardableResult
    private func backUp(
        _ path: String, calls: any FileSystemCalls = DyingCalls()
    ) throws -> BackupReport {
        try Vault.backup(path, to: copy, calls: calls) { _, _ in }
    }

    /// Every file below a directory, by its path from there.
    private func files(_ path: String) throws -> [String: Data] {
        let names = try FileManager.default.subpathsOfDirectory(atPath: path)
        var found: [String: Data] = [:]
        for name in names {
            let attributes = try FileManager.default.attributesOfItem(atPath: path + "/" + name)
            if attributes[.type] as? FileAttributeType == .typeDirectory { continue }
            found[name] = try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))
            // The claims' slots, of which a copy takes nothing.
            for space in 0..<(name == "spaces" ? 2 : 1) {
                for number in 0..<2 {
                    guard let segment = try? SegmentFile(path, space: space, number),
                        segment.path == path + "/" + name, let bytes = found[name]
                    else { continue }
                    let start = Int(segment.start) + RootLayout.claimSlot * 4096
                    if bytes.count >= start + 4096 { found[name]?.resetBytes(in: start..<start + 4096) }
                }
            }
        }
        return found
    }

    private func change(_ path: String, _ round: UInt8) throws {
        let space = try openSpace(path, calls: DyingCalls())
        space.stage(0, round)
        for page in 1..<20 { space.stage(UInt32(page), round) }
        space.adopt(try space.writeAll(UInt64(round), bytes(300_000, seed: UInt64(round))))
        try space.commit(durable: true)
        try space.close()
    }

    /// So often that the pages of the first root have been overwritten.
    private func changeOften(_ path: String) throws {
        for round in 2...6 as ClosedRange<UInt8> { try change(path, round) }
    }

    /// The bytes of all pages.
    private func page(_ path: String) throws -> UInt8 {
        let space = try patiently { try openSpace(path, readOnly: true) }
        let pages = Set(try (0..<space.pageCount).map { try space.page($0) })
        return pages.count == 1 ? pages.first ?? 0 : 0
    }

    private func makeVault(spaces: Int) throws -> String {
        try VaultStoreTests.makeVault(
            directory, spaces: spaces, bytes: spaces == 1 ? nil : 16 << 20, calls: DyingCalls())
    }

    @Test(arguments: [1, 2]) func `a backup copies all, and then what has changed`(spaces: Int) throws {
        let path = try makeVault(spaces: spaces)
        try change(path, 1)
        let first = try backUp(path)
        let roots = UInt64(2 * spaces * RootSnapshot.rootBytes)
        #expect(first.bytesWritten <= first.bytes && first.bytesWritten + roots >= first.bytes)
        #expect(try files(copy) == files(path))
        #expect(try page(copy) == 1)

        let again = try backUp(path)
        #expect(again.bytesWritten == 0 && again.bytes == first.bytes)
        try change(path, 2)
        let second = try backUp(path)
        // 300,000 bytes of content, and a hundred pages at most.
        #expect(second.bytesWritten > 300_000 && second.bytesWritten < 1_500_000)
        #expect(try files(copy) == files(path))
        #expect(try page(copy) == 2)
    }

    /// The roots are those of the copy, but bytes differ: nothing was written, so it is damage, here or there.
    @Test(arguments: [1, 2]) func `what differs without a change is not copied`(spaces: Int) throws {
        let path = try makeVault(spaces: spaces)
        try change(path, 1)
        try backUp(path)
        let before = try files(copy)
        for space in 0..<spaces {
            try SegmentFile(path, space: space, 2).change(at: 100_000, count: 3) { Data($0.map { $0 ^ 7 }) }
        }
        let found = try backUp(path)
        #expect(found.contradicting.map(\.bytes) == [UInt64](repeating: 4096, count: spaces))
        #expect(found.bytesWritten == 0)
        #expect(try files(copy) == before)
        // A change of the space explains any difference in it, and none in another.
        try change(path, 2)
        let later = try backUp(path)
        #expect(later.contradicting.count == spaces - 1 && later.bytesWritten > 0)
    }

    /// A vault of several spaces has no page of zeros.
    @Test func `zeros are not copied over a copy`() throws {
        let path = try makeVault(spaces: 2)
        try change(path, 1)
        try backUp(path)
        try change(path, 2)
        let before = try SegmentFile(copy, space: 0, 3).read(at: 8192, count: 8192)
        for space in 0..<2 { try SegmentFile(path, space: space, 3).write(Data(count: 8192), at: 8192) }
        #expect(try backUp(path).contradicting.map(\.bytes) == [8192, 8192])
        #expect(try SegmentFile(copy, space: 0, 3).read(at: 8192, count: 8192) == before)
    }

    @Test func `a backup copies what grow adds`() throws {
        let path = try makeVault(spaces: 2)
        try backUp(path)
        try Vault.grow(path, bytesPerSpace: 24 << 20) { _, _ in }
        // A number that is still being made is not copied.
        #expect(truncate(path + "/spaces", 48 << 20 + 1000) == 0)
        #expect(try backUp(path).bytesWritten == 16 << 20)
        #expect(truncate(path + "/spaces", 48 << 20) == 0)
        #expect(try files(copy) == files(path))
    }

    @Test func `a backup refuses a directory that is not its copy`() throws {
        let path = try makeVault(spaces: 1)
        #expect(throws: BackupError.destination(.otherVault)) {
            try Vault.create(
                at: copy, spaces: 1, bytesPerSpace: nil, kdf: quickKDF, password: secret("two")
            ) { _, _ in }
            try backUp(path)
        }
        let other = directory.path + "/other"
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: true)
        try Data("kept".utf8).write(to: URL(fileURLWithPath: other + "/notes"))
        #expect(throws: BackupError.destination(.notEmpty(other))) {
            _ = try Vault.backup(path, to: other) { _, _ in }
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: other) == ["notes"])
        #expect(throws: BackupError.destination(.inUse)) {
            let third = directory.path + "/third"
            _ = try Vault.backup(path, to: third) { _, _ in }
            let mounted = try openSpace(third)
            defer { withExtendedLifetime(mounted) {} }
            _ = try Vault.backup(path, to: third) { _, _ in }
        }
    }

    @Test func `a backup says what the vault has lost, and keeps it`() throws {
        let path = try makeVault(spaces: 1)
        let space = try openSpace(path, calls: DyingCalls())
        space.adopt(try space.writeAll(1, bytes(40 << 20, seed: 1)))
        try space.commit(durable: true)
        try space.close()
        try backUp(path)
        try FileManager.default.removeItem(atPath: path + "/segments/000002.seg")
        #expect(try backUp(path).missingSegments == 1)
        #expect(FileManager.default.fileExists(atPath: copy + "/segments/000002.seg"))
    }

    /// Killed after each change of the disk in turn: the first copy is no vault until it is done.
    @Test func `a first copy is no vault until it is whole`() throws {
        let path = try makeVault(spaces: 1)
        try change(path, 1)
        var kills = 0
        while true {
            try? FileManager.default.removeItem(atPath: copy)
            let calls = DyingCalls(after: kills)
            _ = try? backUp(path, calls: calls)
            guard calls.isRetired else { break }
            kills += 1
            if (try? openSpace(copy, readOnly: true)) != nil { #expect(try page(copy) == 1, "\(kills)") }
            try backUp(path)
            #expect(try files(copy) == files(path), "\(kills)")
        }
        #expect(kills > 12)
    }

    /// Killed after each change of the disk in turn, a copy has the old state or the new one, whole, and the next
    /// backup makes it the new one.
    @Test func `a copy stays what it was until the new one is whole`() throws {
        let path = try makeVault(spaces: 1)
        try change(path, 1)
        try backUp(path)
        let kept = directory.path + "/kept"
        try FileManager.default.copyItem(atPath: copy, toPath: kept)
        try changeOften(path)
        var (kills, old, new) = (0, 0, 0)
        while true {
            for isOpened in [true, false] {
                try? FileManager.default.removeItem(atPath: copy)
                try FileManager.default.copyItem(atPath: kept, toPath: copy)
                let calls = DyingCalls(after: kills)
                _ = try? backUp(path, calls: calls)
                if isOpened {
                    let page = try page(copy)
                    #expect(page == 1 || page == 6, "\(kills)")
                    if page == 1 { old += 1 } else { new += 1 }
                }
                try backUp(path)
                #expect(try files(copy) == files(path), "\(kills)")
                if !calls.isRetired {
                    #expect(old > 5 && new > 5)
                    return
                }
            }
            kills += 1
        }
    }

    /// Each write and sync of a backup fails once, and its clean-up does not.
    @Test(arguments: [Errno.inputOutput, .noSpace]) func `any call may fail`(error: Errno) throws {
        let path = try makeVault(spaces: 1)
        try change(path, 1)
        try backUp(path)
        let kept = directory.path + "/kept"
        try FileManager.default.copyItem(atPath: copy, toPath: kept)
        try changeOften(path)
        var faults = 0
        while true {
            try? FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: kept, toPath: copy)
            let calls = DyingCalls(after: faults, onlyError: error)
            _ = try? backUp(path, calls: calls)
            let page = try page(copy)
            #expect(page == 1 || page == 6, "\(faults)")
            try backUp(path)
            #expect(try files(copy) == files(path), "\(faults)")
            guard calls.isRetired else { break }
            faults += 1
        }
        #expect(faults > 15)
    }

    /// A log does not count any more once the copy was open.
    @Test func `a log left behind never counts later`() throws {
        let path = try makeVault(spaces: 1)
        try change(path, 1)
        try backUp(path)
        try change(path, 2)
        // Of the changes, the log is the first: it is whole, and the copy's header is too.
        var kills = 0
        var log: Data?
        let kept = directory.path + "/kept"
        try FileManager.default.copyItem(atPath: copy, toPath: kept)
        while log == nil {
            try FileManager.default.removeItem(atPath: copy)
            try FileManager.default.copyItem(atPath: kept, toPath: copy)
            kills += 1
            _ = try? backUp(path, calls: DyingCalls(after: kills))
            let vault = try VaultFiles.open(copy, calls: LinuxCalls.shared)
            let isWhole = try CopyLog.find(in: vault)?.isWhole() ?? false
            if isWhole { log = try Data(contentsOf: URL(fileURLWithPath: copy + "/" + CopyLog.name)) }
        }
        try change(copy, 3)
        #expect(!FileManager.default.fileExists(atPath: copy + "/" + CopyLog.name))
        #expect(try page(copy) == 3)
    }
}
