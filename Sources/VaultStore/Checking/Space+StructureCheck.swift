import LinuxIO
import VaultFormat

/// Checking that everything the newest root leads to opens, each copy for itself.
extension Space {
    /// Checks roots, maps, pages and deltas of a space that nobody changes.
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

    /// The same for a part of a space that is in use: the pages of the catalogue with these numbers, or, behind its
    /// last, everything else. What a commit has replaced meanwhile is looked at again.
    public func checkLivePages(_ pages: Range<Int>) -> StructureReport {
        var report = StructureReport()
        for _ in 0..<Self.liveAttemptsMax {
            let root = lock.withLock { current }
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

    /// Durable roots that ought to be there, and are not whole.
    ///
    /// After a crash one may be torn without anything being wrong: the first durable commit after it mends that. So
    /// only a space that was closed is to have all whole.
    private func checkRoots() -> [StructureDamage] {
        let found = Self.findRoots(files: files, codec: codec)
        guard found.allSatisfy(\.root.isDurable) else { return [] }
        let newest = found.map(\.root.generation).max()
        var damage: [StructureDamage] = []
        for slot in RootLayout.durableSlots {
            if let root = found.first(where: { $0.slot == slot }) {
                guard let copy = root.tornCopy else { continue }
                // A process that was killed in its first commit was between the two.
                if root.isHalfWritten, root.root.generation == newest { continue }
                damage.append(
                    StructureDamage(part: .root(slot: slot), isADamaged: copy == 0, isBDamaged: copy == 1))
            } else {
                damage.append(
                    StructureDamage(part: .root(slot: slot), isADamaged: true, isBDamaged: true))
            }
        }
        return damage.filter { damage in
            // A segment that is gone is told once.
            let copies = [damage.isADamaged ? 0 : nil, damage.isBDamaged ? 1 : nil].compactMap { $0 }
            return !copies.allSatisfy { segmentFault(Self.rootSector(0, copy: $0, files: files), 8) != nil }
        }
    }

    /// Whether the root that was the newest when the space was closed is none of those found.
    func isNewestRootLost(of found: [FoundRoot]) -> Bool {
        guard found.allSatisfy(\.root.isDurable), !found.contains(where: { $0.slot == rings.nextDurable }),
            let newest = found.map(\.root.generation).max()
        else { return false }
        return hasDelta(after: newest)
    }

    /// Whether a delta is there of a commit after a generation: in a space that was closed such a commit had a root.
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
