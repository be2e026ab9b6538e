package import FileRequests
import PhotoLibrary
import VaultCatalogue
import VaultFormat
public import VaultStore

/// Repairs the findings of a check of an unmounted space, as far as that loses no readable data.
///
/// All changes become durable with ordinary commits: a crash leaves the old state or the new one.
public struct SpaceRepair {
    private let space: Space
    private let catalogue: Catalogue
    private let plan: RepairPlan

    /// Executes a repair plan. If segments have exchanged names, it only renames them: the space must be checked again
    /// then.
    ///
    /// - Parameter salvage: the recovered data, if the plan requires a new catalogue.
    public static func run(
        _ unlocked: UnlockedSpace, _ plan: RepairPlan, salvage: Salvage? = nil
    ) throws(VaultError) {
        if plan.mustSalvage && salvage == nil && plan.exchange == nil {
            throw .damaged("the catalogue cannot be read completely, and no salvage was run")
        }
        try unlocked.requireKnownFeatures()
        if let exchange = plan.exchange {
            try unlocked.undo(exchange)
            return unlocked.blurTraces()
        }
        try unlocked.repairFiles(segmentCount: (plan.segments.max() ?? -1) + 1)
        if plan.mustSalvage, let salvage {
            try salvage.rebuild()
            return unlocked.blurTraces()
        }
        let space = try unlocked.openSpace(.repairing)
        do throws(FileError) {
            let catalogue = try Catalogue(of: space, readOnly: false)
            let repair = SpaceRepair(space: space, catalogue: catalogue, plan: plan)
            // Until the indexes are rebuilt.
            if plan.mustReindex { catalogue.locked { $0.runs.trustsSectorIndexes = false } }
            try repair.mendFiles()
            if plan.mustMendAllocation { try repair.mendAllocation() }
            try repair.mendPages()
            try repair.mendCatalogue()
            try repair.publish()
        } catch {
            if error == .noRoom { throw .noRoom }
            throw .damaged("the repair could not be finished; nothing was lost: try again")
        }
        unlocked.blurTraces()
    }

    private func mendFiles() throws(FileError) {
        try stored(space.segments.remake(plan.segments, fillsGaps: !plan.awaitsSegments))
    }

    /// Precedes other writes, so that none overwrites data in use that is marked as free.
    private func mendAllocation() throws(FileError) {
        _ = AllocationCheck(of: space).compareSlots(StructureCheck(of: space).run(), mending: true)
        try catalogue.locked { tables throws(FileError) in
            var windows = try SegmentWindows(space, tables)
            while let window = try windows.next(tables) {
                _ = AllocationCheck(of: space).compareSectors(window.expected, mending: true)
            }
        }
    }

    private func mendPages() throws(FileError) { try stored(space.rewrite(plan.parts)) }

    // MARK: Catalogue

    /// Limit of rounds through all constraints: mending one may violate another.
    private static let roundsMax = 4

    private func mendCatalogue() throws(FileError) {
        try catalogue.locked { tables throws(FileError) in
            if plan.changesCatalogue { try mendRows(tables) }
            for damage in plan.descriptors { try mendDescriptor(damage, tables) }
        }
    }

    private func mendRows(_ tables: Tables) throws(FileError) {
        if plan.mustReindex { try tables.checks.reindex(chooseName) }
        let mender = CatalogueMender(tables, chooseName: chooseName)
        // First the numbers and directories that recovered files need; then extents, while it is known which records
        // are as new as the rows.
        for constraint in IntegrityConstraint.foundations { try mend(constraint, tables, mender) }
        try mendExtents(tables, mender)
        try dropDamaged(tables)
        for _ in 0..<Self.roundsMax {
            if try !mendConstraints(tables, mender) { return }
        }
    }

    /// Goes through the constraints once; returns whether one was violated.
    private func mendConstraints(_ tables: Tables, _ mender: CatalogueMender) throws(FileError) -> Bool {
        var isBroken = false
        for constraint in IntegrityConstraint.all where constraint.isMendable {
            if try mend(constraint, tables, mender) { isBroken = true }
        }
        return isBroken
    }

    /// Mends the violations of a constraint; returns whether there was one.
    @discardableResult
    private func mend(
        _ constraint: IntegrityConstraint, _ tables: Tables, _ mender: CatalogueMender
    ) throws(FileError) -> Bool {
        if try tables.checks.violations(of: constraint, limit: 1).isEmpty { return false }
        try mender.mend(constraint) { () throws(FileError) in try mendExtents(tables, mender) }
        return true
    }

    /// Mends the extents of all contents that share sectors or lie at impossible ones.
    private func mendExtents(_ tables: Tables, _ mender: CatalogueMender) throws(FileError) {
        let end = UInt64(space.segments.count) * UInt64(space.sectors.perSegment)
        var keys = Set(try tables.runs.outside(from: end).map(\.key))
        keys.formUnion(try tables.contents.toMend().map { ContentKey(content: $0) })
        keys.formUnion(plan.contested)
        keys.formUnion(try contested(tables))
        if keys.isEmpty { return }
        for _ in 0..<Self.roundsMax {
            var repair = ExtentRepair(space, tables, mender)
            try repair.mend(keys)
            // A restored extent may overlap one that nobody contested until then.
            let more = try contested(tables)
            if more.isSubset(of: keys) { return }
            keys.formUnion(more)
        }
    }

    /// Contents whose runs share sectors with others or lie at impossible sectors.
    private func contested(_ tables: Tables) throws(FileError) -> Set<ContentKey> {
        var keys: Set<ContentKey> = []
        var windows = try SegmentWindows(space, tables)
        while let window = try windows.next(tables) { keys.formUnion(window.contested(space)) }
        return keys
    }

    /// Damaged thumbnails and identity records are dropped and made again. Their sectors are freed once no row names
    /// them, because another extent may lie there.
    private func dropDamaged(_ tables: Tables) throws(FileError) {
        for content in plan.thumbnails.sorted() { try tables.contents.dropThumbnail(content: content) }
        if !plan.thumbnails.isEmpty { try tables.checks.countTotals() }
        for id in plan.records.sorted() {
            try tables.identities.delete(id)
            try tables.identities.markUnrecorded(id)
        }
    }

    /// The check that follows finds descriptors that cannot be mended.
    private func mendDescriptor(_ damage: ExtentDamage, _ tables: Tables) throws(FileError) {
        guard case .descriptor(let role) = damage.fault else { return }
        let runs = try tables.runs.runs(of: damage.content, isRecord: damage.isRecord)
        let checked = runs.first { $0.run.offset <= damage.offset && damage.offset < $0.run.end }
        if let checked {
            _ = ExtentCheck(of: space).mendDescriptor(of: checked, at: damage.sector, role: role)
        }
    }

    private func publish() throws(FileError) {
        let frozen = try catalogue.commitTransaction(before: { _ in }, freeze: { space.freeze() })
        try stored(space.publish(frozen, durable: true))
        // The sectors of removed rows have no owner now.
        if plan.changesCatalogue { try mendAllocation() }
        try stored(space.publishMended())
        if plan.hasLostDelta {
            // No root leads to the lost delta any more: its slot has no owner now.
            try mendAllocation()
            try stored(space.publishMended())
        }
        try stored(space.segments.removeUnusedEnd())
        try stored(space.close())
    }
}

/// Returns a valid entry name like `wanted`, numbered if it is taken.
package func chooseName(
    _ wanted: [UInt8], _ isFree: ([UInt8]) throws(FileError) -> Bool
) throws(FileError) -> [UInt8] {
    try firstFreeName(possibleName(wanted), isFree: isFree)
}
