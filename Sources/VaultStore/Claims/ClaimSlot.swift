import LinuxIO
import VaultCrypto
import VaultFormat

/// Identifies a root, to detect changes by other mounts: no two mounts give a root the same pair of numbers.
struct RootMark: Sendable, Equatable {
    var generation: UInt64
    var epoch: UInt64

    init(_ root: RootRecord) { (generation, epoch) = (root.generation, root.epoch) }

    /// The mark of the newest root.
    static func newest(_ roots: some Sequence<RootRecord>) -> RootMark? {
        roots.max { $0.generation < $1.generation }.map { RootMark($0) }
    }
}

/// Reads the slot of a space's claim, and its roots, as they are on the disk or server now.
///
/// Every call reads anew: this computer's caches may be outdated.
final class ClaimSlot: Sendable {
    /// The contents of the slot.
    enum Standing: Sendable, Equatable {
        case claim(Claim)
        case nothing
        /// One copy cannot be read, and the other has no claim.
        case doubt(StoreError)
    }

    private enum Copy {
        case claim(Claim)
        case nothing
        case unreadable(StoreError)
    }

    private let host: any SegmentHost
    private let codec: PageCodec

    private static let slotOffset = UInt64(RootLayout.claimSlot * Geometry.pageBytes)
    private static let identity = PageIdentity(role: .claim, index: UInt32(RootLayout.claimSlot))

    /// - Parameter host: the segments of the space. They are not the ones that its store uses, so that nothing waits.
    init(_ host: any SegmentHost, _ codec: PageCodec) { (self.host, self.codec) = (host, codec) }

    /// See `SegmentHost.isOnLocalDisk`.
    var isOnLocalDisk: Bool { host.isOnLocalDisk }

    // MARK: Reading

    /// The claim in copy A; if there is none, in copy B. Throws if neither copy can be read.
    ///
    /// Copy A is written and synced before copy B, so a claim in copy A is the newest.
    func standing() throws(StoreError) -> Standing {
        switch (read(copy: 0), { self.read(copy: 1) }) {
        case (.claim(let claim), _): return .claim(claim)
        case (.nothing, let other):
            switch other() {
            case .claim(let claim): return .claim(claim)
            case .nothing: return .nothing
            case .unreadable(let error): return .doubt(error)
            }
        case (.unreadable(let error), let other):
            switch other() {
            case .claim(let claim): return .claim(claim)
            case .nothing: return .doubt(error)
            case .unreadable: throw error
            }
        }
    }

    private func read(copy: Int) -> Copy {
        do throws(StoreError) {
            let found = try withPages(copy: copy, at: Self.slotOffset, count: 1) { page -> Claim? in
                open(page, as: Self.identity, copy: copy) { Claim(decoding: $0) }
            }
            return found.map { .claim($0) } ?? .nothing
        } catch {
            return .unreadable(error)
        }
    }

    /// The newest of all roots; nil if there is none. Throws `newer` if a later release made any of them.
    func newestRoot() throws(StoreError) -> RootMark? {
        var roots: [RootRecord] = []
        var newer: NewerVersion?
        for copy in 0..<2 {
            let slots = RootLayout.durableSlots.lowerBound..<RootLayout.softSlots.upperBound
            let found = try withPages(copy: copy, at: 0, count: slots.upperBound) { pages in
                slots.compactMap { slot in
                    let identity = PageIdentity(role: .root, index: UInt32(slot))
                    let page = pages.slice(slot * Geometry.pageBytes, Geometry.pageBytes)
                    return open(page, as: identity, copy: copy) { plain in
                        newer = SpaceFormat(ofRoot: plain).obstacle ?? newer
                        return RootRecord(decoding: plain)
                    } ?? nil
                }
            }
            roots += found
        }
        if let newer { throw .newer(newer) }
        return .newest(roots)
    }

    private func open<R>(
        _ page: UnsafeRawBufferPointer, as identity: PageIdentity, copy: Int,
        _ body: (UnsafeRawBufferPointer) -> R
    ) -> R? {
        withUnsafeTemporaryAllocation(byteCount: Geometry.pageBytes, alignment: 16) { plain in
            let isOpen = codec.open(page, as: identity, copy: UInt8(copy), expected: nil, into: plain)
            return isOpen ? body(UnsafeRawBufferPointer(plain)) : nil
        }
    }

    /// Reads pages of segment 0 or 1 as they are on the disk or server now; zeros if the file is missing or shorter. An
    /// unreadable page is zeros as well, unless it is the only one: then its error is thrown.
    private func withPages<R>(
        copy: Int, at offset: UInt64, count: Int, _ body: (UnsafeRawBufferPointer) -> R
    ) throws(StoreError) -> R {
        let bytes = UnsafeMutableRawBufferPointer.allocate(
            byteCount: count * Geometry.pageBytes, alignment: Geometry.pageBytes)
        defer { bytes.deallocate() }
        bytes.zero()
        do throws(Errno) {
            do throws(Errno) { try host.readAnew(copy, at: offset, into: bytes) } catch {
                if count == 1 || error == .noEntry { throw error }
                for start in stride(from: 0, to: bytes.count, by: Geometry.pageBytes) {
                    let page = bytes.slice(start, Geometry.pageBytes)
                    let at = offset + UInt64(start)
                    if (try? host.readAnew(copy, at: at, into: page)) == nil { page.zero() }
                }
            }
        } catch {
            if error != .noEntry { throw StoreError(error) }
        }
        return body(UnsafeRawBufferPointer(bytes))
    }

    // MARK: Writing

    /// Writes and syncs a claim, copy A before copy B. Throws if neither copy can be written.
    ///
    /// - Parameter isInTime: called right before the first write; if it returns false, nothing is written and this
    ///   returns false.
    func write(_ claim: Claim, isInTime: () -> Bool = { true }) throws(StoreError) -> Bool {
        var failure: StoreError?
        for copy in 0..<2 {
            let outcome = withUnsafeTemporaryAllocation(byteCount: Geometry.pageBytes * 2, alignment: 16) {
                bytes -> Result<Bool, StoreError> in
                let (plain, sealed) = (
                    bytes.slice(0, Geometry.pageBytes), bytes.slice(Geometry.pageBytes, Geometry.pageBytes)
                )
                claim.encode(into: plain)
                _ = codec.seal(
                    UnsafeRawBufferPointer(plain), as: Self.identity, copy: UInt8(copy), into: sealed)
                do throws(StoreError) {
                    return .success(
                        try put(UnsafeRawBufferPointer(sealed), copy: copy) { copy > 0 || isInTime() })
                } catch {
                    return .failure(error)
                }
            }
            switch outcome {
            case .success(false): return false
            case .success(true): continue
            case .failure(let error):
                if let failure { throw failure }
                failure = error
            }
        }
        return true
    }

    /// Overwrites each copy of the claim with random bytes, if `isInTime` returns true right before.
    func erase(isInTime: () -> Bool) throws(StoreError) {
        for copy in 0..<2 {
            try withUnsafeTemporaryPage { (bytes) throws(StoreError) in
                fillRandom(bytes)
                _ = try put(UnsafeRawBufferPointer(bytes), copy: copy, isInTime)
            }
        }
    }

    private func put(
        _ page: UnsafeRawBufferPointer, copy: Int, _ isInTime: () -> Bool
    ) throws(StoreError) -> Bool {
        try host.writeAnew(copy, at: Self.slotOffset, page, isInTime: isInTime)
    }
}
