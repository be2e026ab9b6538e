import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
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

    /// Throws what it threw.
    var isEnded: Bool {
        get throws {
            guard done.wait(timeout: .now()) == .success else { return false }
            done.signal()
            if let error = failure.withLock({ $0 }) { throw error }
            return true
        }
    }

    func wait() throws {
        try #require(done.wait(timeout: .now() + 60) == .success)
        done.signal()
        if let error = failure.withLock({ $0 }) { throw error }
    }
}

/// Photos with the same bytes, while these are compared at length.
@Suite(.serialized) struct LongComparisonTests {
    /// A read of a whole chunk: only large files have these.
    private static let chunkRead = Int(Chunk.bytes)
    private static let picture = jpeg(more: 1) + noise(6 << 20, seed: 5)

    /// A library that compares everything at length, with a photo and small files.
    private func rig() throws -> Rig {
        let rig = try Rig(bytes: 256 << 20)
        try rig.close()
        try rig.reopen { $0.limits.briefComparisonBytes = 0 }
        try rig.put("albums/a.jpg", Self.picture)
        try rig.put("albums/note", noise(5000))
        return rig
    }

    /// A request that waits in the middle of comparing.
    private func heldRequest(_ rig: Rig) -> PatientRequest {
        let calls = rig.vault.calls
        return PatientRequest { calls.holdReads(of: Self.chunkRead, after: 5) }
    }

    /// Writes a duplicate and closes it on another thread, where the request waits.
    private func beginClosing(_ rig: Rig, _ path: String, _ request: PatientRequest) throws -> (Handle, Task)
    {
        let handle = try rig.createOpen(path)
        try rig.write(handle, Self.picture)
        let held = rig.vault.calls.heldReads
        let task = Task { try rig.library.flush(handle, for: request) }
        try #require(try eventually { try task.isEnded || rig.vault.calls.heldReads > held })
        #expect(try !task.isEnded)
        return (handle, task)
    }

    /// Closes a duplicate; `body` is run while it is compared. Nothing of it is left: who keeps a handle keeps the
    /// vault locked.
    private func whileClosing(
        _ rig: Rig, _ path: String, _ request: PatientRequest, _ body: () throws -> Void
    ) throws {
        let (handle, task) = try beginClosing(rig, path, request)
        let result = Result { try body() }
        let before = rig.vault.calls.readCount
        rig.vault.calls.holdReads(of: nil)
        try task.wait()
        let isCalledOff = request.isCancelled || rig.library.followUp.isCalledOff
        // It ends at the next piece: 1 MiB of each of two files.
        if isCalledOff { #expect(rig.vault.calls.readCount - before <= 40) }
        rig.library.release(handle)
        try result.get()
    }

    @Test func `nothing but the close waits`() throws {
        let rig = try rig()
        let request = heldRequest(rig)
        try whileClosing(rig, "albums/b.jpg", request) {
            #expect(request.count == 1)
            // All of this would wait for ever.
            try rig.put("albums/other.jpg", jpeg(more: 2))
            #expect(try rig.get("albums/note") == noise(5000))
            try rig.mkdir("albums/Trip")
            try rig.mv("albums/other.jpg", "albums/Trip/other.jpg")
            try rig.put("albums/Trip/more", noise(50_000))
            let note = try rig.open("albums/note")
            try rig.write(note, [1, 2, 3])
            try rig.library.fsync(note, dataOnly: false)
            try rig.close(note)
            #expect(try rig.stat("albums/b.jpg").size == UInt64(Self.picture.count))
            // The very file, too: its bytes are safe, and who else closes it leaves it to the first.
            let again = try rig.open("albums/b.jpg")
            try rig.library.fsync(again, dataOnly: false)
            #expect(again.state?.hasUnsaved == false)
            try rig.close(again)
            let seen = rig.space.generation
            try rig.library.makeDurable()
            try rig.rm("albums/Trip/more")
            #expect(eventually { rig.library.isCommitted })
            #expect(rig.space.generation > seen)
            #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/other.jpg"])
        }
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/other.jpg"])
        #expect(try rig.isCopy("albums/b.jpg"))
        #expect(request.count == 1)
        try rig.close()
    }

    @Test func `a file that changes meanwhile is filed by what it is then`() throws {
        let rig = try rig()
        func change() throws {
            var other: Handle?
            try whileClosing(rig, "albums/b.jpg", heldRequest(rig)) {
                let opened = try rig.open("albums/b.jpg", O_WRONLY)
                try rig.write(opened, [77], at: UInt64(Self.picture.count - 1))
                other = opened
            }
            // Whoever writes has the last word.
            #expect(try rig.moments() == ["2024-05-01/a.jpg"])
            if let other { try rig.close(other) }
        }
        try change()
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        try rig.close()
    }

    @Test func `a photo that changes meanwhile is nobody's equal`() throws {
        let rig = try rig()
        try whileClosing(rig, "albums/b.jpg", heldRequest(rig)) {
            let photo = try rig.open("albums/a.jpg", O_WRONLY)
            try rig.write(photo, [0xFF, 0xD8, 0xFF], at: 0)
            try rig.close(photo)
        }
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        #expect(try rig.get("albums/b.jpg") == Self.picture)
        try rig.close()
    }

    @Test(arguments: [false, true]) func `what is cancelled is filed afterwards`(isNextSession: Bool) throws {
        let rig = try rig()
        let request = heldRequest(rig)
        try whileClosing(rig, "albums/b.jpg", request) { request.cancel() }
        #expect(request.count == 1)
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        #expect(try !rig.isCopy("albums/b.jpg"))
        if isNextSession {
            try rig.kill()
        } else {
            rig.library.startFollowUp()
            #expect(eventually { (try? rig.isCopy("albums/b.jpg")) == true })
        }
        #expect(try rig.isCopy("albums/b.jpg"))
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        try rig.close()
    }

    @Test func `the end of a mount calls it off, and the next session goes on`() throws {
        let rig = try rig()
        try whileClosing(rig, "albums/b.jpg", heldRequest(rig)) { rig.library.callOff() }
        #expect(try !rig.isCopy("albums/b.jpg"))
        try rig.close()
        try rig.reopen { $0.limits.briefComparisonBytes = 0 }
        #expect(try rig.isCopy("albums/b.jpg"))
        try rig.close()
    }

    @Test func `a rename does not wait, and the photo is merged afterwards`() throws {
        let rig = try rig()
        defer { rig.vault.calls.holdReads(of: nil) }
        try rig.put("albums/.b.jpg.part", Self.picture)
        // More than a look reads.
        rig.vault.calls.holdReads(of: Self.chunkRead, after: 40)
        try rig.mv("albums/.b.jpg.part", "albums/b.jpg")
        #expect(try rig.moments() == ["2024-05-01/a.jpg", "2024-05-01/b.jpg"])
        rig.vault.calls.holdReads(of: nil)
        rig.library.startFollowUp()
        #expect(eventually { (try? rig.isCopy("albums/b.jpg")) == true })
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        try rig.close()
    }

    @Test func `what a session left is taken up on a thread of its own, and called off`() throws {
        let rig = try rig()
        defer { rig.vault.calls.holdReads(of: nil) }
        try rig.put("albums/.b.jpg.part", Self.picture)
        try rig.mv("albums/.b.jpg.part", "albums/b.jpg")
        try rig.close()
        let library = try Library.open(try rig.vault.unlock(), options: rig.library(briefBytes: 0))
        rig.vault.calls.holdReads(of: Self.chunkRead, after: 40)
        library.startFollowUp()
        try #require(eventually { rig.vault.calls.heldReads > 0 })
        let closing = Task { try library.close() }
        #expect(eventually { library.followUp.isCalledOff })
        let before = rig.vault.calls.readCount
        rig.vault.calls.holdReads(of: nil)
        try closing.wait()
        #expect(rig.vault.calls.readCount - before < 100)
    }

    @Test func `requests beyond some leave it to the follow-up`() throws {
        let rig = try rig()
        defer { rig.vault.calls.holdReads(of: nil) }
        var open: [(Handle, Task)] = []
        for number in 0..<8 {
            open.append(try beginClosing(rig, "albums/b\(number).jpg", heldRequest(rig)))
            // A look at the next reads too.
            if number < 7 { rig.vault.calls.holdReads(of: Self.chunkRead, after: .max / 2) }
        }
        rig.vault.calls.holdReads(of: Self.chunkRead, after: .max / 2)
        let handle = try rig.createOpen("albums/c.jpg")
        try rig.write(handle, Self.picture)
        try rig.library.flush(handle, for: PatientRequest())
        rig.library.release(handle)
        rig.vault.calls.holdReads(of: nil)
        for (handle, task) in open {
            try task.wait()
            rig.library.release(handle)
        }
        #expect(try !rig.isCopy("albums/c.jpg"))
        rig.library.startFollowUp()
        #expect(eventually { (try? rig.isCopy("albums/c.jpg")) == true })
        #expect(try rig.moments() == ["2024-05-01/a.jpg"])
        try rig.close()
    }

    @Test func `a file that is removed meanwhile is nothing`() throws {
        let rig = try rig()
        try whileClosing(rig, "albums/b.jpg", heldRequest(rig)) { try rig.rm("albums/b.jpg") }
        try rig.rm("moments/2024-05-01/a.jpg")
        try rig.rm("albums/note")
        try rig.expectNothingLeft()
    }
}

extension Rig {
    /// Whether a file shares the bytes of a photo and stands for it.
    fileprivate func isCopy(_ path: String) throws -> Bool {
        let ino = try ino(path)
        return try library.locked { tree throws(FileError) in try tree.inode(ino).isCopy }
    }

    fileprivate func library(briefBytes: UInt64) -> LibraryOptions {
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.limits.briefComparisonBytes = briefBytes
        options.thumbnails = .off
        return options
    }
}
