import Foundation
import LinuxIO
import TestSupport
import Testing
import VaultCatalogue
import VaultCrypto
import VaultFormat

@testable import VaultStore

/// Bytes of a segment that are sealed as one, with their tag behind them.
struct SealedRegion: Codable {
    var segment: Int
    /// Offset of the nonce in the segment.
    var nonce: Int
    /// Offset of the first sealed byte, and their number.
    var start: Int
    var count: Int
    /// Which key of the space.
    var key: String
    var associated: [UInt8]
}

/// Makes a vault small enough to be kept, and whole again.
///
/// Sealed bytes do not compress, so the newest state and the rings of roots are opened in place, without
/// the tags; the nonces stay. Sealed again with these, it has to be bit for bit as before: `regions.json` has the sum
/// of every segment. All that belongs to no state is zeros.
struct GoldenArchive {
    /// The vault's directory, of a vault that nobody has mounted.
    let vault: String
    private let unlocked: UnlockedSpace
    private let keys: SpaceKeys

    private struct Contents: Codable {
        var regions: [SealedRegion]
        /// BLAKE2b of each segment of the space, by its number.
        var sums: [String: [UInt8]]
    }

    init(_ vault: String, password: String = "one") throws {
        self.vault = vault
        let secret = Array(password.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
        unlocked = try Vault.unlock(vault, password: secret, readOnly: true, calls: LinuxCalls.shared)
        keys = SpaceKeys(unlocked.key)
    }

    private var list: String { vault + "/regions.json" }

    private func file(_ segment: Int) throws -> SegmentFile {
        try SegmentFile(vault, space: unlocked.index, segment)
    }

    // MARK: Packing

    /// Opens the bytes with a meaning, zeros the rest, and records both.
    func pack() throws {
        let regions = try regions()
        var sums: [String: [UInt8]] = [:]
        for number in 0..<(try Vault.info(vault).segmentsPerSpace) {
            for space in 0..<unlocked.spaceCount {
                let file = try SegmentFile(vault, space: space, number)
                let old = try [UInt8](file.read())
                var kept = [UInt8](repeating: 0, count: old.count)
                let own = space == unlocked.index ? regions.filter { $0.segment == number } : []
                for region in own {
                    for part in [
                        region.nonce..<region.nonce + 24, region.start..<region.start + region.count + 16,
                    ] {
                        kept.replaceSubrange(part, with: old[part])
                    }
                }
                if space == unlocked.index { sums[String(number)] = sum(kept) }
                for region in own { try open(region, &kept) }
                try file.write(Data(kept))
            }
        }
        try JSONEncoder().encode(Contents(regions: regions, sums: sums)).write(to: URL(fileURLWithPath: list))
        // Behind each copy of the header's 4096 bytes nothing means anything.
        var header = try [UInt8](Data(contentsOf: URL(fileURLWithPath: vault + "/obscura.vault")))
        for range in [4096..<65_536, 65_536 + 4096..<header.count] {
            header.replaceSubrange(range, with: repeatElement(0, count: range.count))
        }
        try Data(header).write(to: URL(fileURLWithPath: vault + "/obscura.vault"))
    }

    private func sum(_ bytes: [UInt8]) -> [UInt8] {
        var out = [UInt8](repeating: 0, count: 32)
        out.withUnsafeMutableBytes { out in bytes.withUnsafeBytes { hash([$0], key: nil, into: out) } }
        return out
    }

    // MARK: Unpacking

    /// Seals the opened bytes again.
    func unpack() throws {
        let contents = try JSONDecoder().decode(
            Contents.self, from: Data(contentsOf: URL(fileURLWithPath: list)))
        for (name, sum) in contents.sums {
            let file = try file(#require(Int(name)))
            var bytes = try [UInt8](file.read())
            for region in contents.regions where String(region.segment) == name { seal(region, &bytes) }
            try #require(self.sum(bytes) == sum, "segment \(name) is not what it was")
            try file.write(Data(bytes))
        }
        try FileManager.default.removeItem(atPath: list)
    }

    // MARK: Regions

    /// The bytes of the roots and of the newest state.
    private func regions() throws -> [SealedRegion] {
        let space = try unlocked.openSpace(readOnly: true)
        var walk = PageWalk(space, space.commits.newest)
        for object in MapObject.allCases { walk.collect(object, 0..<Int.max) }
        walk.collectDeltas()
        var regions: [SealedRegion] = []
        for page in walk.found {
            let place = try space.parts.pages.place(page.reference.slot)
            regions += pages(page.identity, place, space)
        }
        for root in RootStore.read(space.parts.disk, space.parts.codec).found {
            let place = SlotPlace(
                sectorA: RootStore.sector(root.slot, copy: 0, space.parts.disk),
                sectorB: RootStore.sector(root.slot, copy: 1, space.parts.disk))
            regions += pages(PageIdentity(role: .root, index: UInt32(root.slot)), place, space)
        }
        let catalogue = try Catalogue(storage: space, readOnly: true)
        var sectors: Set<UInt64> = []
        for checked in try catalogue.locked({ try $0.runs.runs(in: 0..<UInt64(Int64.max)) })
        // A photo and its snapshots share extents.
        where sectors.insert(checked.run.sector).inserted {
            for chunk in 0..<checked.run.chunkCount { regions += try extent(checked, chunk, space) }
        }
        return regions
    }

    private func pages(_ identity: PageIdentity, _ place: SlotPlace, _ space: Space) -> [SealedRegion] {
        [place.sectorA, place.sectorB].enumerated().map { copy, sector in
            var associated = [UInt8](repeating: 0, count: PageIdentity.associatedBytes)
            associated.withUnsafeMutableBytes { identity.encode(copy: UInt8(copy), into: $0) }
            let offset = Int(sector) % space.sectors.perSegment * Geometry.sectorBytes
            return SealedRegion(
                segment: Int(sector) / space.sectors.perSegment, nonce: offset,
                start: offset + Geometry.nonceBytes,
                count: Geometry.pagePlainBytes, key: "page", associated: associated)
        }
    }

    private func extent(_ checked: CheckedRun, _ chunk: Int, _ space: Space) throws -> [SealedRegion] {
        let sector = Int(checked.run.sector(ofChunk: chunk))
        let segment = sector / space.sectors.perSegment
        let offset = sector % space.sectors.perSegment * Geometry.sectorBytes
        let bytes = try [UInt8](file(segment).read())
        let found = bytes[offset..<offset + Geometry.sectorBytes].withUnsafeBytes {
            space.parts.extentCodec.openDescriptor($0)
        }
        let descriptor = try #require(found)
        var associated = [UInt8](repeating: 0, count: Descriptor.associatedBytes)
        associated.withUnsafeMutableBytes { descriptor.encodeAssociatedData(into: $0) }
        return [
            SealedRegion(
                segment: segment, nonce: offset, start: offset + Geometry.nonceBytes,
                count: Geometry.descriptorBytes, key: "descriptor", associated: Array(associated.prefix(2))),
            SealedRegion(
                segment: segment, nonce: offset, start: offset + Geometry.extentHeaderBytes,
                count: checked.run.plainBytes(ofChunk: chunk), key: "content", associated: associated),
        ]
    }

    private func key(_ region: SealedRegion) -> SealingKey {
        switch region.key {
        case "page": keys.page
        case "descriptor": keys.descriptor
        default: keys.content
        }
    }

    /// Replaces sealed bytes by their plaintext, and their tag by zeros.
    private func open(_ region: SealedRegion, _ bytes: inout [UInt8]) throws {
        let isOpen = bytes.withUnsafeMutableBytes { bytes in
            region.associated.withUnsafeBytes { associated in
                let tag = bytes.slice(region.start + region.count, Geometry.tagBytes)
                let body = bytes.slice(region.start, region.count)
                let nonce = UnsafeRawBufferPointer(bytes.slice(region.nonce, Geometry.nonceBytes))
                defer { tag.zero() }
                return key(region).open(
                    UnsafeRawBufferPointer(body), into: body, tag: UnsafeRawBufferPointer(tag), nonce: nonce,
                    associated: associated)
            }
        }
        try #require(isOpen)
    }

    private func seal(_ region: SealedRegion, _ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { bytes in
            region.associated.withUnsafeBytes { associated in
                let body = bytes.slice(region.start, region.count)
                key(region).seal(
                    UnsafeRawBufferPointer(body), into: body,
                    tag: bytes.slice(region.start + region.count, Geometry.tagBytes),
                    nonce: UnsafeRawBufferPointer(bytes.slice(region.nonce, Geometry.nonceBytes)),
                    associated: associated)
            }
        }
    }
}
