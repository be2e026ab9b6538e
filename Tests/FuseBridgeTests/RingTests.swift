import CFuse3
import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

@testable import FuseBridge

@Suite("Kernel: rings of io_uring, their size") struct RingPlanTests {
    @Test(arguments: 1...18)
    func `rings take at most 24 MiB, whatever the number of processors`(_ processors: Int) throws {
        let plan = try #require(RingPlan(processors: processors, bytesMax: MountOptions().ringBytesMax))
        #expect(plan.bytes <= 24 << 20)
        #expect(plan.queues == processors)
        // Eight comparisons of photos may wait, and others must not wait for them.
        #expect(plan.depth >= 10)
        // The largest extended attribute, with its name.
        #expect(plan.payloadBytes >= 65_536 + 256)
    }

    @Test(arguments: [
        (1, 1 << 20, 23), (2, 1 << 20, 11), (4, 512 << 10, 11), (8, 256 << 10, 11), (18, 128 << 10, 10),
    ])
    func `requests are as large as by /dev/fuse where there is room for ten`(
        processors: Int, payloadBytes: Int, depth: Int
    ) throws {
        let plan = try #require(RingPlan(processors: processors, bytesMax: 24 << 20))
        #expect(plan.payloadBytes == payloadBytes && plan.depth == depth)
    }

    @Test func `no rings on more processors than there is memory for`() {
        #expect(RingPlan(processors: 64, bytesMax: 24 << 20) == nil)
        #expect(RingPlan(processors: 0, bytesMax: 24 << 20) == nil)
    }

    @Test(arguments: [
        ("0-1\n", 2), ("0\n", 1), ("0-3,8,10-11\n", 7), ("", 0), ("x\n", 0), ("3-1\n", 0), ("1-\n", 0),
    ])
    func `lists of processors`(_ list: String, _ count: Int) {
        #expect(RingPlan.processors(inList: list) == count)
    }
}

@Suite("Kernel: rings of io_uring, their entries") struct RingEntryTests {
    private static let payloadBytes = 8192

    /// Runs `body` with an entry and its memory.
    private func withEntry(_ body: (RingEntry, UnsafeMutableRawPointer) throws -> Void) rethrows {
        let memory = UnsafeMutableRawPointer.allocate(
            byteCount: RingPlan.headerBytes + Self.payloadBytes, alignment: 4096)
        defer { memory.deallocate() }
        memory.initializeMemory(
            as: UInt8.self, repeating: 0, count: RingPlan.headerBytes + Self.payloadBytes)
        try body(RingEntry(index: 3, at: memory, payloadBytes: Self.payloadBytes), memory)
    }

    /// Puts a request where the kernel does.
    private func put(
        _ memory: UnsafeMutableRawPointer, operation: [UInt8], payload: [UInt8], count: Int? = nil
    ) {
        let all = count ?? 40 + operation.count + payload.count
        memory.storeBytes(of: UInt32(all), as: UInt32.self)
        memory.storeBytes(of: 16, toByteOffset: 4, as: UInt32.self)
        memory.storeBytes(of: 99, toByteOffset: 8, as: UInt64.self)
        (memory + 128).copyMemory(from: operation, byteCount: operation.count)
        memory.storeBytes(of: 77, toByteOffset: 264, as: UInt64.self)
        memory.storeBytes(of: UInt32(payload.count), toByteOffset: 272, as: UInt32.self)
        let kept = min(payload.count, Self.payloadBytes)
        (memory + RingPlan.headerBytes).copyMemory(from: payload, byteCount: kept)
    }

    @Test func `libfuse gets a request in one piece`() throws {
        try withEntry { entry, memory in
            put(memory, operation: Array(1...40), payload: Array("photo".utf8))
            let request = try #require(entry.take())
            let bytes = Array(UnsafeRawBufferPointer(start: request.mem, count: request.size))
            #expect(bytes.count == 85 && bytes[4] == 16)
            #expect(Array(bytes[40..<80]) == Array(1...40))
            #expect(Array(bytes[80...]) == Array("photo".utf8))
            #expect(entry.request == 99 && entry.commit == 77)
        }
    }

    @Test func `a request that cannot be is answered with an error`() {
        withEntry { entry, memory in
            put(memory, operation: [], payload: [], count: 39)
            #expect(entry.take() == nil)
            put(memory, operation: [], payload: [1], count: 40 + 129 + 1)
            #expect(entry.take() == nil)
            put(memory, operation: [], payload: [UInt8](repeating: 1, count: Self.payloadBytes + 1))
            #expect(entry.take() == nil)
            entry.answerIfMissing(error: EIO)
            #expect(memory.load(fromByteOffset: 4, as: Int32.self) == -EIO)
            #expect(memory.load(fromByteOffset: 8, as: UInt64.self) == 99)
        }
    }

    @Test func `an answer that is too long for the entry is an error`() throws {
        try withEntry { entry, memory in
            put(memory, operation: [], payload: [])
            _ = try #require(entry.take())
            var header = [UInt8](repeating: 0, count: 16)
            var payload = [UInt8](repeating: 7, count: Self.payloadBytes + 1)
            answer(entry, &header, &payload)
            #expect(memory.load(fromByteOffset: 4, as: Int32.self) == -EIO)
            #expect(memory.load(fromByteOffset: 272, as: UInt32.self) == 0)
            payload.removeLast()
            answer(entry, &header, &payload)
            #expect(memory.load(fromByteOffset: 272, as: UInt32.self) == UInt32(Self.payloadBytes))
            #expect(memory.load(fromByteOffset: RingPlan.headerBytes, as: UInt8.self) == 7)
        }
    }

    private func answer(_ entry: RingEntry, _ header: inout [UInt8], _ payload: inout [UInt8]) {
        header.withUnsafeMutableBytes { header in
            payload.withUnsafeMutableBytes { payload in
                let pieces = [header, payload].map { iovec(iov_base: $0.baseAddress, iov_len: $0.count) }
                pieces.withUnsafeBufferPointer { entry.answer($0) }
            }
        }
    }
}

/// Only where root may switch them on, or has.
@Suite(
    "Kernel: rings of io_uring, through a mount", .serialized, .waiting,
    .enabled(if: RingSwitch.isAvailable))
struct RingMountTests {
    @Test func `a mount by rings says so, and so does one without`() throws {
        let ways: [(uses: Bool, bytesMax: Int, expected: String)] = [
            (true, 24 << 20, "io_uring"), (false, 24 << 20, "/dev/fuse"),
            // Too little memory for this many processors.
            (true, 1 << 20, "/dev/fuse"),
        ]
        for way in ways {
            let transport = try RingSwitch.on {
                let mounted = try MountedLibrary {
                    $0.usesRings = way.uses
                    $0.ringBytesMax = way.bytesMax
                }
                let transport = try mounted.transport()
                try mounted.finish()
                return transport
            }
            #expect(transport == way.expected)
        }
    }

    /// More threads than a queue has entries read, write, list and remove at once.
    @Test func `more requests than entries`() throws {
        try RingSwitch.on {
            let mounted = try MountedLibrary {
                $0.usesRings = true
                $0.ringBytesMax = RingPlan.processorsPossible * 10 * (RingPlan.headerBytes + 128 << 10)
            }
            let mistakes = NSLock()
            nonisolated(unsafe) var wrong: [String] = []
            DispatchQueue.concurrentPerform(iterations: 24) { thread in
                let path = mounted.path("f\(thread)")
                for round in 0..<20 {
                    let bytes = Data(noise(300_000, seed: thread * 100 + round))
                    try? bytes.write(to: URL(fileURLWithPath: path), options: .atomic)
                    let got = try? Data(contentsOf: URL(fileURLWithPath: path))
                    if got != bytes { mistakes.withLock { wrong.append("\(path) \(round)") } }
                }
            }
            let transport = try mounted.transport()
            try mounted.finish()
            #expect(wrong == [] && transport == "io_uring")
        }
    }

    @Test func `a kernel that takes no entries is noticed`() throws {
        // No connection at all: the kernel refuses each REGISTER.
        let file = open("/dev/zero", O_RDWR | O_CLOEXEC)
        defer { close(file) }
        let plan = try #require(RingPlan(processors: 2, bytesMax: 24 << 20))
        let refused = DispatchSemaphore(value: 0)
        let made = Rings(plan, connection: file, didRefuse: { refused.signal() }, process: { _ in })
        let rings = try #require(made)
        rings.start()
        #expect(refused.wait(timeout: .now() + 30) == .success)
        #expect(!rings.areUsed)
        rings.stop()
    }
}
