import Glibc
import LinuxIO
import VaultFormat

/// The kernel's page cache shows everybody with read access to a file which parts of it were used: fincore(1).
extension Vault {
    /// Drops the file of all spaces from the page cache. Does nothing in a vault of one space.
    ///
    /// - Parameter ofKilled: also drops dirty pages that a killed session may have left, by syncing them first.
    static func dropPageCache(
        _ vault: VaultDirectory, _ layout: SegmentLayout, ofKilled: Bool = false
    ) {
        guard layout.isShared else { return }
        dropSpaces(in: vault.directory, vault.calls, ofKilled: ofKilled)
    }

    /// Drops what an earlier session left in the page cache, because a killed one could not. Called first of all when
    /// a vault is opened, so that it happens whatever comes then: a wrong password, a damaged header, another mount.
    /// Best effort, and harmless beneath a mount, which reads its pages again.
    static func dropTraces(in directory: Int32, _ calls: any FileSystemCalls) {
        guard dropSpaces(in: directory, calls, ofKilled: true) else { return }
        guard
            let file = try? calls.openRegular(
                directory, VaultDirectory.headerName, flags: O_RDONLY, mode: 0)
        else { return }
        defer { calls.close(file) }
        forgetAll(file, calls)
    }

    /// As `dropTraces(in:)`, for a vault that is not opened.
    static func dropTraces(of path: String, _ calls: any FileSystemCalls) {
        let flags = O_RDONLY | O_DIRECTORY
        guard let directory = try? calls.open(AT_FDCWD, path, flags: flags, mode: 0) else { return }
        defer { calls.close(directory) }
        dropTraces(in: directory, calls)
    }

    /// Returns whether there is a file of all spaces.
    @discardableResult
    private static func dropSpaces(
        in directory: Int32, _ calls: any FileSystemCalls, ofKilled: Bool
    ) -> Bool {
        guard
            let file = try? calls.openRegular(directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0)
        else { return false }
        defer { calls.close(file) }
        // The kernel drops no dirty page.
        if ofKilled { try? calls.dataSync(file) }
        forgetAll(file, calls)
        return true
    }

    /// Attempts in succession that drop no page, before the rest is left in the cache.
    static let forgetsMax = 20
    /// Attempts in all: beneath a mount at work new pages come as fast as others go.
    static let forgetsInAllMax = 500

    /// Drops a file from the page cache until no page is left. The kernel passes over a page that something else holds
    /// at this moment, reclaim on another core for example.
    private static func forgetAll(_ file: Int32, _ calls: any FileSystemCalls) {
        calls.forget(file, offset: 0, length: 0)
        var least = calls.cachedPages(file)
        var (attemptsLeft, inAllLeft) = (forgetsMax, forgetsInAllMax)
        while least > 0, attemptsLeft > 0, inAllLeft > 0 {
            usleep(1000)
            calls.forget(file, offset: 0, length: 0)
            let now = calls.cachedPages(file)
            attemptsLeft = now < least ? forgetsMax : attemptsLeft - 1
            inAllLeft -= 1
            least = min(least, now)
        }
    }
}
