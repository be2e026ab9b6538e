import Glibc
package import LinuxIO
package import TestSupport
import Testing
package import VaultCrypto
package import VaultFormat

@testable package import VaultStore

/// A vault on a disk in memory, or on a cluster there, whose space opens without a password: its key is known.
package final class MemoryVault: Sendable {
    /// The kind of host that keeps the vault.
    package enum Host { case files, cluster }

    /// Of a vault in files.
    package static let path = "/vault"
    private static let clusterPath = "ceph:pool/vault"
    package static let bootPath = "/proc/sys/kernel/random/boot_id"
    private static let kdf = KDFParameters(memoryBytes: KDFParameters.memoryBytesRange.lowerBound, passes: 1)

    package let host: Host
    /// As a user names it.
    package let path: String
    package let spaceCount: Int
    /// Segments that each of several spaces is made with.
    package let segments: Int
    package let segmentBytes: UInt64
    /// The options of opening the space.
    package let limits: Limits
    package let key = SecretBytes.random(count: Geometry.keyBytes)
    package let keys: SpaceKeys
    /// The disk with an empty vault; nothing is pending.
    package let empty: DiskState

    /// Sizes of vaults that tests work in.
    package enum SizeClass: CaseIterable {
        /// A few segments, and the bounds of production, which hardly any test reaches.
        case usual
        /// Hundreds of the smallest segments, and the smallest bounds.
        case least

        package var segmentBytes: UInt64 {
            self == .usual ? Geometry.segmentBytesMin : Geometry.segmentBytesLeast
        }
        package var limits: Limits { self == .usual ? .production : .least }
        /// Of each of several spaces.
        package var segments: Int { self == .usual ? 6 : 160 }
    }

    package convenience init(spaces: Int, _ size: SizeClass, on host: Host = .files) throws {
        try self.init(
            spaces: spaces, segments: size.segments, segmentBytes: size.segmentBytes, limits: size.limits,
            on: host)
    }

    /// - Parameter segments: of each of several spaces; one space makes its own.
    package init(
        spaces: Int, segments: Int, segmentBytes: UInt64 = Geometry.segmentBytesMin,
        limits: Limits = .ofProcess, on host: Host = .files
    ) throws {
        self.host = host
        path = host == .files ? Self.path : Self.clusterPath
        spaceCount = spaces
        self.segments = segments
        self.segmentBytes = segmentBytes
        self.limits = limits
        keys = SpaceKeys(key)
        let disk = MemoryDisk(DiskState(DiskImage()))
        try disk.plant(Self.bootPath, Array("the first boot".utf8))
        let layout = SegmentLayout(spaceCount: spaces, segmentBytes: segmentBytes)
        if host == .files {
            try Self.plantFiles(disk, layout, segments)
        } else {
            try Self.plantObjects(disk, layout, segments)
        }
        let vault = try hostPlace(path, disk).open()
        try vault.lock()
        var header = Header(spaces: spaces, segmentBytes: segmentBytes, kdf: Self.kdf)
        let first = SpaceDisk(try vault.segments(of: 0, layout), layout)
        try RootStore.format(first, PageCodec(key: keys.page), grows: spaces == 1)
        header.setKeySlot(
            0, key: key, stretched: try header.stretched(Self.password("one"), by: LocalStretcher()))
        try header.write(to: vault)
        vault.shared?.giveUp()
        var state = disk.state
        state.settleAll()
        empty = state
    }

    private static func plantFiles(_ disk: MemoryDisk, _ layout: SegmentLayout, _ segments: Int) throws {
        try disk.plant("\(Self.path)/\(VaultFiles.headerName)", [UInt8](repeating: 0, count: 131_072))
        if layout.isShared {
            let path = "\(Self.path)/\(SegmentLayout.sharedName)"
            try disk.plant(path, [])
            // A hole is as good as random bytes: it does not open.
            try disk.truncate(
                try disk.open(AT_FDCWD, path, flags: O_RDWR, mode: 0), to: UInt64(segments) * layout.rowBytes)
        } else {
            try disk.plant("\(Self.path)/\(SegmentLayout.directoryName)/nothing", [])
        }
    }

    private static func plantObjects(_ disk: MemoryDisk, _ layout: SegmentLayout, _ segments: Int) throws {
        let address = try #require(try ClusterAddress(clusterPath))
        disk.pool.plant(address.header, bytes: HeaderLayout.fileBytes)
        guard layout.isShared else { return }
        let objects = ClusterLayout(address, layout)
        for row in 0..<segments {
            for index in 0..<objects.objectsPerSegment {
                disk.pool.plant(objects.object(row, index), bytes: objects.objectBytes)
            }
        }
    }

    package static func password(_ text: String) -> SecretBytes {
        Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
    }

    /// Opens a space as `Vault.unlock` does, without a password.
    package func unlock(
        _ calls: any FileSystemCalls, host: ClaimHost = MemoryVault.host()
    ) throws -> UnlockedSpace {
        let vault = try hostPlace(path, calls).open()
        try vault.lock()
        let header = try Header.read(from: vault, mayRepair: true)
        try vault.completeSegments(header.layout)
        return UnlockedSpace(
            path: path, vault: vault, key: key, index: 0, spaceCount: spaceCount,
            segmentBytes: segmentBytes, host: host)
    }

    /// A computer on which every mount is a process of its own, that has ended when the next one begins.
    package static func host() -> ClaimHost {
        let number = UInt32.random(in: 1...UInt32(Int32.max))
        return ClaimHost(
            machine: [1], process: ProcessIdentity(namespace: 1, id: number, start: 1),
            life: { _ in .ended }, now: { 0 }, sleep: { _ in })
    }

    /// As `unlock(calls).openSpace`, with keys that were derived before.
    package func openSpace(_ disk: MemoryDisk, isReadOnly: Bool = false) throws -> Space {
        let vault = try hostPlace(path, disk).open()
        if host == .cluster, !isReadOnly { try vault.lock() }
        let segments = SpaceDisk(
            try vault.segments(of: 0, layout, cover: nil, openMax: limits.openSegments), layout)
        let options = SpaceOptions(
            isReadOnly: isReadOnly, grows: !layout.isShared,
            bootHash: UnlockedSpace.bootHash(keys.boot, vault.memoryMark()),
            segmentCount: try vault.segmentCount(layout),
            segmentCountNow: { [layout] in try? vault.segmentCount(layout) }, limits: limits)
        return try Space.open(disk: segments, keys: keys, options: options)
    }

    /// The disk in another boot than any before.
    package static func rebooted(_ image: DiskImage) throws -> DiskState {
        let disk = MemoryDisk(DiskState(image))
        let boot = (0..<4).map { _ in String(randomNumber()) }.joined(separator: "-")
        try disk.plant(bootPath, Array(boot.utf8))
        return disk.state
    }

    package var layout: SegmentLayout { SegmentLayout(spaceCount: spaceCount, segmentBytes: segmentBytes) }

    /// The pages of a segment of the first space.
    package struct SegmentImage {
        /// Its files or objects, and the number of its first page in each; nil where one is missing.
        package var parts: [FileImage?]
        package var firstPage: Int
        package var pagesPerPart: Int

        package func page(_ index: Int) -> DiskPage? {
            let (part, page) = index.quotientAndRemainder(dividingBy: pagesPerPart)
            return part < parts.count ? parts[part]?.page(firstPage + page) : nil
        }
    }

    /// A segment; nil where it is not there, or not whole in a vault of several spaces.
    package static func segment(_ number: Int, of layout: SegmentLayout, in image: DiskImage) -> SegmentImage?
    {
        let place = SegmentPlace(space: 0, number: number)
        if image.isPool { return object(number, layout, image) }
        guard let file = image.file("\(path)/\(layout.path(place))"),
            !layout.isShared || layout.bytes(place, ofFile: file.size) == layout.segmentBytes
        else { return nil }
        return SegmentImage(
            parts: [file], firstPage: Int(layout.start(place)) / DiskPage.bytes,
            pagesPerPart: Int(layout.segmentBytes) / DiskPage.bytes)
    }

    private static func object(
        _ number: Int, _ layout: SegmentLayout, _ image: DiskImage
    ) -> SegmentImage? {
        guard let address = try? ClusterAddress(clusterPath) else { return nil }
        let objects = ClusterLayout(address, layout)
        let parts = (0..<objects.objectsPerSegment).map { image.object(objects.object(number, $0)) }
        guard parts[0] != nil, !layout.isShared || parts.last??.size == objects.objectBytes else {
            return nil
        }
        return SegmentImage(
            parts: parts, firstPage: Int(objects.start(0)) / DiskPage.bytes,
            pagesPerPart: Int(objects.partBytes) / DiskPage.bytes)
    }
}
