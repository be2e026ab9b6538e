import LinuxIO
public import VaultFormat

/// What a space is opened for.
public enum SpaceAccess: Sendable {
    case reading
    /// Throws `notWritable` where the space cannot be written.
    case writing
    /// As `writing`; where it cannot be, as `reading`, and `Space.writeStop` says why.
    case writingIfPossible
    /// As `writing`, for a repair: segments may be missing or short.
    case repairing
}

extension UnlockedSpace {
    /// Opens the space in its newest state. Throws as `openSpace(readOnly:)`.
    ///
    /// Segments of roots and pages that have each other's names are read where they are, and never written.
    public func openSpace(
        _ access: SpaceAccess, limits: Limits = .ofProcess, takingOver: ((Int64) -> Void)? = nil
    ) throws(VaultError) -> Space {
        let stop: WriteStop
        do throws(VaultError) {
            let space = try open(readOnly: access == .reading, limits, takingOver)
            let exchange = space.missingRootCopy == nil ? nil : try findExchange()
            guard let found = exchange?.stop ?? obstacle(space, access) else { return space }
            space.giveUpClaim()
            if let exchange { return try open(through: exchange, access, limits) }
            stop = found
        } catch {
            guard case .damaged = error, let exchange = try findExchange() else { throw error }
            return try open(through: exchange, access, limits)
        }
        guard access == .writingIfPossible else { throw .notWritable(stop) }
        let space = try open(readOnly: true, limits)
        space.stopWriting(stop)
        return space
    }

    private func obstacle(_ space: Space, _ access: SpaceAccess) -> WriteStop? {
        if access == .reading { return nil }
        if let found = space.obstacle(isRepair: access == .repairing) { return found }
        // A backup's log that could not be removed must never meet a state that it does not know.
        return CopyLog.isIn(vault) ? .io(.accessDenied) : nil
    }

    /// Opens the space for reading as if exchanged segments had their own names.
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

    private func open(
        readOnly: Bool, _ limits: Limits, _ takingOver: ((Int64) -> Void)? = nil, places: [Int: Int] = [:]
    ) throws(VaultError) -> Space {
        let (files, keys, options) = try parts(readOnly: readOnly, limits: limits)
        files.exchanged = places
        try begin(options.claim, takingOver: takingOver)
        do throws(StoreError) {
            return try Space.open(files: files, keys: keys, options: options)
        } catch {
            options.claim?.giveUp(newest: nil)
            throw VaultError(error, doing: "no state of the space can be read")
        }
    }
}

extension Space {
    /// Why the space can be written no more, as far as its files tell; nil where they are as they should be.
    public var obstacle: WriteStop? { obstacle(isRepair: false) }

    /// Why a space that was opened for writing cannot be written; nil where it can. Opens all segments of roots and
    /// pages for that.
    ///
    /// - Parameter isRepair: whether missing and short segments are none.
    func obstacle(isRepair: Bool) -> WriteStop? {
        if let writeStop { return writeStop }
        do throws(StoreError) {
            if grows { try files.checkDirectoryWritable() }
            for (number, bytes) in leastPageBytes().sorted(by: { $0.key < $1.key }) {
                try files.checkWritable(number, bytes: bytes)
            }
            return nil
        } catch {
            switch error {
            case .segmentMissing(let number): return isRepair ? nil : .segmentMissing(number)
            case .segmentShort(let number): return isRepair ? nil : .segmentShort(number)
            case .io(let error): return .io(error)
            case .noRoom, .damaged, .readOnly: return nil
            }
        }
    }

    /// What the files of the segments of roots and pages must have: all that is in use.
    private func leastPageBytes() -> [Int: UInt64] {
        lock.withLock {
            var least: [Int: UInt64] = [:]
            for (number, pair) in pairs.enumerated() {
                let slots = slots.slotsInUse(ofPair: number)
                // The ring of durable roots is written when the space is made.
                let end = number == 0 ? max(slots, RootLayout.durableSlots.upperBound) : slots
                let bytes = grows ? UInt64(end * Geometry.pageBytes) : files.segmentBytes
                for segment in [pair.a, pair.b] { least[Int(segment)] = bytes }
            }
            return least
        }
    }
}

extension SlotAllocator {
    /// How many slots of a pair, from its first, hold all that are in use but for roots.
    fileprivate func slotsInUse(ofPair pair: Int) -> Int {
        let first = slotsPerPair * pair
        let row = inUse
        for slot in stride(from: first + slotsPerPair - 1, through: first, by: -1)
        where slot >= RootLayout.rootSlots && row[slot] {
            return slot - first + 1
        }
        return 0
    }
}
