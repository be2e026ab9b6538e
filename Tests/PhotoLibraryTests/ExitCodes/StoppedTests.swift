import Foundation
import Glibc
import LibraryFixtures
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import FileRequests
@testable import PhotoLibrary
@testable import VaultStore

/// A clock that only tests and sleeping threads move.
private final class StillClock: Sendable {
    private let time = Mutex<Int64>(1_000_000)
    private let slept = Mutex<[Int64]>([])
    /// Called with the number of each sleep.
    let afterSleep = Mutex<@Sendable (Int) -> Void>({ _ in })

    var clocks: Clocks {
        var clocks = Clocks()
        clocks.monotonic = { self.time.withLock { $0 } }
        clocks.sleep = { milliseconds in
            let count = self.slept.withLock { slept in
                slept.append(milliseconds)
                return slept.count
            }
            self.pass(milliseconds)
            self.afterSleep.withLock { $0 }(count)
        }
        return clocks
    }

    var sleeps: [Int64] { slept.withLock { $0 } }
    func pass(_ milliseconds: Int64) { time.withLock { $0 += milliseconds } }
}

/// A library whose space takes no more writes.
@Suite("Exit codes: a mount that turns read-only") struct StoppedTests {
    private let clock = StillClock()

    /// A library that commits when it is told to, with a file that is durable.
    private func makeFixture(byHand: Bool = true, spaces: Int = 1) throws -> Fixture {
        let fixture = try Fixture(spaces: spaces)
        try fixture.put("albums/old", noise(300_000, seed: 1))
        try fixture.close()
        try fixture.reopen { options in
            options.commitsByHand = byHand
            options.clocks = clock.clocks
        }
        try commit(fixture)
        return fixture
    }

    /// The first write of a mount is its claim, which is synced at once.
    private func claim(_ fixture: Fixture) throws {
        try fixture.put("albums/first", [1])
        try commit(fixture)
    }

    private func commit(_ fixture: Fixture) throws { try fixture.library.session.committer.makeDurable() }

    private func status(_ fixture: Fixture) throws -> [String: String] { try control("status", fixture) }

    private func control(_ name: String, _ fixture: Fixture) throws -> [String: String] {
        let bytes = try fixture.library.getExtendedAttribute(
            1, name: Array("user.obscura.\(name)".utf8), fixture.caller)
        let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), String(parts[1]))
        }
        return Dictionary(lines, uniquingKeysWith: { $0 + "," + $1 })
    }

    // MARK: Answers

    @Test(arguments: [WriteStop.claimLost, .segmentMissing(0), .io(.readOnlyFileSystem), .io(.inputOutput)])
    func `everything that changes something is EROFS at once, and reading goes on`(stop: WriteStop) throws {
        let fixture = try makeFixture()
        try fixture.put("albums/new", noise(200_000, seed: 2))
        try expectRefusals(fixture, stop)
        fixture.closeAnyhow()
        try fixture.reopen()
        #expect(try fixture.get("albums/old") == noise(300_000, seed: 1))
    }

    private func expectRefusals(_ fixture: Fixture, _ stop: WriteStop) throws {
        let open = try fixture.open("albums/old")
        let library = fixture.library
        library.session.space.stopWriting(stop)
        let (albums, old) = (try fixture.ino("albums"), try fixture.ino("albums/old"))
        expectError(.readOnly) { try fixture.write(open, [1, 2, 3]) }
        expectError(.readOnly) { try library.ranges.allocate(open, mode: 0, offset: 0, length: 10) }
        expectError(.readOnly) {
            _ = try library.ranges.copyRange(from: open, offset: 0, to: open, offset: 200_000, count: 9)
        }
        expectError(.readOnly) { try fixture.truncate("albums/old", 5) }
        expectError(.readOnly) { try fixture.utimes("albums/old", modified: 5) }
        expectError(.readOnly) { _ = try fixture.createOpen("albums/another") }
        expectError(.readOnly) { _ = try library.open(old, flags: O_RDWR, fixture.caller) }
        expectError(.readOnly) { try fixture.mkdir("albums/Trip") }
        expectError(.readOnly) { try fixture.ln("albums/old", "albums/link") }
        expectError(.readOnly) { try fixture.mv("albums/old", "albums/moved") }
        expectError(.readOnly) { try library.unlink(albums, "old", fixture.caller) }
        expectError(.readOnly) { _ = try library.makeSymbolicLink(albums, "s", target: [1], fixture.caller) }
        expectError(.readOnly) {
            try library.setExtendedAttribute(old, name: Array("user.a".utf8), value: [1], policy: .any)
        }
        // Writes accepted before are not safe, and this is told before the end.
        expectError(.readOnly) { try library.fsync(open, dataOnly: false) }
        #expect(try fixture.ls("albums") == ["new", "old"])
        #expect(try fixture.get("albums/new") == noise(200_000, seed: 2))
        #expect(try fixture.get("albums/old") == noise(300_000, seed: 1))
        // A reader's or an idle writer's close is none of it.
        try fixture.close(open)
        let found = try status(fixture)
        #expect(found["readonly"] == "yes" && found["unwritten"] == "yes" && found["reason"] == stop.reason)
        expectError(.readOnly) { try library.close() }
    }

    @Test func `a failed commit is told to those that asked before it began`() {
        var tickets = CommitTickets()
        let first = (tickets.ask(), tickets.ask())
        let begun = tickets.newest
        let second = tickets.ask()
        tickets.answer(through: begun, .noRoom)
        #expect(tickets.isAnswered(first.1) && !tickets.isAnswered(second) && tickets.isAsked)
        // The next begins to wait, and is answered, before the others wake up.
        let third = tickets.ask()
        tickets.answer(through: tickets.newest, nil)
        #expect(tickets.takeFailure(of: second) == nil && tickets.takeFailure(of: third) == nil)
        #expect(tickets.takeFailure(of: first.0) == .noRoom && tickets.takeFailure(of: first.1) == .noRoom)
        #expect(tickets.takeFailure(of: first.0) == nil && !tickets.isAsked)
    }

    /// One that begins to wait must not take the failure from another that has not woken up yet.
    @Test func `each of many that wait for commits is told that they fail`() throws {
        let fixture = try makeFixture(byHand: false)
        try claim(fixture)
        try fixture.put("albums/new", noise(200_000, seed: 2))
        fixture.vault.calls.failSyncs(.inputOutput)
        let committer = fixture.library.session.committer
        let lies = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: 8) { _ in
            for _ in 0..<100 where (try? committer.makeDurable()) != nil {
                lies.wrappingAdd(1, ordering: .relaxed)
            }
        }
        #expect(lies.load(ordering: .relaxed) == 0)
        fixture.vault.calls.failSyncs(nil)
        try? commit(fixture)
        try fixture.close()
        try fixture.reopen()
        #expect(try fixture.get("albums/new") == noise(200_000, seed: 2))
    }

    @Test func `where nothing is left to write, nothing fails`() throws {
        let fixture = try makeFixture()
        fixture.library.session.space.stopWriting(.claimLost)
        let open = try fixture.open("albums/old", O_RDONLY)
        try fixture.library.fsync(open, dataOnly: false)
        fixture.library.release(open)
        #expect(try status(fixture)["unwritten"] == "no")
        #expect(try control("settle", fixture) == ["written": "yes"])
        try fixture.library.close()
        fixture.closeAnyhow()
    }

    @Test func `writes that were given up are no failure, and were not written`() throws {
        let fixture = try makeFixture()
        try fixture.put("albums/new", noise(200_000, seed: 2))
        fixture.library.session.space.stopWriting(.io(.inputOutput))
        let before = fixture.vault.calls.writeCount
        fixture.library.giveUp()
        try fixture.library.close()
        // The two copies of the claim are erased.
        #expect(fixture.vault.calls.writeCount <= before + 2)
        fixture.closeAnyhow()
        try fixture.reopen()
        #expect(try fixture.ls("albums") == ["old"])
    }

    @Test func `a thread that waits for a commit is answered when writing ends`() throws {
        let fixture = try makeFixture(byHand: false)
        try claim(fixture)
        fixture.vault.calls.failSyncs(.inputOutput)
        try fixture.put("albums/new", [1])
        let isAnswered = Mutex(false)
        let library = fixture.library
        Thread.detachNewThread {
            let open = try? fixture.open("albums/new")
            _ = try? open.map { try library.fsync($0, dataOnly: false) }
            isAnswered.withLock { $0 = true }
        }
        fixture.library.session.space.stopWriting(.claimLost)
        #expect(eventually { isAnswered.withLock { $0 } })
        fixture.vault.calls.failSyncs(nil)
        expectError(.readOnly) { try library.close() }
        fixture.closeAnyhow()
    }

    // MARK: For good

    @Test func `which errors are for good, and when`() {
        let bounds = RetryBounds()
        func stop(_ error: StoreError, every milliseconds: Int64, count: Int) -> (WriteStop?, attempts: Int) {
            var failures = CommitFailures()
            for attempt in 1...count {
                let now = 5000 + Int64(attempt - 1) * milliseconds
                if let stop = failures.note(error, now: now, bounds) { return (stop, attempt) }
            }
            return (nil, count)
        }
        for error in [Errno.readOnlyFileSystem, .accessDenied, .notPermitted, .noEntry, .stale] {
            #expect(stop(.io(error), every: 0, count: 9) == (.io(error), 1))
        }
        #expect(stop(.segmentMissing(3), every: 0, count: 9) == (.segmentMissing(3), 1))
        #expect(stop(.segmentShort(3), every: 0, count: 9) == (.segmentShort(3), 1))
        #expect(stop(.noRoom, every: 60_000, count: 1000) == (nil, 1000))
        for error in [Errno.inputOutput, Errno(ENODEV), Errno(ETIMEDOUT), Errno(ENOTCONN)] {
            // Both the attempts and the time.
            #expect(stop(.io(error), every: 1, count: 1000) == (nil, 1000))
            #expect(stop(.io(error), every: 1000, count: 1000) == (.io(error), 31))
            #expect(stop(.io(error), every: 60_000, count: 1000) == (.io(error), bounds.attempts))
        }
        #expect(stop(.damaged, every: 1000, count: 1000) == (.io(.inputOutput), 31))
    }

    @Test func `commits that go on failing end writing, a single success begins anew`() throws {
        let fixture = try makeFixture()
        let handle = try fixture.createOpen("albums/f")
        func attempt() throws -> FileError? {
            do throws(FileError) {
                try fixture.library.fsync(handle, dataOnly: false)
                return nil
            } catch { return error }
        }
        for round in 0..<3 {
            fixture.vault.calls.failSyncs(.inputOutput)
            try fixture.write(handle, [UInt8(round)])
            for _ in 0..<20 {
                #expect(try attempt() == .damaged)
                clock.pass(1000)
            }
            fixture.vault.calls.failSyncs(nil)
            #expect(try attempt() == nil)
            clock.pass(100_000)
        }
        // No room is no reason, however long.
        fixture.vault.calls.failSyncs(.noSpace)
        try fixture.write(handle, [7])
        for _ in 0..<50 {
            #expect(try attempt() == .noRoom)
            clock.pass(10_000)
        }
        #expect(fixture.library.writeStop == nil)
        fixture.vault.calls.failSyncs(.inputOutput)
        for second in 0..<31 {
            #expect(try attempt() == (second < 30 ? .damaged : .readOnly))
            clock.pass(1000)
        }
        #expect(fixture.library.writeStop == .io(.inputOutput))
        expectError(.readOnly) { try fixture.write(handle, [1]) }
        fixture.vault.calls.failSyncs(nil)
        expectError(.readOnly) { try fixture.library.fsync(handle, dataOnly: false) }
        fixture.library.release(handle)
        fixture.closeAnyhow()
    }

    @Test func `the committer itself finds out, and tries no more`() throws {
        let fixture = try makeFixture(byHand: false)
        try claim(fixture)
        fixture.vault.calls.failSyncs(.readOnlyFileSystem)
        try fixture.put("albums/new", noise(1000))
        let handle = try fixture.open("albums/new")
        expectError(.readOnly) { try fixture.library.fsync(handle, dataOnly: false) }
        #expect(eventually { fixture.library.writeStop == .io(.readOnlyFileSystem) })
        expectError(.readOnly) { try fixture.put("albums/other", [1]) }
        let calls = fixture.vault.calls.callCount
        for _ in 0..<3 { expectError(.readOnly) { try fixture.library.fsync(handle, dataOnly: false) } }
        #expect(fixture.vault.calls.callCount == calls)
        fixture.library.release(handle)
        fixture.vault.calls.failSyncs(nil)
        fixture.closeAnyhow()
    }

    /// The files of an only space, and that of two: before the first write of a mount, or after it.
    @Test(arguments: [(1, "segments/000000.seg"), (1, "segments/000001.seg"), (2, "spaces")], [false, true])
    func `a file of the vault that is removed under a live library`(
        file: (spaces: Int, name: String), isClaimed: Bool
    ) throws {
        let fixture = try makeFixture(spaces: file.spaces)
        if isClaimed { try claim(fixture) }
        let number = file.name.hasSuffix("1.seg") ? 1 : 0
        let kept = try loseAndFind("\(fixture.vault.path)/\(file.name)", number, fixture)
        try fixture.remount()
        #expect(try fixture.get("albums/new") == kept)
    }

    /// Returns the bytes of `albums/new`.
    private func loseAndFind(_ path: String, _ number: Int, _ fixture: Fixture) throws -> [UInt8] {
        try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
        let handle = try fixture.createOpen("albums/new")
        // Where nothing can be claimed nothing is accepted; else it is kept in memory.
        let isAccepted = (try? fixture.write(handle, noise(70_000))) != nil
        expectError(.readOnly) { try fixture.library.fsync(handle, dataOnly: false) }
        #expect(fixture.library.writeStop == .segmentMissing(number))
        expectError(.readOnly) { try fixture.write(handle, [1]) }
        #expect(try fixture.get("albums/old") == noise(300_000, seed: 1))
        let found = try status(fixture)
        #expect(found["reason"] == "segment 00000\(number) is missing")
        let advice = "unmount it, put it back from a backup if there is one, then run obscura check"
        #expect(found["advice"] == "\(advice) \(fixture.vault.path) --repair")
        // Not yet; and then it is there again, and nothing is lost.
        #expect(try control("settle", fixture)["written"] == "no")
        try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
        #expect(try control("settle", fixture) == ["written": "yes"])
        #expect(fixture.library.writeStop == nil)
        try fixture.write(handle, [9], at: 70_000)
        try fixture.close(handle)
        return (isAccepted ? noise(70_000) : [UInt8](repeating: 0, count: 70_000)) + [9]
    }

    // MARK: Files that are not written

    @Test func `files are named that are not written`() throws {
        let fixture = try makeFixture()
        try fixture.put("albums/a", noise(1000))
        try fixture.put("albums/gone", noise(1000))
        try fixture.put("albums/moved", noise(1000))
        fixture.library.session.committer.commitByHand(durable: false)
        try fixture.rm("albums/gone")
        try fixture.mv("albums/moved", "albums/there\n")
        try fixture.put("albums/p.jpg", jpeg("2024-05-01", more: 1))
        let open = try fixture.createOpen("albums/open")
        try fixture.write(open, [1, 2, 3])
        fixture.vault.calls.failSyncs(Errno(ENODEV))
        fixture.library.session.space.stopWriting(.io(Errno(ENODEV)))
        let changes = try fixture.library.session.unwrittenChanges(paths: 10)
        #expect(
            changes
                == UnwrittenChanges(
                    fileCount: 4, isMore: false,
                    paths: ["albums/a", "albums/there\n", "moments/2024-05-01/p.jpg", "albums/open"],
                    isAny: true))
        let answer = try control("settle", fixture)
        #expect(answer["files"] == "4" && answer["written"] == "no" && answer["full"] == "no")
        #expect(answer["path"] == "albums/a,albums/there?,moments/2024-05-01/p.jpg,albums/open")
        #expect(answer["reason"] == "the vault's disk takes no more writes (No such device)")
        fixture.vault.calls.failSyncs(nil)
        fixture.library.release(open)
        fixture.closeAnyhow()
    }

    @Test func `durable files are not named`() throws {
        let fixture = try makeFixture()
        for number in 0..<20 {
            try fixture.put("albums/f\(number)", noise(1000, seed: number))
            if number % 3 == 0 { fixture.library.session.committer.commitByHand(durable: number % 2 == 0) }
        }
        try commit(fixture)
        #expect(try fixture.library.session.unwrittenChanges(paths: 10) == UnwrittenChanges())
        try fixture.mkdir("albums/Trip")
        let changes = try fixture.library.session.unwrittenChanges(paths: 10)
        #expect(changes.isAny && changes.fileCount == 0)
        try fixture.close()
    }

    @Test func `more files than are counted`() {
        var files = UnwrittenFiles(countMax: 4096)
        for ino in 0..<3000 as Range<UInt64> { files.note(ino) }
        files.freeze()
        #expect(files.inodes.count == 3000 && !files.isMore)
        for ino in 2000..<6000 as Range<UInt64> { files.note(ino) }
        #expect(files.inodes.count == 6000 && !files.isMore)
        files.freeze()
        #expect(files.isMore)
        files.note(9000)
        files.noteDurable()
        #expect(files.inodes == [9000] && !files.isMore)
        for ino in 0..<5000 as Range<UInt64> { files.note(ino) }
        #expect(files.isMore && files.inodes.count == 4096)
    }

    // MARK: The end

    @Test func `a patient end tries again, and nothing is lost`() throws {
        let fixture = try makeFixture()
        try fixture.put("albums/new", noise(200_000, seed: 2))
        try closePatiently(fixture)
        fixture.closeAnyhow()
        try fixture.reopen()
        #expect(try fixture.get("albums/new") == noise(200_000, seed: 2))
        #expect(try fixture.get("albums/open") == noise(1000, seed: 3))
    }

    /// On a disk that fails for five seconds, with a file that is open.
    private func closePatiently(_ fixture: Fixture) throws {
        let open = try fixture.createOpen("albums/open")
        try fixture.write(open, noise(1000, seed: 3))
        let calls = fixture.vault.calls
        calls.failSyncs(.inputOutput)
        clock.afterSleep.withLock { $0 = { count in if count == 5 { calls.failSyncs(nil) } } }
        try fixture.library.close(isPatient: true)
        #expect(clock.sleeps.count == 5)
        fixture.library.release(open)
    }

    @Test(arguments: [Errno.inputOutput, .noSpace, .readOnlyFileSystem])
    func `its patience ends`(error: Errno) throws {
        let fixture = try makeFixture()
        try fixture.put("albums/new", noise(200_000, seed: 2))
        fixture.vault.calls.failSyncs(error)
        #expect(throws: FileError.self) { try fixture.library.close(isPatient: true) }
        let bounds = RetryBounds()
        let most = Int(bounds.milliseconds / bounds.pauseMilliseconds)
        #expect(clock.sleeps.count == (error == .readOnlyFileSystem ? 0 : most))
        fixture.vault.calls.failSyncs(nil)
        fixture.closeAnyhow()
    }
}
