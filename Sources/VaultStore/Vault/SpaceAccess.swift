import LinuxIO
public import VaultFormat

/// The access that a space is opened for.
public enum SpaceAccess: Sendable {
    case reading
    /// Throws `notWritable` if the space cannot be written.
    case writing
    /// As `writing`; if the space cannot be written, as `reading`, with the reason in `Space.writeStop`.
    case writingIfPossible
    /// As `writing`, for a repair: segments may be missing or short.
    case repairing
}

extension UnlockedSpace {
    /// Opens the space in its newest state. Throws as `openSpace(readOnly:)`.
    ///
    /// If segments of roots and pages have exchanged names, or others with the newest state's photos, the space is read
    /// through the exchange and never written.
    ///
    /// - Parameter samples: extents that the catalogue of a space has, some of each segment.
    public func openSpace(
        _ access: SpaceAccess, limits: Limits = .ofProcess,
        samples: (Space) -> [CheckedRun] = { _ in [] }, takingOver: ((Int64) -> Void)? = nil
    ) throws(VaultError) -> Space {
        let stop: WriteStop
        do throws(VaultError) {
            let space = try open(
                readOnly: access == .reading, limits, takingOver, passesGaps: access == .repairing)
            // Names do not change there, and what does not open has another reason.
            if follows { return space }
            let exchange = try exchange(of: space, samples)
            guard let found = exchange?.stop ?? obstacle(space, access) else { return space }
            space.giveUpClaim()
            if let exchange { return try open(through: exchange, access, limits) }
            stop = found
        } catch {
            guard case .damaged = error, !follows, let exchange = try findExchange() else { throw error }
            return try open(through: exchange, access, limits)
        }
        guard access == .writingIfPossible else { throw .notWritable(stop) }
        let space = try open(readOnly: true, limits)
        space.stopWriting(stop)
        return space
    }

    /// Searches for exchanged segments where the state that was opened gives a reason to.
    private func exchange(
        of space: Space, _ samples: (Space) -> [CheckedRun]
    ) throws(VaultError) -> SegmentExchange? {
        if space.opening.hasUnreadableStates {
            // The newest state's photos may lie in segments that the opened state does not use.
            let newest = try? open(readOnly: true, space.limits, acceptsDamagedPhotos: true)
            return try findExchange(newest.map(samples) ?? [])
        }
        return space.opening.missingRootCopy == nil ? nil : try findExchange()
    }

    private func obstacle(_ space: Space, _ access: SpaceAccess) -> WriteStop? {
        if access == .reading { return nil }
        if let stop = space.formatStop { return stop }
        if space.opening.mustKeepNewerState && access != .repairing {
            return .olderState(space.opening.newestStateFault)
        }
        if let found = space.obstacle(isRepair: access == .repairing) { return found }
        // A backup's log that could not be removed must not be applied to a newer state.
        if vault.hasCopyLog { return .io(.accessDenied) }
        return vault.changesInPlace(layout) ? nil : .notInPlace
    }

    /// Throws if a later release made the space, or is needed to change it. Called before anything of its files is
    /// changed without opening it.
    public func requireKnownFeatures() throws(VaultError) {
        let disk = try disk(readOnly: true)
        do throws(StoreError) {
            for found in try RootStore.known(disk, PageCodec(key: SpaceKeys(key).page)) {
                if let newer = found.root.format.writingObstacle { throw .newer(newer) }
            }
        } catch { throw VaultError(error, doing: "the space's segments cannot be read") }
    }

    /// Opens the space for reading, with exchanged segments resolved to their own names.
    public func openSpace(through exchange: SegmentExchange) throws(VaultError) -> Space {
        try open(through: exchange, .reading, .ofProcess)
    }

    private func open(
        through exchange: SegmentExchange, _ access: SpaceAccess, _ limits: Limits
    ) throws(VaultError) -> Space {
        guard access == .reading || access == .writingIfPossible else { throw .notWritable(exchange.stop) }
        let space = try open(readOnly: true, limits, places: exchange.places)
        space.exchange = exchange
        space.stopWriting(exchange.stop)
        return space
    }

    /// Counts all segments up to this number, not only those before the first missing one.
    func countSegments(through last: Int, _ options: inout SpaceOptions) {
        let counted = options.segmentCountNow
        options.segmentCount = max(options.segmentCount, last + 1)
        options.segmentCountNow = { counted().map { max($0, last + 1) } }
    }

    private func open(
        readOnly: Bool, _ limits: Limits, _ takingOver: ((Int64) -> Void)? = nil, places: [Int: Int] = [:],
        acceptsDamagedPhotos: Bool = false, passesGaps: Bool = false
    ) throws(VaultError) -> Space {
        var (disk, keys, options) = try parts(readOnly: readOnly, limits: limits)
        disk.exchanged = places
        options.acceptsDamagedPhotos = acceptsDamagedPhotos
        // Foreign files with distant numbers do not count: a repair removes empty segments at the end.
        if passesGaps, !layout.isShared {
            countSegments(through: try vault.listing(layout).numbers.last ?? -1, &options)
        }
        try begin(options.claim, takingOver: takingOver)
        do throws(StoreError) {
            let space = try Space.open(disk: disk, keys: keys, options: options)
            space.segments.keepsFreeSectors = passesGaps
            return space
        } catch {
            options.claim?.giveUp(newest: nil)
            throw VaultError(error, doing: "no state of the space can be read")
        }
    }
}

extension Space {
    /// Why the space cannot be written, as far as its files show; nil if they are in order.
    public var obstacle: WriteStop? { obstacle(isRepair: false) }

    /// Why a space that was opened for writing cannot be written; nil if it can. Opens all segments of roots and pages.
    ///
    /// - Parameter isRepair: ignores missing and short segments.
    func obstacle(isRepair: Bool) -> WriteStop? {
        if let writeStop { return writeStop }
        do throws(StoreError) {
            if grows { try parts.disk.requireMayCreate() }
            let least = leastPageBytes().sorted { $0.key < $1.key }
            try parts.disk.requireWritable(least.map { (number: $0.key, bytes: $0.value) })
            return nil
        } catch {
            switch error {
            case .segmentMissing(let number): return isRepair ? nil : .segmentMissing(number)
            case .segmentShort(let number): return isRepair ? nil : .segmentShort(number)
            case .io(let error): return .io(error)
            case .noRoom, .damaged, .readOnly, .newer: return nil
            }
        }
    }

    /// The least bytes of each segment of roots and pages: up to the last slot in use.
    private func leastPageBytes() -> [Int: UInt64] {
        parts.lock.withLock {
            var least: [Int: UInt64] = [:]
            for (number, pair) in segments.pairs.enumerated() {
                let slots = parts.slots.inUse(ofPair: number)
                // The ring of durable roots is written when the space is formatted.
                let end = number == 0 ? max(slots, RootLayout.durableSlots.upperBound) : slots
                let bytes = grows ? UInt64(end * Geometry.pageBytes) : parts.disk.segmentBytes
                for segment in [pair.a, pair.b] { least[Int(segment)] = bytes }
            }
            return least
        }
    }
}
