import LinuxIO
import VaultFormat

/// Snapshots: reading a published state while later ones are published.
///
/// Sectors and slots of a held state are not reused. If room runs out, the hold is given up: earlier reads stay valid,
/// and later failures to read are no damage.
extension Space {
    /// Opens the newest published state as another space, for reading, and holds it until `letGo`.
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

    /// Ends the hold on a snapshot; returns false if it was given up meanwhile.
    @discardableResult
    public func letGo(_ snapshot: Space) -> Bool { letGo(of: snapshot.generation) }

    /// Ends a hold on the state of that generation; returns false if it was given up meanwhile.
    @discardableResult
    func letGo(of generation: UInt64) -> Bool {
        lock.withLock {
            guard let place = held.firstIndex(of: generation) else { return false }
            held.remove(at: place)
            return true
        }
    }

    /// The newest generation whose freed sectors and slots no snapshot needs. Under `lock`.
    func releasable(through generation: UInt64) -> UInt64 {
        // A commit without free slots is worse than a check that restarts a step.
        if isShortOfSlots { held = [] }
        return min(generation, held.min() ?? .max)
    }

    /// Compares the slot bitmap of a space without concurrent changes with the slots that its root refers to; nil if a
    /// map node is unreadable.
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
