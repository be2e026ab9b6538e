/// Inodes that left memory while the kernel might use an outdated name of them: a request by that name may be under way
/// even if the kernel has received all notices by now. Remembers between `inodesMax` and twice as many of the newest.
struct StaleInodes: Sendable {
    private let inodesMax: Int
    private var newer: Set<UInt64> = []
    private var older: Set<UInt64> = []

    init(inodesMax: Int) { self.inodesMax = inodesMax }

    var isEmpty: Bool { newer.isEmpty && older.isEmpty }

    mutating func insert(_ ino: UInt64) {
        if newer.count >= inodesMax { (older, newer) = (newer, []) }
        newer.insert(ino)
    }

    /// Removes an inode. Returns whether it was there.
    mutating func remove(_ ino: UInt64) -> Bool {
        let wasOlder = older.remove(ino) != nil
        return newer.remove(ino) != nil || wasOlder
    }
}
