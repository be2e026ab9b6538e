import Testing

@testable import VaultStore

@Suite("Space: when bytes are written before a sync") struct SyncPaceTests {
    @Test func `after two syncs within a second a third is expected for another second`() {
        var pace = SyncPace()
        #expect(pace.willWrite(1 << 20, at: 0) == .none)
        pace.noteSync(at: 1000)
        #expect(pace.willWrite(1 << 20, at: 1000) == .none)
        pace.noteSync(at: 2000)
        #expect(pace.willWrite(1 << 20, at: 3000) == .expected)
        #expect(pace.willWrite(1 << 10, at: 3000) == .none, "a small write is not worth a request")
        #expect(pace.willWrite(1 << 20, at: 3001) == .none)
        // The committer's, now and then.
        pace.noteSync(at: 3001)
        #expect(pace.willWrite(1 << 20, at: 3001) == .none)
    }

    @Test func `after 16 MiB without a sync the next will take long`() {
        var pace = SyncPace()
        for _ in 0..<16 { #expect(pace.willWrite(1 << 20, at: 0) == .none) }
        #expect(pace.willWrite(1 << 10, at: 0) == .none, "a small write is not worth a request")
        #expect(pace.willWrite(1 << 20, at: 0) == .long)
        pace.noteSync(at: 5000)
        #expect(pace.willWrite(1 << 20, at: 5000) == .none)
    }
}
