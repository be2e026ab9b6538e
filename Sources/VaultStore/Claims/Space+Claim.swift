import LinuxIO
import VaultFormat

/// The claim of a writing mount, and the placement of writes after a takeover.
extension Space {
    /// Makes every write to the space check the claim first. `roots` are those found when it was opened.
    func attachClaim(_ roots: [FoundRoot]) {
        let (gate, disk) = (parts.gate, parts.disk)
        guard let claim = gate.claim else { return }
        claim.attach(newest: .newest(roots.map(\.root))) { [weak gate, weak disk] in
            // The claim is also lost if a file with it is missing. Takes no lock.
            let missing = disk.flatMap { disk in (0..<2).first { !disk.exists($0) } }
            gate?.close(for: missing.map { .segmentMissing($0) } ?? .claimLost)
        }
        disk.claim = claim
    }

    /// Gives the claim up, when nothing more will be written. Best effort.
    public func giveUpClaim() { parts.gate.claim?.giveUp(newest: RootMark(commits.newest)) }

    /// Looks at the claim if that is due, to detect another mount's even while nothing is written. Returns the
    /// milliseconds until the next call; nil: not before the next write.
    public func checkClaimIfDue() -> Int64? { parts.gate.claim?.lookIfDue() }

    /// Why the last look at the claim failed: nothing is written until one succeeds.
    public var claimFailure: StoreError? { parts.gate.claim?.failure }

    // MARK: Taking over

    /// Generations skipped after the newest root: more than the other mount can have tried to publish since. Its clock
    /// may be another computer's.
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
        parts.lock.withLock {
            parts.next.skip(Self.generationsSkipped)
            parts.roots.avoidNextDurable()
            // Before pages get segments: the other mount may be creating the next ones.
            if grows { segments.addEmpty(Self.segmentsSkipped) }
            parts.slots.keepAway(lastSlot: newest.delta.isAbsent ? nil : Int(newest.delta.slot))
            sectors.begin(farFrom: [Int(newest.evasion.segment)] + [lastSegment].compactMap { $0 })
            parts.next.noteChange()
        }
        // Best effort: without room the root cannot be published, but the mount still allows deleting.
        try? publish(freeze(), durable: true)
    }

    /// The segment of the last extent in the newest delta that has extents.
    private func lastWritten(by root: RootRecord) -> Int? {
        var reference = root.delta
        for _ in 0..<Self.deltasMax where !reference.isAbsent {
            guard let page = try? parts.reader.readDelta(reference, pairs: root.pairs) else { return nil }
            if let entry = page.entries.last(where: { $0.kind == DeltaLayout.kindExtentsWritten }) {
                return Int(entry.start) / parts.disk.sectorsPerSegment
            }
            reference = page.previous
        }
        return nil
    }

    private static let deltasMax = 1000
}
