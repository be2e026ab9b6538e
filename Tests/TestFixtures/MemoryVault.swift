import Glibc
import LinuxIO
import TestSupport
import VaultCrypto
import VaultFormat

@testable import VaultStore

/// A vault on a disk in memory, whose space opens without a password: its key is known.
final class MemoryVault: Sendable {
    static let path = "/vault"
    static let bootPath = "/proc/sys/kernel/random/boot_id"
    private static let kdf = KDFParameters(memoryBytes: KDFParameters.memoryBytesRange.lowerBound, passes: 1)

    let spaceCount: Int
    /// Segments that each of several spaces is made with.
    let segments: Int
    let segmentBytes: UInt64
    /// The options of opening the space.
    let limits: Limits
    let key = SecretBytes.random(count: Geometry.keyBytes)
    let keys: SpaceKeys
    /// The disk with an empty vault; nothing is pending.
    let empty: DiskState

    /// Sizes of vaults that tests work in.
    enum SizeClass: CaseIterable {
        /// A few segments, and the bounds of production, which hardly any test reaches.
        case usual
        /// Hundreds of the smallest segments, and the smallest bounds.
        case least

        var segmentBytes: UInt64 { self == .usual ? Geometry.segmentBytesMin : Geometry.segmentBytesLeast }
        var limits: Limits { self == .usual ? .production : .least }
        /// Of each of several spaces.
        var segments: Int { self == .usual ? 6 : 160 }
    }

    convenience init(spaces: Int, _ size: SizeClass) throws {
        try self.init(
            spaces: spaces, segments: size.segments, segmentBytes: size.segmentBytes, limits: size.limits)
    }

    /// - Parameter segments: of each of several spaces; one space makes its own.
    init(
        spaces: Int, segments: Int, segmentBytes: UInt64 = Geometry.segmentBytesMin,
        limits: Limits = .ofProcess
    ) throws {
        spaceCount = spaces
        self.segments = segments
        self.segmentBytes = segmentBytes
        self.limits = limits
        keys = SpaceKeys(key)
        let disk = MemoryDisk(DiskState(DiskImage()))
        try disk.plant(Self.bootPath, Array("the first boot".utf8))
        try disk.plant("\(Self.path)/\(VaultFiles.headerName)", [UInt8](repeating: 0, count: 131_072))
        let layout = SegmentLayout(spaceCount: spaces, segmentBytes: segmentBytes)
        if layout.isShared {
            let path = "\(Self.path)/\(SegmentLayout.sharedName)"
            try disk.plant(path, [])
            // A hole is as good as random bytes: it does not open.
            try disk.truncate(
                try disk.open(AT_FDCWD, path, flags: O_RDWR, mode: 0), to: UInt64(segments) * layout.rowBytes)
        } else {
            try disk.plant("\(Self.path)/\(SegmentLayout.directoryName)/nothing", [])
        }
        let directory = try VaultFiles.open(Self.path, calls: disk)
        var header = Header(spaces: spaces, segmentBytes: segmentBytes, kdf: Self.kdf)
        let segments = SpaceDisk(try directory.segments(of: 0, layout), layout)
        try RootStore.format(segments, PageCodec(key: keys.page), grows: spaces == 1)
        header.setKeySlot(
            0, key: key, stretched: try header.stretched(Self.password("one"), by: LocalStretcher()))
        try header.write(to: directory)
        var state = disk.state
        state.settleAll()
        empty = state
    }

    static func password(_ text: String) -> SecretBytes {
        Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
    }

    /// Opens a space as `Vault.unlock` does, without a password.
    func unlock(
        _ calls: any FileSystemCalls, host: ClaimHost = MemoryVault.host()
    ) throws -> UnlockedSpace {
        let vault = try VaultFiles.open(Self.path, calls: calls)
        try vault.lock()
        let header = try Header.read(from: vault, mayRepair: true)
        try vault.completeSegments(header.layout)
        return UnlockedSpace(
            path: Self.path, vault: vault, key: key, index: 0, spaceCount: spaceCount,
            segmentBytes: segmentBytes, host: host)
    }

    /// A computer on which every mount is a process of its own, that has ended when the next one begins.
    static func host() -> ClaimHost {
        let number = UInt32.random(in: 1...UInt32(Int32.max))
        return ClaimHost(
            machine: [1], process: ProcessIdentity(namespace: 1, id: number, start: 1),
            life: { _ in .ended }, now: { 0 }, sleep: { _ in })
    }

    /// As `unlock(calls).openSpace`, with keys that were derived before.
    func openSpace(_ disk: MemoryDisk, isReadOnly: Bool = false) throws -> Space {
        let vault = try VaultFiles.open(Self.path, calls: disk)
        let segments = SpaceDisk(
            try vault.segments(of: 0, layout, cover: nil, openMax: limits.openSegments), layout)
        let options = SpaceOptions(
            isReadOnly: isReadOnly, grows: !layout.isShared,
            bootHash: UnlockedSpace.bootHash(keys.boot, vault.memoryMark()),
            segmentCountNow: { [layout] in vault.segmentCount(layout) }, limits: limits)
        return try Space.open(disk: segments, keys: keys, options: options)
    }

    /// The disk in another boot than any before.
    static func rebooted(_ image: DiskImage) throws -> DiskState {
        let disk = MemoryDisk(DiskState(image))
        let boot = (0..<4).map { _ in String(randomNumber()) }.joined(separator: "-")
        try disk.plant(bootPath, Array(boot.utf8))
        return disk.state
    }

    var layout: SegmentLayout { SegmentLayout(spaceCount: spaceCount, segmentBytes: segmentBytes) }

    /// A segment's file, and the number of its first page there; nil where it is not there, or not whole in the file of
    /// all spaces.
    static func segment(
        _ number: Int, of layout: SegmentLayout, in image: DiskImage
    ) -> (file: FileImage, firstPage: Int)? {
        let place = SegmentPlace(space: 0, number: number)
        guard let file = image.file("\(path)/\(layout.path(place))"),
            !layout.isShared || layout.bytes(place, ofFile: file.size) == layout.segmentBytes
        else { return nil }
        return (file, Int(layout.start(place)) / DiskPage.bytes)
    }
}
