import LinuxIO
import VaultFormat

/// The claim of a mount that writes, and what a mount does otherwise that has taken a space over.
extension Space {
    /// Makes every write to the space ask the claim first. `roots` are those that were found when it was opened.
    func attachClaim(_ roots: [FoundRoot]) {
        guard let claim else { return }
        claim.attach(newest: .newest(roots.map(\.root))) { [weak self] in self?.noteClaimLost() }
        files.claim = claim
    }

    /// A claim is also gone with the files that it stands in. Takes no lock but that of the stop.
    private func noteClaimLost() {
        stopWriting((0..<2).first { !files.hasFile($0) }.map { .segmentMissing($0) } ?? .claimLost)
    }

    /// Gives the claim up, when nothing more will be written. Best effort.
    public func giveUpClaim() { claim?.giveUp(newest: lock.withLock { RootMark(current) }) }

    /// Makes sure that the claim stands, right before a root is written and before anybody is told that one is safe.
    func lookAtClaim() throws(StoreError) { try claim?.look() }

    /// Looks at the claim if that is due, so that another mount's is noticed though nothing is written. Returns after
    /// how many milliseconds to call this again; nil: not before something was written.
    public func lookAtClaimIfDue() -> Int64? { claim?.lookIfDue() }

    /// Why the claim could not be read when it was last looked at: until it can, nothing is written.
    public var claimFailure: StoreError? { claim?.failure }

    // MARK: Taking over

    /// How far ahead of all roots the first own one is: more than the other mount can have tried to publish since its
    /// last.
    private static let generationsSkipped: UInt64 = 1 << 20
    /// Segments without content that a vault which grows is to have at least: so much the other mount may write.
    private static let segmentsSkipped = 64

    /// After a takeover: keeps away from where the other mount would write next. It may have been stopped in the middle
    /// of a write, or its kernel may have something in memory that reaches the disk later. So do all mounts after this
    /// one; a root says so at once.
    ///
    /// - Parameter roots: all that were found.
    func keepAway(from roots: [FoundRoot]) {
        guard let newest = roots.map(\.root).max(by: { $0.generation < $1.generation }) else { return }
        let lastSegment = lastWritten(by: newest)
        lock.withLock {
            nextGeneration += Self.generationsSkipped
            evasion.root = rings.nextDurable
            rings.avoided = evasion.root
            // Before pages get segments: the other may be making the next ones.
            if grows { addEmptySegments() }
            keepPagesAway(lastSlot: newest.delta.isAbsent ? nil : Int(newest.delta.slot))
            let used = [Int(newest.evasion.segment)] + [lastSegment].compactMap { $0 }
            evasion.segment = UInt32(sectors.farthest(from: used) ?? 0)
            sectors.begin(atSegment: Int(evasion.segment))
            isChanged = true
        }
        // Without room this cannot be said, and the mount may still serve for deleting.
        try? publish(freeze(), durable: true)
    }

    /// Has pages go to pairs in which the other mount gives out no slots. Under `lock`.
    private func keepPagesAway(lastSlot: Int?) {
        // Those that it keeps away from itself: they were another's, one takeover before.
        let isSplit = evasion.splitPair > 0 && evasion.splitPair < pairs.count
        if isSplit {
            evasion.isAbove.toggle()
            slots.prefer(preferredSlots)
            if evasion.isAbove || slots.preferredFree >= Self.catalogueReserveSlots { return }
        }
        do throws(StoreError) {
            while slots.backedSlots < slots.slotCount { try backSlots() }
            try addPair()
            if grows { try backSlots() }
            (evasion.splitPair, evasion.isAbove) = (UInt16(pairs.count - 1), true)
            slots.prefer(preferredSlots)
        } catch {
            // No two segments are free: as far away as can be.
            evasion.splitPair = 0
            slots.prefer(preferredSlots)
            slots.begin(farFrom: [0] + [lastSlot].compactMap { $0 })
        }
    }

    /// Slots that pages are to have. Under `lock`.
    var preferredSlots: Range<Int> {
        let split = Int(evasion.splitPair)
        guard split > 0, split < pairs.count else { return 0..<Int.max }
        return evasion.isAbove ? split * slotsPerPair..<Int.max : 0..<split * slotsPerPair
    }

    /// Makes more slots of those that pages are to have; where that is impossible, they get others. Under `lock`.
    func makePreferredSlots(_ wanted: Int) {
        while evasion.splitPair > 0, slots.preferredFree < wanted {
            if !evasion.isAbove {
                evasion.splitPair = 0
                slots.prefer(preferredSlots)
            } else if (try? addSlots()) == nil {
                return
            }
        }
    }

    /// The segment of the last extent that the newest commit with any tells of.
    private func lastWritten(by root: RootRecord) -> Int? {
        var reference = root.delta
        for _ in 0..<Self.deltasMax where !reference.isAbsent {
            guard let page = try? readDelta(reference, pairs: root.pairs) else { return nil }
            if let entry = page.entries.last(where: { $0.kind == DeltaLayout.kindExtentsWritten }) {
                return Int(entry.start) / files.sectorsPerSegment
            }
            reference = page.previous
        }
        return nil
    }

    private static let deltasMax = 1000

    /// In a vault that grows, makes segments until enough of the last ones are empty. Under `lock`.
    private func addEmptySegments() {
        let ofPages = Set(pairs.flatMap { [Int($0.a), Int($0.b)] })
        let empty = (0..<sectors.segmentCount).reversed().prefix {
            sectors.isUnused($0) && !ofPages.contains($0)
        }
        var count = sectors.segmentCount
        let end = min(count + Self.segmentsSkipped - empty.count, Geometry.segmentsMax)
        while count < end, (try? files.create(count)) != nil { count += 1 }
        sectors.addSegments(to: count)
    }
}

/// Of places in a ring, each with some room, the one that is farthest from all of `ends`: there is as much room as
/// possible between each end and the place, and between the place and the next end. Nil where there is no room.
func farthestPlace(in room: [Int], from ends: [Int]) -> Int? {
    var sums = [0]
    for places in room { sums.append(sums[sums.count - 1] + places) }
    let all = sums[room.count]
    guard all > 0 else { return nil }
    /// The room from one place up to another, going on at the first after the last.
    func distance(_ from: Int, _ to: Int) -> Int {
        let difference = sums[to] - sums[from]
        return difference >= 0 && from <= to ? difference : difference + all
    }
    let ends = ends.filter { room.indices.contains($0) }
    var best: (place: Int, distance: Int)?
    for place in room.indices where room[place] > 0 {
        let least = ends.reduce(all) { min($0, distance($1, place), distance(place, $1)) }
        if least > best?.distance ?? -1 { best = (place, least) }
    }
    return best?.place
}
