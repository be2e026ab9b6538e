import Foundation
import LibraryFixtures
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import PhotoRules
@testable import VaultStore

/// A client's request that waits until all is compared, unless it is cancelled.
private final class PatientRequest: LongRequest, @unchecked Sendable {
    private let begin: @Sendable () -> Void
    private let lock = NSLock()
    private var cancellations: [Cancellation] = []
    private var isEarly = false

    /// - Parameter begin: called when it becomes a long one.
    init(begin: @escaping @Sendable () -> Void = {}) { self.begin = begin }

    func lasting(_ work: (Cancellation) -> Void) {
        begin()
        let cancellation = Cancellation()
        let isCancelled = lock.withLock {
            cancellations.append(cancellation)
            return isEarly
        }
        if isCancelled { cancellation.cancel() }
        work(cancellation)
    }

    var isCancelled: Bool { lock.withLock { isEarly } }

    /// How often it became a long one.
    var count: Int { lock.withLock { cancellations.count } }

    func cancel() {
        lock.withLock {
            isEarly = true
            for cancellation in cancellations { cancellation.cancel() }
        }
    }
}

/// Something that another thread does, and how it ended.
private final class Task: @unchecked Sendable {
    private let done = DispatchSemaphore(value: 0)
    private let failure = Mutex<(any Error)?>(nil)

    init(_ body: @escaping @Sendable () throws -> Void) {
        Thread.detachNewThread { [self] in
            do { try body() } catch { failure.withLock { $0 = error } }
            done.signal()
        }
    }

    /// Throws its error.
    var isEnded: Bool {
        get throws {
            guard done.wait(timeout: .now()) == .success else { return false }
            done.signal()
            if let error = failure.withLock({ $0 }) { throw error }
            return true
        }
    }

    func wait() throws {
        try #require(done.wait(timeout: .now() + 300) == .success)
        done.signal()
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

/// Photos with the same bytes, while these are compared at length.
@Suite("Photos and plain files: classification that takes long", .serialized) struct LongComparisonTests {
    /// A read of a whole chunk: only large files have these.
    private static let chunkRead = Int(Chunk.bytes)
    private static let picture = jpeg(more: 1) + noise(6 << 20, seed: 5)

    /// A library that compares everything at length, with a photo and small files.
    /// Without versions: an edit of a part reads the rest, and reads are held here.
    private func fixture() throws -> Fixture {
        let fixture = try Fixture(bytes: 256 << 20)
        try fixture.close()
        try fixture.reopen {
            $0.versions = .off
            $0.limits.briefComparisonBytes = 0
            $0.limits.readChunks = 1
        }
        try fixture.put("albums/a.jpg", Self.picture)
        try fixture.put("albums/note", noise(5000))
        return fixture
    }

    /// A request that waits in the middle of comparing.
    private func heldRequest(_ fixture: Fixture) -> PatientRequest {
        let calls = fixture.vault.calls
        return PatientRequest { calls.holdReads(of: Self.chunkRead, after: 5) }
    }

    /// Writes a duplicate and closes it on another thread, where the request waits.
    private func beginClosing(_ fixture: Fixture, _ path: String, _ request: PatientRequest) throws -> (
        Handle, Task
    ) {
        let handle = try fixture.createOpen(path)
        try fixture.write(handle, Self.picture)
        let held = fixture.vault.calls.heldReads
        let task = Task { try fixture.library.flush(handle, for: request) }
        try #require(try eventually { try task.isEnded || fixture.vault.calls.heldReads > held })
        #expect(try !task.isEnded)
        return (handle, task)
    }

    /// Closes a duplicate; `body` is run while it is compared. Nothing of it is left: a handle keeps the
    /// vault locked.
    private func whileClosing(
        _ fixture: Fixture, _ path: String, _ request: PatientRequest, _ body: () throws -> Void
    ) throws {
        let (handle, task) = try beginClosing(fixture, path, request)
        let result = Result { try body() }
        let before = fixture.vault.calls.readCount
        fixture.vault.calls.holdReads(of: nil)
        try task.wait()
        let isCancelled = request.isCancelled || fixture.library.deferredWork.isCancelled
        // It ends at the next piece: 1 MiB of each of two files.
        if isCancelled { #expect(fixture.vault.calls.readCount - before <= 40) }
        fixture.library.release(handle)
        try result.get()
    }

    @Test func `nothing but the close waits`() throws {
        let fixture = try fixture()
        let request = heldRequest(fixture)
        try whileClosing(fixture, "albums/b.jpg", request) {
            #expect(request.count == 1)
            // All of this would wait for ever.
            try fixture.put("albums/other.jpg", jpeg(more: 2))
            #expect(try fixture.get("albums/note") == noise(5000))
            try fixture.mkdir("albums/Trip")
            try fixture.mv("albums/other.jpg", "albums/Trip/other.jpg")
            try fixture.put("albums/Trip/more", noise(50_000))
            let note = try fixture.open("albums/note")
            try fixture.write(note, [1, 2, 3])
            try fixture.library.fsync(note, dataOnly: false)
            try fixture.close(note)
            #expect(try fixture.stat("albums/b.jpg").size == UInt64(Self.picture.count))
            // The very file, too: its bytes are safe, and other closes leave it to the first.
            let again = try fixture.open("albums/b.jpg")
            try fixture.library.fsync(again, dataOnly: false)
            #expect(again.state?.hasUnsaved == false)
            try fixture.close(again)
            let seen = fixture.space.generation
            try fixture.library.makeDurable()
            try fixture.rm("albums/Trip/more")
            #expect(eventually { fixture.library.isCommitted })
            #expect(fixture.space.generation > seen)
            #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/other.jpg"])
        }
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/other.jpg"])
        #expect(try fixture.isCopy("albums/b.jpg"))
        #expect(request.count == 1)
        try fixture.close()
    }

    @Test func `a file that changes meanwhile is filed by its bytes then`() throws {
        let fixture = try fixture()
        func change() throws {
            var other: Handle?
            try whileClosing(fixture, "albums/b.jpg", heldRequest(fixture)) {
                let opened = try fixture.open("albums/b.jpg", O_WRONLY)
                try fixture.write(opened, [77], at: UInt64(Self.picture.count - 1))
                other = opened
            }
            // The last writer decides.
            #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
            if let other { try fixture.close(other) }
        }
        try change()
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        try fixture.close()
    }

    @Test func `a photo that changes meanwhile is nobody's equal`() throws {
        let fixture = try fixture()
        try whileClosing(fixture, "albums/b.jpg", heldRequest(fixture)) {
            let photo = try fixture.open("albums/a.jpg", O_WRONLY)
            try fixture.write(photo, [0xFF, 0xD8, 0xFF], at: 0)
            try fixture.close(photo)
        }
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        #expect(try fixture.get("albums/b.jpg") == Self.picture)
        try fixture.close()
    }

    @Test(arguments: [false, true])
    func `a cancelled comparison is done afterwards`(isNextSession: Bool) throws {
        let fixture = try fixture()
        let request = heldRequest(fixture)
        try whileClosing(fixture, "albums/b.jpg", request) { request.cancel() }
        #expect(request.count == 1)
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        #expect(try !fixture.isCopy("albums/b.jpg"))
        if isNextSession {
            try fixture.kill()
        } else {
            fixture.library.startDeferredWork()
            #expect(eventually { (try? fixture.isCopy("albums/b.jpg")) == true })
        }
        #expect(try fixture.isCopy("albums/b.jpg"))
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        try fixture.close()
    }

    @Test func `the end of a mount calls it off, and the next session goes on`() throws {
        let fixture = try fixture()
        try whileClosing(fixture, "albums/b.jpg", heldRequest(fixture)) { fixture.library.cancelLongTasks() }
        #expect(try !fixture.isCopy("albums/b.jpg"))
        try fixture.close()
        try fixture.reopen {
            $0.limits.briefComparisonBytes = 0
            $0.limits.readChunks = 1
        }
        #expect(try fixture.isCopy("albums/b.jpg"))
        try fixture.close()
    }

    @Test func `a rename does not wait, and the photo is merged afterwards`() throws {
        let fixture = try fixture()
        defer { fixture.vault.calls.holdReads(of: nil) }
        try fixture.put("albums/.b.jpg.part", Self.picture)
        // More than a look reads.
        fixture.vault.calls.holdReads(of: Self.chunkRead, after: 40)
        try fixture.mv("albums/.b.jpg.part", "albums/b.jpg")
        #expect(try fixture.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        fixture.vault.calls.holdReads(of: nil)
        fixture.library.startDeferredWork()
        #expect(eventually { (try? fixture.isCopy("albums/b.jpg")) == true })
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        try fixture.close()
    }

    @Test func `work that a session left goes on in a thread of its own, and is cancelled`() throws {
        let fixture = try fixture()
        defer { fixture.vault.calls.holdReads(of: nil) }
        try fixture.put("albums/.b.jpg.part", Self.picture)
        try fixture.mv("albums/.b.jpg.part", "albums/b.jpg")
        try fixture.close()
        let library = try Library.open(try fixture.vault.unlock(), options: fixture.library(briefBytes: 0))
        fixture.vault.calls.holdReads(of: Self.chunkRead, after: 40)
        library.startDeferredWork()
        try #require(eventually { fixture.vault.calls.heldReads > 0 })
        let closing = Task { try library.close() }
        #expect(eventually { library.deferredWork.isCancelled })
        let before = fixture.vault.calls.readCount
        fixture.vault.calls.holdReads(of: nil)
        try closing.wait()
        #expect(fixture.vault.calls.readCount - before < 100)
    }

    @Test func `requests beyond some leave it to the follow-up`() throws {
        let fixture = try fixture()
        defer { fixture.vault.calls.holdReads(of: nil) }
        var open: [(Handle, Task)] = []
        for number in 0..<8 {
            open.append(try beginClosing(fixture, "albums/b\(number).jpg", heldRequest(fixture)))
            // A look at the next reads too.
            if number < 7 { fixture.vault.calls.holdReads(of: Self.chunkRead, after: .max / 2) }
        }
        fixture.vault.calls.holdReads(of: Self.chunkRead, after: .max / 2)
        let handle = try fixture.createOpen("albums/c.jpg")
        try fixture.write(handle, Self.picture)
        try fixture.library.flush(handle, for: PatientRequest())
        fixture.library.release(handle)
        fixture.vault.calls.holdReads(of: nil)
        for (handle, task) in open {
            try task.wait()
            fixture.library.release(handle)
        }
        #expect(try !fixture.isCopy("albums/c.jpg"))
        fixture.library.startDeferredWork()
        #expect(eventually { (try? fixture.isCopy("albums/c.jpg")) == true })
        #expect(try fixture.moments() == ["2024-05-01/a.jpg"])
        try fixture.close()
    }

    @Test func `a file that is removed meanwhile is passed over`() throws {
        let fixture = try fixture()
        try whileClosing(fixture, "albums/b.jpg", heldRequest(fixture)) { try fixture.rm("albums/b.jpg") }
        try fixture.rm("moments/2024-05-01/a.jpg")
        try fixture.rm("albums/note")
        try fixture.expectNothingLeft()
    }
}

extension Fixture {
    /// Whether a file shares the bytes of a photo and stands for it.
    fileprivate func isCopy(_ path: String) throws -> Bool {
        let ino = try ino(path)
        return try library.session.locked { tree throws(FileError) in try tree.inode(ino).isCopy }
    }

    fileprivate func library(briefBytes: UInt64) -> LibraryOptions {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.limits.briefComparisonBytes = briefBytes
        options.limits.readChunks = 1
        options.thumbnails = .off
        return options
    }
}
