import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import VaultStore

/// A page cache of three pages, of which some attempts drop none.
private final class HeldPages: ForwardingCalls {
    private struct State {
        var pages = 3
        var attempts = 0
    }
    private let state = Mutex(State())
    /// One page is dropped by every so many attempts; 0: none ever.
    let attemptsPerPage: Int

    init(attemptsPerPage: Int) { self.attemptsPerPage = attemptsPerPage }

    var pages: Int { state.withLock { $0.pages } }
    var attempts: Int { state.withLock { $0.attempts } }

    func forget(_ descriptor: Int32, offset: UInt64, length: UInt64) {
        state.withLock {
            $0.attempts += 1
            if attemptsPerPage > 0, $0.attempts % attemptsPerPage == 0, $0.pages > 0 { $0.pages -= 1 }
        }
    }

    func cachedPages(_ descriptor: Int32) -> Int { pages }
}

/// Nobody is to see in the page cache which parts of the spaces were used; fincore(1).
@Suite("Secrets: pages that are dropped") struct PageCacheDropTests {
    private let directory = TemporaryDirectory()

    private func unlock(_ calls: HeldPages) throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        _ = try Vault.unlock(path, password: secret("one"), readOnly: true, calls: calls)
    }

    @Test func `pages that something else holds for a while are dropped`() throws {
        let calls = HeldPages(attemptsPerPage: VaultFiles.forgetsMax)
        try unlock(calls)
        #expect(calls.pages == 0)
    }

    @Test func `pages that nothing drops are left in the end`() throws {
        let calls = HeldPages(attemptsPerPage: 0)
        try unlock(calls)
        // Each time that the file is dropped: the first attempt, and as many as drop no page.
        #expect(calls.pages == 3 && calls.attempts > 0, "\(calls.attempts)")
        #expect(calls.attempts % (1 + VaultFiles.forgetsMax) == 0, "\(calls.attempts)")
    }
}
