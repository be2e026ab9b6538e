/// The files whose rows changed since the newest durable root, up to a limit: listed to the user if they cannot be
/// written. Under the catalogue's lock.
package struct UnwrittenFiles {
    /// Changed since the last commit was frozen.
    private var changed: Set<UInt64> = []
    /// Changed before, in commits that are not durable.
    private var frozen: Set<UInt64> = []
    private var isChangedMore = false
    private var isFrozenMore = false

    /// A set of this size takes no more files.
    private let countMax: Int

    package init(countMax: Int) { self.countMax = countMax }

    /// Some may have been destroyed since.
    package var inodes: Set<UInt64> { changed.union(frozen) }
    /// Whether other files changed too.
    package var isMore: Bool { isChangedMore || isFrozenMore }

    @inline(__always)
    package mutating func note(_ ino: UInt64) {
        if changed.count < countMax { changed.insert(ino) } else { isChangedMore = true }
    }

    /// Notes that a commit takes all changes so far.
    package mutating func freeze() {
        if changed.isEmpty { return }
        isFrozenMore = isFrozenMore || isChangedMore || frozen.count + changed.count > countMax
        if frozen.count < countMax { frozen.formUnion(changed) }
        changed.removeAll(keepingCapacity: true)
        isChangedMore = false
    }

    /// Notes that the frozen changes are durable.
    package mutating func noteDurable() {
        frozen.removeAll(keepingCapacity: true)
        isFrozenMore = false
    }
}
