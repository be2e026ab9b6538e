import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// Making all sessions of a vault of several spaces leave the same traces on the host, whether they only read or also
/// wrote, and in whichever space. Best effort: a vault on read-only media has nothing to hide.
extension VaultFiles {
    func cover(_ layout: SegmentLayout, isRunning: Bool) -> CoverTraffic? {
        layout.isShared ? CoverTraffic(self, isRunning: isRunning) : nil
    }

    func imitateFormatting(_ layout: SegmentLayout) {
        guard let cover = cover(layout, isRunning: true) else { return }
        _ = cover.sync()
        // Nothing depends on it: only times of the host's files are imitated.
        try? calls.sync(directory)
    }

    /// Adding a space writes to the spaces, and the host's journal records their state with the header's. The same is
    /// done here for every change.
    func blurChange(_ layout: SegmentLayout) {
        guard layout.isShared else { return }
        touch(SegmentLayout.sharedName, powers: 3..<9)
        touch(Self.headerName, powers: 3..<9)
    }

    func blurTraces(_ layout: SegmentLayout) { blurTraces(layout, isNew: false) }

    /// Sets the files' times to now, as a write does. Hosts count the changes of each file (ext4, XFS: the inode's
    /// version), including changes of its times. To hide the number of changes, times are set a random number of times:
    /// in a new vault so often that the changes of a few sessions are negligible. Also drops the spaces from the page
    /// cache.
    func blurTraces(_ layout: SegmentLayout, isNew: Bool) {
        guard layout.isShared else { return }
        for path in [SegmentLayout.sharedName, Self.headerName] {
            touch(path, powers: isNew ? 12..<16 : 4..<11)
        }
        dropPageCache(layout, ofKilled: false)
    }

    /// Leaves the same trace in the host's journal as the first durable write of a session, because a session may only
    /// read.
    ///
    /// The first fdatasync(2) of a file after its inode was read makes ext4 commit the running transaction
    /// (linux/fs/ext4/inode.c, `__ext4_iget`), and with it the file's times.
    func blurBeginning(_ layout: SegmentLayout) {
        guard layout.isShared else { return }
        touch(SegmentLayout.sharedName, powers: 0..<11)
        guard
            let file = try? calls.openRegular(directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0)
        else { return }
        defer { calls.close(file) }
        // As above.
        try? calls.dataSync(file)
    }

    private func touch(_ path: String, powers: Range<UInt32>) {
        let power = powers.lowerBound + randomNumber(below: UInt32(powers.count))
        let count = (1 << power) + randomNumber(below: 1 << power)
        touch(path, count: Int(count))
    }

    /// Changes a file's times as a write does. Best effort.
    func touch(_ path: String, count: Int) { try? calls.touch(directory, path, count: count) }

    // MARK: The page cache

    // The kernel's page cache shows everybody with read access to a file which parts of it were used: fincore(1).

    /// Drops the file of all spaces from the page cache. Does nothing in a vault of one space.
    ///
    /// - Parameter ofKilled: also drops dirty pages that a killed session may have left, by syncing them first.
    func dropPageCache(_ layout: SegmentLayout, ofKilled: Bool) {
        guard layout.isShared else { return }
        Self.dropSpaces(in: directory, calls, ofKilled: ofKilled)
    }

    /// Drops what an earlier session left in the page cache, because a killed one could not. Called first of all when
    /// a vault is opened, so that it happens whatever comes then: a wrong password, a damaged header, another mount.
    /// Best effort, and harmless beneath a mount, which reads its pages again.
    static func dropTraces(in directory: Int32, _ calls: any FileSystemCalls) {
        guard dropSpaces(in: directory, calls, ofKilled: true) else { return }
        guard let file = try? calls.openRegular(directory, headerName, flags: O_RDONLY, mode: 0) else {
            return
        }
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
