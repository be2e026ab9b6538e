import Foundation
import Glibc
import TestThreads
import Testing

@testable import FuseBridge

/// The turn to read requests, with workers and a kernel that the test plays: a pipe with one byte for each request.
@Suite("Kernel: the turn to read requests", .waiting) struct ReadTurnTests {
    @Test func `a leader that is held up loses the turn, also if all others sleep`() {
        let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        withWorkers(5) { request in
            if request == .stuck {
                begun.signal()
                goOn.wait()
            }
        } _: { kernel in
            // Longer than the follower polls: it sleeps until the leader wakes it.
            for pause: UInt32 in [0, 150_000] {
                usleep(pause)
                // Four of five are held up one after another, though each was to be quick.
                for _ in 0..<4 {
                    kernel.send(.stuck)
                    #expect(begun.wait(timeout: .now() + 300) == .success)
                }
                kernel.send(.quick)
                #expect(kernel.awaitServed(quick: 1))
                for _ in 0..<4 { goOn.signal() }
                #expect(kernel.awaitServed(stuck: 4))
                kernel.forget()
            }
        }
    }

    @Test func `as many requests run at once as there are workers`() {
        let (begun, goOn) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        withWorkers(6) { request in
            begun.signal()
            goOn.wait()
        } _: { kernel in
            for _ in 0..<20 {
                for _ in 0..<6 { kernel.send(.slow) }
                for _ in 0..<6 { #expect(begun.wait(timeout: .now() + 300) == .success) }
                for _ in 0..<6 { goOn.signal() }
            }
            #expect(kernel.awaitServed(slow: 120))
        }
    }

    @Test func `a mixture of requests is served to the end`() {
        withWorkers(8) { request in
            if request == .stuck { usleep(3_000) }
        } _: { kernel in
            let kinds: [PlayedRequests.Kind] = [.quick, .slow, .stuck, .slow, .quick, .quick, .stuck]
            for burst in 1...20 {
                for index in 0..<100 { kernel.send(kinds[index * burst % kinds.count]) }
                #expect(kernel.awaitAll())
            }
        }
    }

    /// Runs workers that read and serve as `Session` does, and ends them.
    private func withWorkers(
        _ count: Int, serve: @escaping @Sendable (PlayedRequests.Kind) -> Void,
        _ body: (PlayedRequests) -> Void
    ) {
        let kernel = PlayedRequests()
        let turn = ReadTurn()
        let ended = DispatchSemaphore(value: 0)
        for _ in 0..<count {
            Thread.detachNewThread {
                var number = turn.take()
                while true {
                    if turn.isHeld(number) { turn.willRead() } else { number = turn.take() }
                    guard let request = kernel.next() else { break }
                    if request == .slow { turn.pass() } else { turn.keep() }
                    serve(request)
                    kernel.didServe(request)
                }
                turn.pass()
                ended.signal()
            }
        }
        body(kernel)
        kernel.close()
        for _ in 0..<count { #expect(ended.wait(timeout: .now() + 300) == .success) }
    }
}

/// What the workers read: blocks while there is nothing, and returns nil once it is closed.
///
/// Unchecked Sendable: `lock` guards the counts. The thread sanitizer does not see a Mutex.
private final class PlayedRequests: @unchecked Sendable {
    enum Kind: UInt8 {
        case quick, slow
        /// Kept by the leader as a quick one is, but it lasts.
        case stuck
    }

    private let pipe = Pipe()
    private let lock = NSCondition()
    private var sent = 0
    private var served: [Kind: Int] = [:]

    func send(_ kind: Kind) {
        lock.withLock { sent += 1 }
        pipe.fileHandleForWriting.write(Data([kind.rawValue]))
    }

    func close() { try? pipe.fileHandleForWriting.close() }

    func next() -> Kind? {
        var byte: UInt8 = 0
        return read(pipe.fileHandleForReading.fileDescriptor, &byte, 1) == 1 ? Kind(rawValue: byte) : nil
    }

    func didServe(_ kind: Kind) {
        lock.withLock {
            served[kind, default: 0] += 1
            lock.broadcast()
        }
    }

    func forget() { lock.withLock { (sent, served) = (0, [:]) } }

    func awaitServed(quick: Int = 0, slow: Int = 0, stuck: Int = 0) -> Bool {
        holds {
            served[.quick, default: 0] >= quick && served[.slow, default: 0] >= slow
                && served[.stuck, default: 0] >= stuck
        }
    }

    func awaitAll() -> Bool { holds { served.values.reduce(0, +) == sent } }

    private func holds(_ isSo: () -> Bool) -> Bool {
        let deadline = Date() + 300
        return lock.withLock {
            while !isSo() { if !lock.wait(until: deadline) { return isSo() } }
            return true
        }
    }
}
