import Synchronization
import Testing

@testable import ClusterIO

/// The memory that requests to a cluster leave behind.
@Suite("Space: memory of requests to a cluster") struct KeptMemoryTests {
    /// A process, and how often it gave its free memory back.
    private final class Process: Sendable {
        let bytes = Atomic(0)
        let count = Atomic(0)

        var memory: KeptMemory {
            KeptMemory(
                measure: { self.bytes.load(ordering: .relaxed) },
                giveBack: { self.count.wrappingAdd(1, ordering: .relaxed) })
        }

        var returns: Int { count.load(ordering: .relaxed) }
    }

    @Test func `memory is kept up to a limit, and then given back now and then`() {
        let (process, step) = (Process(), KeptMemory.stepBytes)
        let memory = process.memory
        for _ in 0..<100 { memory.noteRequest(bytes: step) }
        #expect(process.returns == 0)
        process.bytes.store(KeptMemory.bytesMax + 1, ordering: .relaxed)
        memory.noteRequest(bytes: step - 1)
        #expect(process.returns == 0)
        memory.noteRequest(bytes: 1)
        #expect(process.returns == 1)
        // Giving back takes time, and what is not free stays.
        for _ in 1..<KeptMemory.pauseBytes / step { memory.noteRequest(bytes: step) }
        #expect(process.returns == 1)
        memory.noteRequest(bytes: step)
        #expect(process.returns == 2)
    }

    @Test func `memory is given back once when nothing is read or written for a second`() {
        let process = Process()
        let memory = process.memory
        memory.noteSecond()
        #expect(process.returns == 0)
        memory.noteRequest(bytes: KeptMemory.stepBytes)
        memory.noteSecond()
        #expect(process.returns == 0)
        for _ in 0..<3 { memory.noteSecond() }
        #expect(process.returns == 1)
        // Locks, and a page now and then.
        memory.noteRequest(bytes: 4096)
        for _ in 0..<3 { memory.noteSecond() }
        #expect(process.returns == 1)
    }
}
