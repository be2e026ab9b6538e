import VaultCatalogue
public import VaultStore

/// The findings of a check of a space, and the plan of its repair.
public struct SpaceReport: Sendable {
    public internal(set) var findings: [Finding] = []
    /// Regular files with a name.
    public internal(set) var fileCount = 0
    /// Bytes read.
    public internal(set) var bytes: UInt64 = 0
    /// The check ended early and may have missed damage.
    public internal(set) var isInterrupted = false
    public internal(set) var plan = RepairPlan()
    private var known: Set<String> = []

    mutating func add(_ finding: Finding) {
        if known.insert(finding.text).inserted { findings.append(finding) }
    }

    /// Adds a finding about a part of the space: by default one that only costs room, or nothing yet.
    mutating func add(_ subject: String, _ cause: String, isHarmless: Bool = true) {
        add(Finding(subject: subject, cause: cause, isHarmless: isHarmless))
    }
}

/// The steps of `--repair`.
public struct RepairPlan: Sendable {
    /// Parts with one intact copy.
    var parts: [StructurePart] = []
    var roots = 0
    /// Slots whose root is lost.
    var lostRoots = 0
    /// A delta is lost, and with it the information that its slot, and all that it freed, is free.
    var hasLostDelta = false
    /// Contents of damaged thumbnails.
    var thumbnails: Set<UInt64> = []
    /// IDs of damaged identity records.
    var records: Set<UInt64> = []
    var descriptors: [ExtentDamage] = []
    /// Contents whose runs share sectors with others or lie at impossible sectors.
    var contested: Set<ContentKey> = []
    var rules: [IntegrityConstraint] = []
    var allocation = AllocationReport()
    var mustReindex = false
    /// The catalogue cannot be read completely: it must be rebuilt from the extents' own metadata.
    public internal(set) var mustSalvage = false
    var segments: [Int] = []
    /// Segments with exchanged names. All other steps apply to the space with the right names.
    public internal(set) var exchange: SegmentExchange?

    /// Whether rows of the catalogue change.
    var changesCatalogue: Bool {
        mustReindex || !(rules.isEmpty && contested.isEmpty && thumbnails.isEmpty && records.isEmpty)
    }

    /// Whether a write could overwrite data in use, or rows may change.
    var mustMendAllocation: Bool { !allocation.isClean || changesCatalogue }

    /// One line per step.
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
