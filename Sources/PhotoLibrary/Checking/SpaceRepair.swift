import VaultCatalogue
import VaultFormat
public import VaultStore

/// Sets right what a check found, as far as that loses nothing which can be read. Of a space that nobody has mounted.
///
/// All of it becomes durable with commits like any other: a crash leaves the old state or the new one.
public struct SpaceRepair {
    private let space: Space
    private let catalogue: Catalogue
    private let plan: RepairPlan

    /// Does what the plan of a report says. Where segments have each other's names it only gives them their own: the
    /// space is to be checked again then.
    ///
    /// - Parameter salvage: what was found where the plan says that the catalogue is to be built anew.
    public static func run(
        _ unlocked: UnlockedSpace, _ plan: RepairPlan, salvage: Salvage? = nil
    ) throws(VaultError) {
        if plan.mustSalvage && salvage == nil && plan.exchange == nil {
            throw .damaged("the catalogue cannot be read whole, and was not looked for elsewhere")
        }
        if let exchange = plan.exchange {
            try unlocked.undo(exchange)
            return unlocked.levelTimes()
        }
        try unlocked.repairFiles()
        if plan.mustSalvage, let salvage {
            try salvage.rebuild()
            return unlocked.levelTimes()
        }
        let space = try unlocked.openSpace(.repairing)
        do throws(FileError) {
            let catalogue = try sql(Catalogue(storage: space))
            let repair = SpaceRepair(space: space, catalogue: catalogue, plan: plan)
            try repair.mendFiles()
            if !plan.allocation.isClean { try repair.mendAllocation() }
            try repair.mendPages()
            try repair.mendCatalogue()
            try repair.publish()
        } catch {
            if error == .noRoom { throw .noRoom }
            throw .damaged("the repair could not be finished; nothing was lost by it, so try again")
        }
        unlocked.levelTimes()
    }

    private func mendFiles() throws(FileError) { try stored(space.remakeSegments(plan.segments)) }

    /// Before all else that writes, so that nothing is written over what is in use and marked as free.
    private func mendAllocation() throws(FileError) {
        _ = space.compareSlots(space.checkStructure(), mending: true)
        let step = Self.segmentsAtOnce
        for first in stride(from: 0, to: space.segmentCount, by: step) {
            let window = first..<min(first + step, space.segmentCount)
            var expected = space.expectedUse(of: window)
            for checked in try runs(reaching: window) { expected.add(checked) }
            _ = space.compareSectors(expected, mending: true)
        }
    }

    private static let segmentsAtOnce = 64

    /// Runs that lie in these segments, wholly or with their end; by sector.
    private func runs(reaching window: Range<Int>) throws(FileError) -> [CheckedRun] {
        let sectors = UInt64(space.sectorsPerSegment)
        let (first, end) = (UInt64(window.lowerBound) * sectors, UInt64(window.upperBound) * sectors)
        let found = try catalogue.locked { tables throws(FileError) in
            try sql(tables.runs(reaching: first..<end))
        }
        return found.filter { space.isPossible($0.run) }
    }

    private func mendPages() throws(FileError) { try stored(space.rewrite(plan.parts)) }

    private func mendCatalogue() throws(FileError) {
        try catalogue.locked { tables throws(FileError) in
            if plan.mustReindex { try sql(tables.reindex()) }
            // What mends one may break another, which counts.
            for rule in CatalogueRule.all where rule.isMendable && !plan.rules.isEmpty {
                if try sql(tables.violations(of: rule, limit: 1)).isEmpty { continue }
                try sql(tables.mend(rule))
            }
            for content in plan.thumbnails.sorted() {
                space.free(try sql(tables.dropThumbnail(content: content)).filter { space.isPossible($0) })
            }
            if !plan.thumbnails.isEmpty { try sql(tables.countTotals()) }
            for id in plan.records.sorted() {
                if let run = try sql(tables.identity(id)), space.isPossible(run) { space.free([run]) }
                try sql(tables.deleteIdentity(id))
                try sql(tables.markUnrecorded(id))
            }
            for damage in plan.descriptors { try mendDescriptor(damage, tables) }
        }
    }

    /// What cannot be mended is found by the check that follows.
    private func mendDescriptor(_ damage: ExtentDamage, _ tables: Tables) throws(FileError) {
        guard case .descriptor(let role) = damage.fault else { return }
        let runs = try sql(tables.runs(of: damage.content, isRecord: damage.isRecord))
        let checked = runs.first { $0.run.offset <= damage.offset && damage.offset < $0.run.end }
        if let checked { _ = space.mendDescriptor(of: checked, at: damage.sector, role: role) }
    }

    private func publish() throws(FileError) {
        let frozen = try sql(
            catalogue.commitTransaction(before: { _ in }, freeze: { space.freeze() }))
        try stored(space.publish(frozen, durable: true))
        // What rows that were removed had is nobody's now.
        if !plan.rules.isEmpty { try mendAllocation() }
        try stored(space.publishMended())
        if plan.hasLostDelta {
            // No root leads to it any more: now its own slot is one that nobody has.
            try mendAllocation()
            try stored(space.publishMended())
        }
        try stored(space.close())
    }
}
