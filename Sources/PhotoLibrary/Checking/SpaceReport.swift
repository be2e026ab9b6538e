import VaultCatalogue
public import VaultStore

/// What a check of a space found, and what could be set right.
public struct SpaceReport: Sendable {
    public internal(set) var findings: [Finding] = []
    /// Files whose bytes were checked.
    public internal(set) var fileCount = 0
    /// Bytes read.
    public internal(set) var bytes: UInt64 = 0
    /// It was ended early: what was not found may still be.
    public internal(set) var isInterrupted = false
    public internal(set) var plan = RepairPlan()
    private var known: Set<String> = []

    mutating func add(_ finding: Finding) {
        if known.insert(finding.text).inserted { findings.append(finding) }
    }

    /// Findings of a part of the space that only cost room, or nothing yet.
    mutating func add(_ subject: String, _ cause: String, isHarmless: Bool = true) {
        add(Finding(subject: subject, cause: cause, isHarmless: isHarmless))
    }
}

/// What `--repair` will do.
public struct RepairPlan: Sendable {
    /// Parts of which one copy is left.
    var parts: [StructurePart] = []
    var roots = 0
    /// Slots whose root is gone.
    var lostRoots = 0
    /// A delta is gone, and with it what tells that it, and what it gave back, is free.
    var hasLostDelta = false
    /// Contents of damaged thumbnails.
    var thumbnails: Set<UInt64> = []
    /// Numbers of damaged identity records.
    var records: Set<UInt64> = []
    var descriptors: [ExtentDamage] = []
    /// Whose extents lie where those of others do, or where none can.
    var contested: Set<ContentKey> = []
    var rules: [IntegrityConstraint] = []
    var allocation = AllocationReport()
    var mustReindex = false
    /// The catalogue cannot be read whole: it has to be built anew from what the extents say of themselves.
    public internal(set) var mustSalvage = false
    var segments: [Int] = []
    /// Segments that have each other's names. What else is planned is about the space without that.
    public internal(set) var exchange: SegmentExchange?

    /// Whether rows of the catalogue change.
    var changesCatalogue: Bool {
        mustReindex || !(rules.isEmpty && contested.isEmpty && thumbnails.isEmpty && records.isEmpty)
    }

    /// Whether a write could destroy what is there, or rows may change.
    var mustMendAllocation: Bool { !allocation.isClean || changesCatalogue }

    /// One line a step.
    public var lines: [String] {
        if let exchange {
            return exchange.texts.map { "rename segment files: \($0)" } + ["check all of it again"]
        }
        if mustSalvage {
            return ["rebuild the catalogue from what is left of it and from the photos themselves"]
        }
        var lines: [String] = []
        func add(_ count: Int, _ one: String, _ many: String) {
            if count > 0 { lines.append(count == 1 ? one : many.replacing("#", with: "\(count)")) }
        }
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
            allocation.givenBackSectors, "keep a sector in use that was about to be freed",
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
        for rule in rules { lines.append("fix: \(rule.violation)") }
        return lines
    }
}
