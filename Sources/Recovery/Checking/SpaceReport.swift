public import PhotoLibrary
package import VaultCatalogue
import VaultFormat
public import VaultStore

/// The findings of a check of a space, and the plan of its repair.
public struct SpaceReport: Sendable {
    public var findings: [Finding] = []
    /// Regular files with a name.
    public internal(set) var fileCount = 0
    /// Bytes read.
    public internal(set) var bytes: UInt64 = 0
    /// The check ended early and may have missed damage.
    public internal(set) var isInterrupted = false
    /// The catalogue was made by a later release: nothing of it was checked, nor may be repaired.
    var newer: NewerVersion?
    public internal(set) var plan = RepairPlan()
    /// Sectors of extents and pages that do not open, for a backup.
    public internal(set) var damagedSectors: [Range<UInt64>] = []
    /// Whether the newest state can be read, so that what leads to its files is known.
    public var isNewestState: Bool { !plan.mustSalvage && !plan.keepsOlderState && plan.exchange == nil }
    private var known: Set<String> = []

    /// Makes the plan one of building the catalogue anew: a salvage found more than it has.
    public mutating func takeUp() { plan.mustSalvage = true }

    package mutating func add(_ finding: Finding) {
        if known.insert(finding.text).inserted { findings.append(finding) }
    }

    /// Adds a finding about a part of the space: by default one that only costs room, or nothing yet.
    package mutating func add(
        _ subject: String, _ cause: String, kind: FindingKind, isHarmless: Bool = true
    ) {
        add(Finding(subject: subject, cause: cause, kind: kind, isHarmless: isHarmless))
    }
}

/// The steps of `--repair`.
public struct RepairPlan: Sendable {
    /// Parts with one intact copy.
    package var parts: [StructurePart] = []
    package var roots = 0
    /// Slots whose root is lost.
    var lostRoots = 0
    /// The newest state cannot be read: an older one becomes the newest.
    var keepsOlderState = false
    /// A delta is lost, and with it the information that its slot, and all that it freed, is free.
    var hasLostDelta = false
    /// Contents of damaged thumbnails.
    package var thumbnails: Set<UInt64> = []
    /// IDs of damaged identity records.
    package var records: Set<UInt64> = []
    package var descriptors: [ExtentDamage] = []
    /// Contents whose runs share sectors with others or lie at impossible sectors.
    var contested: Set<ContentKey> = []
    package var constraints: [IntegrityConstraint] = []
    package var allocation = AllocationReport()
    var mustReindex = false
    /// The catalogue cannot be read completely: it must be rebuilt from the extents' own metadata.
    public internal(set) var mustSalvage = false
    package var segments: [Int] = []
    /// In a vault that grows, missing segments are not created while files have bytes in them or elsewhere are lost:
    /// nothing may be written there before they are put back.
    var awaitsSegments = false
    /// Bytes of some files are recorded as lost: a segment that was put back may have them.
    var hasLostRuns = false
    /// Whether a repair has missed records.
    var hasMissedRecords = false
    /// Whether a salvage may find more than the catalogue has: bytes are lost, or records are, which were written where
    /// a segment was put back; or an earlier repair missed records.
    public var mayFindMore: Bool { hasLostRuns || hasMissedRecords || !records.isEmpty }
    /// Segments with exchanged names. All other steps apply to the space with the right names.
    public internal(set) var exchange: SegmentExchange?

    /// Whether rows of the catalogue change.
    var changesCatalogue: Bool {
        // An older state may be that of a new space, which has no directories.
        keepsOlderState || mustReindex
            || !(constraints.isEmpty && contested.isEmpty && thumbnails.isEmpty && records.isEmpty)
    }

    /// Whether a write could overwrite data in use, or rows may change.
    var mustMendAllocation: Bool { !allocation.isClean || changesCatalogue }

    /// One line per step.
    public var lines: [String] {
        if let exchange {
            return exchange.texts.map { "rename segment files: \($0)" } + ["check all of it again"]
        }
        if mustSalvage {
            return ["rebuild the catalogue from the photos and their identity records"]
        }
        var lines: [String] = []
        func add(_ count: Int, _ one: String, _ many: String) {
            if count > 0 { lines.append(count == 1 ? one : many.replacing("#", with: "\(count)")) }
        }
        if keepsOlderState { lines.append("give up the newest state, and go on with the older one") }
        add(segments.count, "recreate a missing segment, empty", "recreate # missing segments, empty")
        add(roots, "rewrite a root's second copy", "rewrite the second copies of # roots")
        add(
            lostRoots, "replace a lost root with the newest state that can be read",
            "replace # lost roots with the newest state that can be read")
        add(
            parts.count, "rewrite a page with one damaged copy",
            "rewrite # pages with one damaged copy")
        add(
            allocation.unmarkedSectors, "mark a sector in use as allocated",
            "mark # sectors in use as allocated")
        add(
            allocation.freedTooEarlySectors, "keep a sector in use that was about to be freed",
            "keep # sectors in use that were about to be freed")
        add(
            allocation.unmarkedSlots, "mark a page slot in use as allocated",
            "mark # page slots in use as allocated")
        add(
            allocation.leakedSectors + allocation.leakedSlots * 16, "free a sector that is not in use",
            "free # sectors that are not in use")
        add(
            allocation.wrongCounts, "recount the sectors of a segment",
            "recount the sectors of # segments")
        add(
            allocation.lostBitmaps, "rebuild the bitmap of a segment", "rebuild the bitmaps of # segments"
        )
        add(descriptors.count, "rewrite a descriptor", "rewrite # descriptors")
        if !contested.isEmpty {
            lines.append(
                "give shared sectors to the extent that authenticates; reading the other stays an error"
            )
        }
        add(records.count, "rewrite an identity record", "rewrite # identity records")
        add(thumbnails.count, "drop a damaged thumbnail", "drop # damaged thumbnails")
        if mustReindex { lines.append("rebuild the indexes of the catalogue") }
        for constraint in constraints { lines.append("fix: \(constraint.violation)") }
        return lines
    }
}
