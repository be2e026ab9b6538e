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
            return exchange.texts.map { "give files their own names, as \($0)" } + ["check all of it again"]
        }
        if mustSalvage {
            return ["build the catalogue anew from what is left of it and from the photos themselves"]
        }
        var lines: [String] = []
        func add(_ count: Int, _ one: String, _ many: String) {
            if count > 0 { lines.append(count == 1 ? one : many.replacing("#", with: "\(count)")) }
        }
        add(segments.count, "make a missing segment anew, empty", "make # missing segments anew, empty")
        add(roots, "write a root's second copy again", "write the second copies of # roots again")
        add(
            lostRoots, "go on from the state that can be read, in the place of a root that is lost",
            "go on from the state that can be read, in the place of # roots that are lost")
        add(
            parts.count, "write a page again, of which one copy is damaged",
            "write # pages again, of which one copy is damaged")
        add(
            allocation.unmarkedSectors, "mark a sector as taken that is in use",
            "mark # sectors as taken that are in use")
        add(
            allocation.givenBackSectors, "keep a sector that is in use and was given back",
            "keep # sectors that are in use and were given back")
        add(
            allocation.unmarkedSlots, "mark a page slot as taken that is in use",
            "mark # page slots as taken that are in use")
        add(
            allocation.leakedSectors + allocation.leakedSlots * 16, "free a sector that nobody has",
            "free # sectors that nobody has")
        add(
            allocation.wrongCounts, "count the sectors of a segment anew",
            "count the sectors of # segments anew")
        add(
            allocation.lostBitmaps, "make the bitmap of a segment anew", "make the bitmaps of # segments anew"
        )
        add(descriptors.count, "write a descriptor again", "write # descriptors again")
        if !contested.isEmpty {
            lines.append(
                "leave sectors that two extents claim to the one that opens; what the other held stays an error"
            )
        }
        add(records.count, "write an identity record anew", "write # identity records anew")
        add(thumbnails.count, "drop a damaged thumbnail", "drop # damaged thumbnails")
        if mustReindex { lines.append("make the indexes of the catalogue anew") }
        for rule in rules { lines.append("set right: \(rule.violation)") }
        return lines
    }
}
