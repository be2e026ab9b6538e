/// A table that remembers between `countMax` and twice as many of the newest entries.
public struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let countMax: Int
    private var newer: [Key: Value] = [:]
    private var older: [Key: Value] = [:]

    public init(countMax: Int) { self.countMax = countMax }

    public var isEmpty: Bool { newer.isEmpty && older.isEmpty }

    public subscript(key: Key) -> Value? { newer[key] ?? older[key] }

    public mutating func insert(_ value: Value, for key: Key) {
        if newer.count >= countMax && newer[key] == nil { (older, newer) = (newer, [:]) }
        newer[key] = value
    }

    /// Removes an entry and returns it.
    @discardableResult
    public mutating func remove(_ key: Key) -> Value? {
        let former = older.removeValue(forKey: key)
        return newer.removeValue(forKey: key) ?? former
    }
}
