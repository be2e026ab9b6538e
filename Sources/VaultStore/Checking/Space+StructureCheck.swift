import LinuxIO
import VaultFormat

/// Checking that everything that the newest root refers to opens, each copy separately.
extension Space {
    /// Checks roots, maps, pages and deltas of a space without concurrent changes.
    public func checkStructure() -> StructureReport {
        let root = lock.withLock { current }
        var walk = PageWalk(self, root)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        walk.collectDeltas()
        var report = openCopies(walk.found, pairs: root.pairs)
        report.damage += checkRoots()
        report.damage.sort { $0.part.text < $1.part.text }
        report.slots = walk.found.map(\.reference.slot)
        return report
    }

    /// As `checkStructure`, for a part of a space in use: these pages of the catalogue, or everything else if they lie
    /// beyond its last. Repeats if a commit was published meanwhile and something was found.
    public func checkLivePages(_ pages: Range<Int>) -> StructureReport {
        var report = StructureReport()
        for _ in 0..<Self.liveAttemptsMax {
            let root = lock.withLock {
                held.append(current.generation)
                return current
            }
            defer { letGo(of: root.generation) }
            var walk = PageWalk(self, root)
            if pages.lowerBound < Int(root.objects[MapObject.catalogue.rawValue].pageCount) {
                walk.collect(.catalogue, pages)
            } else {
                for object in MapObject.allCases where object != .catalogue {
                    walk.collect(object, 0..<Int.max)
                }
                walk.collectDeltas()
            }
            report = openCopies(walk.found, pairs: root.pairs)
            let isStill = lock.withLock { current.generation == root.generation }
            if isStill || (report.damage.isEmpty && report.segments.isEmpty) { break }
        }
        return report
    }

    private static let liveAttemptsMax = 16

    // MARK: Roots

    /// Durable roots that are missing or have a torn copy.
    ///
    /// After a crash a torn root is no damage: the next durable commit repairs it. So only a closed space must have all
    /// roots whole.
    private func checkRoots() -> [StructureDamage] {
        let found = Self.findRoots(files: files, codec: codec)
        guard found.allSatisfy(\.root.isDurable) else { return [] }
        let newest = found.map(\.root.generation).max()
        var damage: [StructureDamage] = []
        for slot in RootLayout.durableSlots {
            if let root = found.first(where: { $0.slot == slot }) {
                guard let copy = root.tornCopy else { continue }
                // A process was killed in its first commit, between the two copies.
                if root.isHalfWritten, root.root.generation == newest { continue }
                damage.append(
                    StructureDamage(part: .root(slot: slot), isADamaged: copy == 0, isBDamaged: copy == 1))
            } else {
                damage.append(
                    StructureDamage(part: .root(slot: slot), isADamaged: true, isBDamaged: true))
            }
        }
        return damage.filter { damage in
            // A missing segment is reported once.
            let copies = [damage.isADamaged ? 0 : nil, damage.isBDamaged ? 1 : nil].compactMap { $0 }
            return !copies.allSatisfy { segmentFault(Self.rootSector(0, copy: $0, files: files), 8) != nil }
        }
    }

    /// Whether the newest root of a closed space is missing from those found.
    func isNewestRootLost(of found: [FoundRoot]) -> Bool {
        guard found.allSatisfy(\.root.isDurable), !found.contains(where: { $0.slot == rings.nextDurable }),
            let newest = found.map(\.root.generation).max()
        else { return false }
        return hasDelta(after: newest)
    }

    /// Whether there is a delta of a commit after `generation`: in a closed space that commit had a root.
    private func hasDelta(after generation: UInt64) -> Bool {
        let (pairs, count) = lock.withLock { (self.pairs, slots.slotCount) }
        for slot in RootLayout.rootSlots..<count {
            let identity = PageIdentity(role: .delta, index: UInt32(slot))
            guard let place = try? place(UInt32(slot), pairs: pairs) else { return false }
            for (copy, sector) in [place.sectorA, place.sectorB].enumerated() {
                let found = try? withUnsafeTemporaryPage { (sealed) throws(StoreError) -> UInt64? in
                    try files.read(sector, into: sealed)
                    return try withUnsafeTemporaryPage { (plain) throws(StoreError) -> UInt64? in
                        let page = UnsafeRawBufferPointer(sealed)
                        guard codec.open(page, as: identity, copy: UInt8(copy), expected: nil, into: plain)
                        else { return nil }
                        return UnsafeRawBufferPointer(plain).number(DeltaLayout.generationOffset)
                    }
                }
                if let found, found > generation { return true }
            }
        }
        return false
    }
}
