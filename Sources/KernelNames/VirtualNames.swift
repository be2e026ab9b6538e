/// Names in virtual directories by which the kernel has looked inodes up. Remembers those of between `inodesMin` and
/// twice as many inodes; the kernel must drop the names of others.
struct VirtualNames: Sendable {
    private struct Place: Sendable, Equatable {
        var directory: UInt64
        var name: [UInt8]
        var notice: KernelNames.Notice { .lostEntry(parent: directory, name: name, isInDay: true) }
    }

    private let inodesMin: Int
    private var newer: [UInt64: [Place]] = [:]
    private var older: [UInt64: [Place]] = [:]

    init(inodesMin: Int) { self.inodesMin = inodesMin }

    var isEmpty: Bool { newer.isEmpty && older.isEmpty }

    /// Notes a name. Returns the notices of names that are not remembered any longer.
    mutating func note(_ name: [UInt8], in directory: UInt64, of ino: UInt64) -> [KernelNames.Notice] {
        let place = Place(directory: directory, name: name)
        if newer[ino]?.contains(place) == true { return [] }
        var known = newer[ino] ?? older.removeValue(forKey: ino) ?? []
        if !known.contains(place) { known.append(place) }
        newer[ino] = known
        guard newer.count >= inodesMin else { return [] }
        defer { (older, newer) = (newer, [:]) }
        return older.values.flatMap { $0.map(\.notice) }
    }

    /// Forgets the names of an inode; returns their notices.
    mutating func take(_ ino: UInt64) -> [KernelNames.Notice] {
        let places = (newer.removeValue(forKey: ino) ?? []) + (older.removeValue(forKey: ino) ?? [])
        return places.map(\.notice)
    }
}
