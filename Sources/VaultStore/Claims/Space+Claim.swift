import LinuxIO
import VaultFormat

/// The claim of a writing mount, and the placement of writes after a takeover.
extension Space {
    /// Makes every write to the space check the claim first. `roots` are those found when it was opened.
    func attachClaim(_ roots: [FoundRoot]) {
        guard let claim else { return }
        claim.attach(newest: .newest(roots.map(\.root))) { [weak self] in self?.noteClaimLost() }
        files.claim = claim
    }

    /// The claim is also lost if a file with it is missing. Takes no lock except that of `stop`.
    private func noteClaimLost() {
        stopWriting((0..<2).first { !files.hasFile($0) }.map { .segmentMissing($0) } ?? .claimLost)
    }

    /// Gives the claim up, when nothing more will be written. Best effort.
    public func giveUpClaim() { claim?.giveUp(newest: lock.withLock { RootMark(current) }) }

    /// Checks the claim, right before a root is written and before a commit is reported as durable.
    func verifyClaim() throws(StoreError) { try claim?.verify() }

    /// Looks at the claim if that is due, to detect another mount's even while nothing is written. Returns the
    /// milliseconds until the next call; nil: not before the next write.
    public func checkClaimIfDue() -> Int64? { claim?.lookIfDue() }

    /// Why the last look at the claim failed: nothing is written until one succeeds.
    public var claimFailure: StoreError? { claim?.failure }

    // MARK: Taking over

    /// Generations skipped after the newest root: more than the other mount can have tried to publish since.
    private static let generationsSkipped: UInt64 = 1 << 20
    /// Least empty segments in a vault that grows: room for the other mount's late writes.
    private static let segmentsSkipped = 64

    /// After a takeover, avoids the places where the other mount would write next. It may have been stopped in the
    /// middle of a write, or its kernel may have dirty pages that reach the disk later. A root published at once makes
    /// all later mounts avoid them too.
    ///
    /// - Parameter roots: all roots found.
    func keepAway(from roots: [FoundRoot]) {
        guard let newest = roots.map(\.root).max(by: { $0.generation < $1.generation }) else { return }
        let lastSegment = lastWritten(by: newest)
        lock.withLock {
            nextGeneration += Self.generationsSkipped
            evasion.root = rings.nextDurable
            rings.avoided = evasion.root
            // Before pages get segments: the other mount may be creating the next ones.
            if grows { addEmptySegments() }
            keepPagesAway(lastSlot: newest.delta.isAbsent ? nil : Int(newest.delta.slot))
            let used = [Int(newest.evasion.segment)] + [lastSegment].compactMap { $0 }
            evasion.segment = UInt32(sectors.farthest(from: used) ?? 0)
            sectors.begin(atSegment: Int(evasion.segment))
            isChanged = true
        }
        // Best effort: without room the root cannot be published, but the mount still allows deleting.
        try? publish(freeze(), durable: true)
    }

    /// Moves pages to pairs in which the other mount allocates no slots. Under `lock`.
    private func keepPagesAway(lastSlot: Int?) {
        // The side that the other mount itself avoids, after an earlier takeover.
        let isSplit = evasion.splitPair > 0 && evasion.splitPair < pairs.count
        if isSplit {
            evasion.isAbove.toggle()
            slots.prefer(preferredSlots)
            if evasion.isAbove || slots.preferredFree >= limits.reservedSlots { return }
        }
        do throws(StoreError) {
            while slots.backedSlots < slots.slotCount { try preallocateSlots() }
            try addPair()
            if grows { try preallocateSlots() }
            (evasion.splitPair, evasion.isAbove) = (UInt16(pairs.count - 1), true)
            slots.prefer(preferredSlots)
        } catch {
            // No two segments are free: use slots as far away as possible.
            evasion.splitPair = 0
            slots.prefer(preferredSlots)
            slots.begin(farFrom: [0] + [lastSlot].compactMap { $0 })
        }
    }

    /// The preferred slots for pages. Under `lock`.
    var preferredSlots: Range<Int> {
        let split = Int(evasion.splitPair)
        guard split > 0, split < pairs.count else { return 0..<Int.max }
        return evasion.isAbove ? split * slotsPerPair..<Int.max : 0..<split * slotsPerPair
    }

    /// Adds preferred slots until there are `wanted` free ones; if that is impossible, pages get other slots. Under
    /// `lock`.
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

    /// The segment of the last extent in the newest delta that has extents.
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

    /// In a vault that grows, creates segments until enough of the last ones are empty. Under `lock`.
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

/// Returns the place in a ring, each place with some room, that is farthest from all of `ends`: with the most room
/// between each end and the place, and between the place and the next end. Nil if there is no room.
func farthestPlace(in room: [Int], from ends: [Int]) -> Int? {
    var sums = [0]
    for places in room { sums.append(sums[sums.count - 1] + places) }
    let all = sums[room.count]
    guard all > 0 else { return nil }
    /// The room from one place up to another, around the ring.
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
