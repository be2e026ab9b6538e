import Glibc
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
/// Every call reopens the files, because what this kernel knows of them may be outdated.
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

    private let directory: Int32
    private let layout: SegmentLayout
    private let space: Int
    private let calls: any FileSystemCalls
    private let codec: PageCodec
    private let cover: CoverTraffic?
    /// Whether the files lie on a local disk of this computer, where locks hold for all mounts. Other file systems, and
    /// FUSE over a local disk, may keep locks to themselves.
    let isOnLocalDisk: Bool

    private static let slotOffset = UInt64(RootLayout.claimSlot * Geometry.pageBytes)
    private static let identity = PageIdentity(role: .claim, index: UInt32(RootLayout.claimSlot))

    /// Takes ownership of `directory`, a descriptor of the segments' directory.
    init(
        directory: Int32, layout: SegmentLayout, space: Int, codec: PageCodec, calls: any FileSystemCalls,
        cover: CoverTraffic? = nil
    ) {
        self.directory = directory
        self.layout = layout
        self.space = space
        self.codec = codec
        self.calls = calls
        self.cover = cover
        let magic = (try? calls.hostStatus(directory))?.typeMagic
        isOnLocalDisk = magic.map { Self.localMagics.contains($0) } ?? false
    }

    deinit { calls.close(directory) }

    /// Offset of a copy's segment in its file, in bytes.
    private func start(copy: Int) -> UInt64 { layout.start(SegmentPlace(space: space, number: copy)) }

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
        let name = layout.fileName(copy)
        let offset = start(copy: copy) + offset
        do throws(Errno) {
            do throws(Errno) { try readNow(name, bytes, at: offset) } catch {
                if count == 1 || error == .noEntry { throw error }
                for start in stride(from: 0, to: bytes.count, by: Geometry.pageBytes) {
                    let page = bytes.slice(start, Geometry.pageBytes)
                    let at = offset + UInt64(start)
                    if (try? readNow(name, page, at: at)) == nil { page.zero() }
                }
            }
        } catch {
            if error != .noEntry { throw StoreError(error) }
        }
        return body(UnsafeRawBufferPointer(bytes))
    }

    /// Past this kernel's cache, unless the disk is local: then everything that is written goes through it. In a vault
    /// of several spaces the cache would show where the claim of this one is.
    private func readNow(
        _ name: String, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) {
        guard isOnLocalDisk && !layout.isShared else {
            _ = try calls.readPastCache(directory, name, bytes, at: offset)
            return
        }
        let file = try calls.openRegular(directory, name, flags: O_RDONLY, mode: 0)
        defer { calls.close(file) }
        _ = try calls.readFully(file, bytes, at: offset)
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
        let offset = start(copy: copy) + Self.slotOffset
        do throws(Errno) {
            let file = try calls.openRegular(directory, layout.fileName(copy), flags: O_RDWR, mode: 0)
            defer { calls.close(file) }
            // A truncated file of all spaces is not extended. A segment's own file may be: it may have just been
            // created again.
            let size = layout.isShared ? try calls.status(file).size : .max
            if size >= offset + UInt64(page.count) {
                guard isInTime() else { return false }
                try calls.writeFully(file, page, at: offset)
                cover?.didWrite()
                cover?.willSync()
                try calls.dataSync(file)
                return true
            }
        } catch { throw error == .noEntry ? .segmentMissing(copy) : StoreError(error) }
        throw .segmentShort(copy)
    }

    // MARK: The host

    /// ext2 to ext4, XFS, Btrfs, F2FS, tmpfs, ZFS and bcachefs, statfs(2).
    private static let localMagics: Set<UInt64> = [
        0xEF53, 0x5846_5342, 0x9123_683E, 0xF2F5_2010, 0x0102_1994, 0x2FC1_2FC1, 0xCA45_1A4E,
    ]
}
