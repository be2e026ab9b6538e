/// The files whose rows changed since the newest durable root, up to a bound: named where they cannot be written.
/// Under the catalogue's lock.
struct UnwrittenFiles {
    /// Changed since the last commit was frozen.
    private var changed: Set<UInt64> = []
    /// Those before, of commits that are not durable.
    private var frozen: Set<UInt64> = []
    private var isChangedMore = false
    private var isFrozenMore = false

    /// More of each kind are not counted.
    private let countMax: Int

    init(countMax: Int) { self.countMax = countMax }

    /// Some of them may be gone by now.
    var inodes: Set<UInt64> { changed.union(frozen) }
    /// Whether there are others.
    var isMore: Bool { isChangedMore || isFrozenMore }

    @inline(__always)
    mutating func note(_ ino: UInt64) {
        if changed.count < countMax { changed.insert(ino) } else { isChangedMore = true }
    }

    /// A commit is being made of all there is.
    mutating func freeze() {
        if changed.isEmpty { return }
        isFrozenMore = isFrozenMore || isChangedMore || frozen.count + changed.count > countMax
        if frozen.count < countMax { frozen.formUnion(changed) }
        changed.removeAll(keepingCapacity: true)
        isChangedMore = false
    }

    /// What was frozen is durable.
    mutating func noteDurable() {
        frozen.removeAll(keepingCapacity: true)
        isFrozenMore = false
    }
}
