import LinuxIO
import VaultFormat

/// Reading one published state while others follow.
///
/// What that state refers to is not used again as long as somebody holds it. Where room runs out the hold is given up:
/// then what was read stays right, and what can no longer be read is no damage.
extension Space {
    /// Opens the newest published state beside this one, for reading, and holds it until `letGo`.
    public func holdSnapshot() throws(StoreError) -> Space {
        let (opened, options) = lock.withLock {
            held.append(current.generation)
            let opened = OpenedRoot(
                root: current, rings: .none, newestGeneration: current.generation,
                releaseLimit: current.released, durableDelta: durableDelta, torn: [], unreadable: [])
            let options = SpaceOptions(
                isReadOnly: true, grows: grows, bootHash: bootHash, segmentCountNow: segmentCountNow,
                limits: limits)
            return (opened, options)
        }
        do throws(StoreError) {
            return try Space(opened, files: files, keys: keys, options: options)
        } catch {
            if !letGo(of: opened.root.generation) { throw .noRoom }
            throw error
        }
    }

    /// Ends the hold on a snapshot; false where it was given up meanwhile.
    @discardableResult
    public func letGo(_ snapshot: Space) -> Bool { letGo(of: snapshot.generation) }

    private func letGo(of generation: UInt64) -> Bool {
        lock.withLock {
            guard let place = held.firstIndex(of: generation) else { return false }
            held.remove(at: place)
            return true
        }
    }

    /// Up to which commit what was given back may be released: no snapshot needs it. Under `lock`.
    func releasable(through generation: UInt64) -> UInt64 {
        // A commit that finds no slot is worse than a check that begins a step anew.
        if slots.freeSlots < slots.backedSlots / 3 { held = [] }
        return min(generation, held.min() ?? .max)
    }

    /// Compares the slot bitmap of a space that nobody changes with what its root leads to; nil where a map cannot be
    /// followed to its ends.
    public func compareSlots() -> AllocationReport? {
        var walk = PageWalk(self, lock.withLock { current })
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        walk.collectDeltas()
        guard walk.isWhole else { return nil }
        var structure = StructureReport()
        structure.slots = walk.found.map(\.reference.slot)
        return compareSlots(structure)
    }
}
