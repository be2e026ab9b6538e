import Testing

@testable import VaultStore

@Suite("Space: syncs that follow each other") struct SyncPaceTests {
    @Test func `after two syncs within a second a third is expected for another second`() {
        var pace = SyncPace()
        #expect(!pace.isExpected(at: 0))
        pace.note(at: 1000)
        #expect(!pace.isExpected(at: 1000))
        pace.note(at: 2000)
        #expect(pace.isExpected(at: 3000) && !pace.isExpected(at: 3001))
        // The committer's, now and then.
        pace.note(at: 3001)
        #expect(!pace.isExpected(at: 3001))
    }
}
