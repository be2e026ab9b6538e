public import LinuxIO
public import VaultCrypto
public import VaultFormat

/// Creating and growing vaults.
extension Vault {
    /// The proposed size of a space: an eighth of the available disk, divided among the spaces, in whole segments.
    public static func proposedBytesPerSpace(at path: String, spaces: Int) -> UInt64 {
        let segment = Geometry.segmentBytesUsual
        // The least is proposed for a path that no vault can have: `create` says so.
        let bytes = (try? hostPlace(path))?.proposedBytes ?? 0
        let usual = max(4 * segment, bytes / UInt64(max(1, spaces)) / segment * segment)
        // A disk so small that the least usual size does not fit.
        let sizes = [usual] + (1..<4).reversed().map { $0 * segment }
        return sizes.first { isRoom(at: path, spaces: spaces, bytesPerSpace: $0) } ?? usual
    }

    private static func isRoom(at path: String, spaces: Int, bytesPerSpace: UInt64) -> Bool {
        (try? requireSize(at: path, spaces: spaces, bytesPerSpace: bytesPerSpace)) != nil
    }

    /// Refuses a place as `create` would, and leaves nothing there: so that no password is chosen in vain.
    public static func requireFree(_ path: String) throws(VaultError) { try hostPlace(path).requireFree() }

    /// Refuses a size as `create` would, and makes nothing: so that no password is chosen in vain.
    public static func requireSize(at path: String, spaces: Int, bytesPerSpace: UInt64?) throws(VaultError) {
        let place = try hostPlace(path)
        let segmentBytes = try checkedSegmentBytes(
            place, spaces, bytesPerSpace, isLeast: Limits.ofProcess == .least)
        guard spaces > 1, let bytesPerSpace else { return }
        let segments = try segmentCount(bytesPerSpace, of: segmentBytes)
        let space = Quantity(UInt64(segments)) * Quantity(segmentBytes)
        try place.requireRoom(forNew: (space * Quantity(UInt64(spaces))).value)
    }

    /// The name of the store at `path` if it keeps old versions of overwritten data, for a warning.
    public static func storeKeepsVersions(at path: String) -> String? {
        (try? hostPlace(path))?.storeKeepingVersions
    }

    /// Creates a vault and gives `password` a random one of its spaces.
    ///
    /// With several spaces all segments are created now, full of random bytes. If this throws, everything it created is
    /// removed again.
    /// - Parameters:
    ///   - bytesPerSpace: rounded up to whole segments; nil only for a single space, which grows on demand.
    ///   - segmentBytes: a power of two that the header may name; nil: chosen by the size.
    ///   - limits: `least` creates a vault with the smallest segments.
    ///   - coverBytes: bytes of several spaces that are written once more; nil: a random number, see `CoverAmount`.
    ///   - progress: called with the bytes written so far and the total, every MiB and between the steps. Its error
    ///     ends the creation.
    public static func create(
        at path: String, spaces: Int, bytesPerSpace: UInt64?, kdf: KDFParameters, password: SecretBytes,
        segmentBytes wanted: UInt64? = nil, stretcher: any PasswordStretcher = LocalStretcher(),
        calls: any FileSystemCalls = LinuxCalls.shared, limits: Limits = .ofProcess,
        coverBytes: UInt64? = nil,
        progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        let place = try hostPlace(path, calls)
        let chosen = try checkedSegmentBytes(place, spaces, bytesPerSpace, isLeast: limits == .least)
        let segmentBytes = wanted ?? chosen
        let segments =
            spaces == 1 ? 0 : try segmentCount(bytesPerSpace ?? 0, of: segmentBytes)
        guard KDFLimits.memoryBytes.contains(kdf.memoryBytes), KDFLimits.passes.contains(kdf.passes) else {
            throw .invalidSize("the KDF takes 8M to 448M of memory and 1 to 64 passes")
        }
        try place.create(
            Header(spaces: spaces, segmentBytes: segmentBytes, kdf: kdf), segments: segments,
            password: password, stretcher: stretcher, coverBytes: coverBytes, progress: progress)
    }

    private static func checkedSegmentBytes(
        _ place: any HostPlace, _ spaces: Int, _ bytesPerSpace: UInt64?, isLeast: Bool
    ) throws(VaultError) -> UInt64 {
        guard spaces >= 1 && spaces <= Geometry.spacesMax else {
            throw .invalidSize("a vault has 1 to \(Geometry.spacesMax) spaces")
        }
        if spaces == 1 {
            if isLeast { return Geometry.segmentBytesLeast }
            // A vault that grows may fill its disk.
            let total = try place.totalBytes() ?? 0
            return Geometry.segmentBytes(forSpace: max(total, Geometry.spaceBytesUsual))
        }
        guard let bytes = bytesPerSpace else {
            throw .invalidSize("a vault of \(spaces) spaces needs a size")
        }
        guard bytes >= Geometry.spaceBytesMin else { throw .invalidSize("a space has at least 16M") }
        if isLeast { return Geometry.segmentBytesLeast }
        return Geometry.segmentBytes(forSpace: bytes)
    }

    /// The number of segments for a space of `bytesPerSpace`. Throws `invalidSize` above `Geometry.segmentsMax`, so
    /// that sums cannot overflow.
    static func segmentCount(
        _ bytesPerSpace: UInt64, of segmentBytes: UInt64
    ) throws(VaultError) -> Int {
        let count = Quantity(bytesPerSpace).units(of: Quantity(segmentBytes)).int
        guard count <= Geometry.segmentsMax else {
            let most = Quantity(segmentBytes) * Quantity(Geometry.segmentsMax)
            throw .invalidSize("a space with segments of this size has at most \(most.value >> 30)G")
        }
        return count
    }

    // MARK: Growing

    /// Enlarges every space to `bytesPerSpace`, used or not, mounted or not. Needs no password.
    ///
    /// A mounted daemon uses new segments once every space has them. If `grow` is killed, all spaces are equally large;
    /// the next `grow` or mount completes a partial row. If it fails, the spaces are as large as before, or, while one
    /// is mounted, as many whole rows larger as could be written.
    public static func grow(
        _ path: String, bytesPerSpace: UInt64, calls: any FileSystemCalls = LinuxCalls.shared,
        progress: (_ done: UInt64, _ total: UInt64) -> Void
    ) throws(VaultError) {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        guard header.layout.isShared else {
            throw .invalidSize("this vault has one space and grows with its photos")
        }
        try vault.grow(header, bytesPerSpace: bytesPerSpace, progress: progress)
    }

    /// The number of segments of each space after it has grown.
    static func segmentCountWanted(
        _ bytesPerSpace: UInt64, _ header: Header, now count: Int
    ) throws(VaultError) -> Int {
        let wanted = try segmentCount(bytesPerSpace, of: header.segmentBytes)
        guard wanted >= count else {
            throw .invalidSize(
                "a space has \(UInt64(count) * header.segmentBytes >> 20)M already and never shrinks")
        }
        return wanted
    }
}
