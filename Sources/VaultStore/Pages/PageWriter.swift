import LinuxIO
import VaultFormat

/// Seals pages in sequence and writes adjacent ones by one call for each copy.
struct PageWriter: ~Copyable {
    private let disk: SpaceDisk
    private let codec: PageCodec
    private let copyA: UnsafeMutableRawBufferPointer
    private let copyB: UnsafeMutableRawBufferPointer
    private var first = SlotPlace(sectorA: 0, sectorB: 0)
    private var count = 0

    private let pagesMax: Int

    init(disk: SpaceDisk, codec: PageCodec, pagesMax: Int = Limits.production.pagesPerWrite) {
        self.pagesMax = pagesMax
        self.disk = disk
        self.codec = codec
        let bytes = pagesMax * Geometry.pageBytes
        copyA = .allocate(byteCount: bytes, alignment: 4096)
        copyB = .allocate(byteCount: bytes, alignment: 4096)
    }

    deinit {
        copyA.deallocate()
        copyB.deallocate()
    }

    /// Seals `plain` for `slot` at `place`. The page is written, but not synced, once `flush` returns.
    mutating func add(
        _ plain: UnsafeRawBufferPointer, as identity: PageIdentity, slot: UInt32, at place: SlotPlace
    ) throws(StoreError) -> Reference {
        let sectors = UInt64(count * Geometry.sectorsPerPage)
        let isNext = place.sectorA == first.sectorA + sectors && place.sectorB == first.sectorB + sectors
        if count > 0 && (!isNext || count == pagesMax) { try flush() }
        if count == 0 { first = place }
        let offset = count * Geometry.pageBytes
        let tagA = codec.seal(plain, as: identity, copy: 0, into: copyA.slice(offset, Geometry.pageBytes))
        let tagB = codec.seal(plain, as: identity, copy: 1, into: copyB.slice(offset, Geometry.pageBytes))
        count += 1
        return Reference(slot: slot, tagA: tagA, tagB: tagB)
    }

    mutating func flush() throws(StoreError) {
        guard count > 0 else { return }
        let bytes = count * Geometry.pageBytes
        count = 0
        try disk.write(first.sectorA, UnsafeRawBufferPointer(copyA.slice(0, bytes)))
        try disk.write(first.sectorB, UnsafeRawBufferPointer(copyB.slice(0, bytes)))
    }
}
