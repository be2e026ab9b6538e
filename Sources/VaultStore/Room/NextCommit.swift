/// The commit that changes belong to until the next freeze. Under the space's lock.
final class NextCommit: @unchecked Sendable {
    /// Its generation, as that of extents written now.
    private(set) var generation: UInt64
    /// Whether it has any change.
    private(set) var isChanged = false

    init(generation: UInt64) { self.generation = generation }

    func noteChange() { isChanged = true }

    /// Ends it at a freeze: later changes belong to the one after. Returns its generation.
    func end() -> UInt64 {
        defer { generation += 1 }
        isChanged = false
        return generation
    }

    /// Leaves out so many generations.
    func skip(_ count: UInt64) { generation += count }

    /// Leaves out all generations up to the given one.
    func skip(through last: UInt64) { generation = max(generation, last + 1) }
}
