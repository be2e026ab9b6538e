import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import PhotoImaging

/// Bytes whose first reading is noted.
private final class NotedSource: ByteSource, Sendable {
    private let source: MemorySource
    private let note: @Sendable () -> Void
    private let isRead = Atomic(false)

    init(bytes: [UInt8], _ note: @escaping @Sendable () -> Void) {
        (source, self.note) = (MemorySource(bytes: bytes), note)
    }

    var byteCount: UInt64 { source.byteCount }

    func read(at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if !isRead.exchange(true, ordering: .relaxed) { note() }
        return source.read(at: offset, into: buffer)
    }
}

extension WorkerTests {
    @Suite("Decoders: processes") struct PoolTests {
        let picture = TestPicture(width: 300, height: 200).jpeg

        @Test func `a missing executable`() {
            let workers = ThumbnailWorkers(executable: "/nonexistent/obscura-worker", count: 1)
            #expect(throws: ThumbnailError.unavailable) { try workers.thumbnail(picture) }
        }

        @Test func `another program is no worker`() {
            for program in ["/bin/true", "/bin/cat", "/etc/passwd"] {
                let workers = ThumbnailWorkers(
                    executable: program, count: 1, deadlineMilliseconds: 300, arguments: [])
                #expect(throws: ThumbnailError.unavailable) { try workers.thumbnail(picture) }
                workers.shutDown()
                #expect(workerProcesses().isEmpty)
            }
        }

        @Test func `processes start when needed, and at most as many as allowed`() throws {
            let workers = makeWorkers(count: 2)
            #expect(workerProcesses().isEmpty)
            _ = try workers.thumbnail(picture)
            _ = try workers.thumbnail(picture)
            #expect(workerProcesses().count == 1)
            let failures = Atomic(0)
            onThreads(40) { _ in
                for _ in 0..<5 where (try? workers.thumbnail(picture)) == nil {
                    failures.add(1, ordering: .relaxed)
                }
            }.wait()
            #expect(failures.load(ordering: .relaxed) == 0)
            #expect((1...2).contains(workerProcesses().count))
            workers.shutDown()
            #expect(workerProcesses().isEmpty)
        }

        @Test func `a crash costs one picture`() throws {
            let workers = makeWorkers(trial: "crash")
            for _ in 1...3 { #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(picture) } }
        }

        /// By its own limit: the deadline is for machines on which nothing gets its turn.
        @Test func `a picture that computes without end is stopped`() {
            let workers = makeWorkers(trial: "stall", quickMilliseconds: 600_000)
            #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(picture) }
        }

        /// It may not have had its turn, which says nothing of the picture. The limit of processor time gives another
        /// error.
        @Test func `a stall ends at the deadline, and the picture may be made later`() throws {
            let workers = makeWorkers(count: 2, deadlineMilliseconds: 400, trial: "stall")
            onThreads(4) { _ in
                #expect(throws: ThumbnailError.workerFailed) { try workers.thumbnail(picture) }
            }.wait()
            #expect(workerProcesses().isEmpty)
        }

        @Test func `a worker killed while idle is replaced`() throws {
            let workers = makeWorkers()
            for _ in 1...3 {
                _ = try workers.thumbnail(picture)
                let process = try #require(workerProcesses().first)
                kill(process, SIGKILL)
                _ = eventually { workerProcesses(of: process).isEmpty }
            }
            _ = try workers.thumbnail(picture)
            #expect(workerProcesses().count == 1)
        }

        /// The process that decodes: its picture is lost, nothing else.
        @Test func `a decoder killed in the middle`() throws {
            let workers = makeWorkers(trial: "stall")
            let group = onThreads(1) { _ in
                #expect(throws: ThumbnailError.undecodable) { try workers.thumbnail(picture) }
            }
            let decoder = try #require(waitForDecoder())
            kill(decoder, SIGKILL)
            group.wait()
        }

        /// The process that forks decoders: tried again once, and its decoder goes with it.
        @Test func `a worker killed in the middle`() throws {
            let workers = makeWorkers(trial: "stall")
            let group = onThreads(1) { _ in
                #expect(throws: ThumbnailError.workerFailed) { try workers.thumbnail(picture) }
            }
            var killed: Set<Int32> = []
            for _ in 1...2 {
                let decoder = try #require(waitForDecoder(notOf: killed))
                let worker = try #require(workerProcesses().first { !killed.contains($0) })
                killed.insert(worker)
                kill(worker, SIGKILL)
                #expect(eventually { kill(decoder, 0) != 0 })
            }
            group.wait()
        }

        private func waitForDecoder(notOf killed: Set<Int32> = []) -> Int32? {
            var decoder: Int32?
            _ = eventually {
                for worker in workerProcesses() where !killed.contains(worker) {
                    // A worker's first fork only tries the sandbox: it has no picture.
                    guard let found = workerProcesses(of: worker).first,
                        let maps = kernelText("/proc/\(found)/maps"),
                        maps.contains("/memfd:obscura")
                    else { continue }
                    decoder = found
                }
                return decoder != nil
            }
            return decoder
        }

        @Test func `shutting down cancels and leaves nothing`() throws {
            _ = try makeWorkers().thumbnail(picture)  // opens the descriptors that stay open
            let before = openDescriptors()
            // Without the end of the others each would be undecodable by its limit of processor time.
            let workers = makeWorkers(count: 3, trial: "stall")
            let group = onThreads(12) { _ in
                #expect(throws: ThumbnailError.cancelled) { try workers.thumbnail(picture) }
            }
            #expect(eventually { workerProcesses().count == 3 })
            onThreads(2) { _ in workers.shutDown() }.wait()
            group.wait()
            #expect(throws: ThumbnailError.cancelled) { try workers.thumbnail(picture) }
            workers.shutDown()
            #expect(workerProcesses().isEmpty)
            #expect(eventually { openDescriptors().isSubset(of: before) })
        }

        @Test func `no descriptor is left by any outcome`() throws {
            let workers = makeWorkers()
            _ = try workers.thumbnail(picture)
            let before = openDescriptors()
            for _ in 1...20 {
                _ = try workers.thumbnail(picture)
                _ = try? workers.thumbnail([1, 2, 3])
                _ = try? workers.makeThumbnail(of: FailingSource(), type: .jpeg, box: 256)
            }
            #expect(eventually { openDescriptors().isSubset(of: before) })
            let worker = try #require(workerProcesses().first)
            // It closes the last picture's after it has answered.
            let hasOnlyItsOwn = try eventually {
                let held = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(worker)/fd")
                return held.sorted() == ["0", "1", "2", "3"]
            }
            #expect(hasOnlyItsOwn)
        }

        @Test func `callers are served in order`() throws {
            let workers = makeWorkers()
            let order = Mutex<[Int]>([])
            let isFirstHeld = DispatchSemaphore(value: 0)
            var groups: [DispatchGroup] = []
            for index in 0..<6 {
                // A picture is read once its caller has a worker.
                let source = NotedSource(bytes: picture) {
                    order.withLock { $0.append(index) }
                    if index == 0 { isFirstHeld.wait() }
                }
                groups.append(
                    onThreads(1) { _ in
                        _ = try? workers.makeThumbnail(of: source, type: .jpeg, box: 64)
                    })
                try #require(
                    eventually {
                        index == 0 ? order.withLock { $0 } == [0] : workers.waitingCount == index
                    })
            }
            isFirstHeld.signal()
            for group in groups { group.wait() }
            #expect(order.withLock { $0 } == [0, 1, 2, 3, 4, 5])
        }

        @Test func `a cancelled picture frees its worker`() throws {
            let workers = makeWorkers(trial: "stall")
            let (atWork, inLine) = (Cancellation(), Cancellation())
            let first = expectCancelled(workers, atWork)
            try #require(waitForDecoder() != nil)
            // A waiting caller leaves the line; the one being served goes on.
            let second = expectCancelled(workers, inLine)
            try #require(eventually { workers.waitingCount == 1 })
            inLine.cancel()
            second.wait()
            let process = try #require(workerProcesses().first)
            #expect(!workerProcesses(of: process).isEmpty)
            atWork.cancel()
            first.wait()
            #expect(eventually { workerProcesses(of: process).isEmpty })
            // The only slot is free: the next is served, by a new process.
            let next = Cancellation()
            let third = expectCancelled(workers, next)
            try #require(eventually { workerProcesses().contains { $0 != process } })
            next.cancel()
            third.wait()
            let healthy = makeWorkers()
            #expect(throws: ThumbnailError.cancelled) {
                try healthy.makeThumbnail(
                    of: MemorySource(bytes: picture), type: .jpeg, size: PictureSize(fitting: 64),
                    unless: next)
            }
            _ = try healthy.thumbnail(picture)
        }

        private func expectCancelled(
            _ workers: ThumbnailWorkers, _ cancellation: Cancellation
        ) -> DispatchGroup {
            onThreads(1) { [picture] _ in
                #expect(throws: ThumbnailError.cancelled) {
                    try workers.makeThumbnail(
                        of: MemorySource(bytes: picture), type: .jpeg, size: PictureSize(fitting: 64),
                        unless: cancellation)
                }
            }
        }

        /// Scheduled as SCHED_IDLE, whose number is 5. So are its forks: that is inherited.
        @Test func `background processes only get time that no other wants`() throws {
            let workers = ThumbnailWorkers(
                executable: workerPath, count: 1, deadlineMilliseconds: 600_000,
                arguments: ["--trial", "stall"], isInBackground: true)
            let end = Cancellation()
            let group = expectCancelled(workers, end)
            #expect(eventually { workerProcesses().first.map { sched_getscheduler($0) } == 5 })
            let process = try #require(workerProcesses().first)
            let session = kernelText("/proc/\(process)/autogroup")
            if let session { #expect(session.contains("nice 19")) }
            end.cancel()
            group.wait()
            let others = makeWorkers()
            _ = try others.thumbnail(picture)
            #expect(try sched_getscheduler(#require(workerProcesses().first)) == 0)
            others.releaseIdle()
            #expect(workerProcesses().isEmpty)
            _ = try others.thumbnail(picture)
        }
    }
}
