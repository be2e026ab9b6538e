import CFuse3
import Foundation
import Glibc
import Synchronization
import TestThreads
import Testing

@testable import FuseBridge

/// The threads of one queue, with a kernel that a test plays.
@Suite("Kernel: the threads of a ring", .waiting) struct RingQueueTests {
    /// Operations of linux/fuse.h: one that the leader serves itself, and one that may wait for a disk.
    private static let quick: UInt32 = 1
    private static let slow: UInt32 = 20

    @Test func `a leader that is held up holds up nothing else that it has received`() {
        let (served, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        withQueue { index in
            if index == 0 { goOn.wait() } else { served.signal() }
        } _: { kernel in
            kernel.send([(0, Self.quick), (1, Self.quick), (2, Self.quick)])
            for _ in 0..<2 { #expect(served.wait(timeout: .now() + 10) == .success) }
            #expect(kernel.awaitCommits(2))
            goOn.signal()
            #expect(kernel.awaitCommits(3))
        }
    }

    @Test func `one leader after another may be held up`() {
        let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        withQueue { index in
            if index < 5 {
                begun.signal()
                goOn.wait()
            } else {
                usleep(50_000)
            }
        } _: { kernel in
            // Afterwards there are threads enough, of which one watches the leader.
            kernel.send([5, 6, 7].map { ($0, Self.slow) })
            #expect(kernel.awaitCommits(3))
            usleep(150_000)
            for index in 0..<5 {
                kernel.send([(index, Self.quick)])
                #expect(begun.wait(timeout: .now() + 10) == .success, "\(index)")
            }
            for _ in 0..<5 { goOn.signal() }
            #expect(kernel.awaitCommits(8))
        }
    }

    @Test func `a thread that owns entries serves nothing that may wait for a disk`() {
        let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let quick = Mutex<pthread_t?>(nil)
        let slow = Mutex<[pthread_t]>([])
        withQueue { index in
            if index == 0 {
                quick.withLock { $0 = pthread_self() }
                begun.signal()
                goOn.wait()
            } else {
                slow.withLock { $0.append(pthread_self()) }
                // So that each needs a thread of its own.
                usleep(50_000)
            }
        } _: { kernel in
            // Another thread becomes the leader, and the first one keeps what it has submitted.
            kernel.send([(0, Self.quick)])
            begun.wait()
            kernel.send([(1, Self.slow)])
            #expect(kernel.awaitCommits(1))
            goOn.signal()
            #expect(kernel.awaitCommits(2))
            usleep(20_000)
            kernel.send((1..<5).map { ($0, Self.slow) })
            #expect(kernel.awaitCommits(6))
            let (owner, others) = (quick.withLock { $0 }, slow.withLock { $0 })
            #expect(others.count == 5 && !others.contains { $0 == owner })
        }
    }

    @Test func `only the leader is bound to the queue's processor`() throws {
        let all = Self.processors()
        let first = try #require(Int(all.prefix { $0.isNumber }))
        let seen = Mutex<[Int: String]>([:])
        withQueue(processor: first) { index in
            seen.withLock { $0[index] = Self.processors() }
        } _: { kernel in
            kernel.send([(0, Self.quick)])
            #expect(kernel.awaitCommits(1))
            kernel.send([(1, Self.slow)])
            #expect(kernel.awaitCommits(2))
        }
        #expect(seen.withLock { $0 } == [0: "\(first)", 1: all])
    }

    /// Those that the calling thread may use, as the kernel lists them: `0-3,8`.
    private static func processors() -> String {
        let lines = (try? String(contentsOfFile: "/proc/thread-self/status", encoding: .utf8)) ?? ""
        let line = lines.split(separator: "\n").first { $0.hasPrefix("Cpus_allowed_list:") }
        return String(line?.split(separator: "\t").last ?? "")
    }

    @Test func `a queue that the kernel refuses says so`() {
        let answers = Mutex<[Bool]>([])
        let kernel = PlayedKernel(refuses: true)
        let queue = RingQueue(
            kernel, kernel.entries, didRegister: { isAccepted in answers.withLock { $0.append(isAccepted) } },
            process: { _, _ in })
        #expect(throws: Never.self) { try queue.start() }
        #expect(kernel.awaitRegistrations())
        queue.stop()
        #expect(answers.withLock { $0 } == [false])
    }

    /// Runs `body` with a started queue of eight entries, and stops it.
    private func withQueue(
        processor: Int? = nil, serve: @escaping @Sendable (_ entry: Int) -> Void,
        _ body: (PlayedKernel) -> Void
    ) {
        let kernel = PlayedKernel()
        let queue = RingQueue(
            kernel, kernel.entries, processor: processor, didRegister: { _ in },
            process: { entry, _ in serve(entry.index) })
        #expect(throws: Never.self) { try queue.start() }
        body(kernel)
        queue.stop()
    }
}

/// Entries of which a test says when they have which request.
private final class PlayedKernel: RingCommanding, @unchecked Sendable {
    private static let entryCount = 8
    private static let payloadBytes = 4096
    private static let entryBytes = RingPlan.headerBytes + payloadBytes

    let entries: [RingEntry]
    private let memory: UnsafeMutableRawPointer
    private let refuses: Bool
    private let change = NSCondition()
    // Under `change`.
    private var completed: [RingCompletion] = []
    private var isWakeupPrepared = false
    private var isWoken = false
    private var commitCount = 0
    private var registered = 0

    init(refuses: Bool = false) {
        self.refuses = refuses
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: Self.entryCount * Self.entryBytes, alignment: 4096)
        memory.initializeMemory(as: UInt8.self, repeating: 0, count: Self.entryCount * Self.entryBytes)
        self.memory = memory
        entries = (0..<Self.entryCount).map { index in
            RingEntry(index: index, at: memory + index * Self.entryBytes, payloadBytes: Self.payloadBytes)
        }
    }

    deinit { memory.deallocate() }

    /// Completes these entries at once, each with a request of that operation.
    func send(_ requests: [(entry: Int, operation: UInt32)]) {
        change.withLock {
            for (entry, operation) in requests {
                let header = memory + entry * Self.entryBytes
                header.storeBytes(of: 40, as: UInt32.self)
                header.storeBytes(of: operation, toByteOffset: 4, as: UInt32.self)
                header.storeBytes(of: UInt64(entry + 1) << 1, toByteOffset: 8, as: UInt64.self)
                completed.append(.request(entry: entry))
            }
            change.broadcast()
        }
    }

    func awaitCommits(_ count: Int) -> Bool { holds { commitCount >= count } }
    func awaitRegistrations() -> Bool { holds { registered == Self.entryCount } }

    private func holds(_ isSo: () -> Bool) -> Bool {
        let deadline = Date() + 20
        return change.withLock {
            while !isSo() { if !change.wait(until: deadline) { return isSo() } }
            return true
        }
    }

    func wake() {
        change.withLock {
            isWoken = true
            change.broadcast()
        }
    }

    func prepareRegister(_ entry: RingEntry) {
        change.withLock {
            registered += 1
            change.broadcast()
        }
    }

    func prepareRefusal() {}

    func prepareCommit(_ entry: RingEntry) {
        change.withLock {
            commitCount += 1
            change.broadcast()
        }
    }

    func prepareWakeup() { change.withLock { isWakeupPrepared = true } }
    var hasCompletions: Bool { change.withLock { !completed.isEmpty } }
    var hasFailed: Bool { refuses }
    func submit() {}

    func submitAndWait() {
        change.withLock { while completed.isEmpty && !(isWakeupPrepared && isWoken) { change.wait() } }
    }

    func takeCompletions(_ body: (RingCompletion) -> Void) {
        let taken = change.withLock {
            var taken = completed
            completed = []
            if isWakeupPrepared && isWoken {
                taken.append(.wakeup)
                (isWakeupPrepared, isWoken) = (false, false)
            }
            return taken
        }
        for completion in taken { body(completion) }
    }
}
