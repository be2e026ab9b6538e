import VaultCrypto
import VaultFormat

/// The identity of a sealed page, bound into its associated data. See the format specification, *Pages*.
struct PageIdentity: Sendable, Hashable {
    var role: PageRole
    var object: UInt8 = 0
    var level: UInt8 = 0
    /// Page number, node number, or slot, by role.
    var index: UInt32

    static let associatedBytes = 12

    func encode(copy: UInt8, into bytes: UnsafeMutableRawBufferPointer) {
        bytes.setNumber(formatVersion, 0)
        bytes.setNumber(role.rawValue, 2)
        bytes.setNumber(copy, 3)
        bytes.setNumber(object, 4)
        bytes.setNumber(level, 5)
        bytes.setNumber(UInt16(0), 6)
        bytes.setNumber(index, 8)
    }

    static func page(_ object: MapObject, _ page: Int) -> PageIdentity {
        PageIdentity(role: object.role, object: UInt8(object.rawValue), index: UInt32(page))
    }

    static func node(_ object: MapObject, _ key: NodeKey) -> PageIdentity {
        PageIdentity(
            role: .mapNode, object: UInt8(object.rawValue), level: UInt8(key.level), index: UInt32(key.index))
    }
}

/// Seals and opens 4 KiB pages: nonce, 4056 bytes of ciphertext, tag.
struct PageCodec: Sendable {
    let key: SealingKey

    /// Seals the first 4056 bytes of `plain` into `page` (4096 bytes) under a fresh nonce.
    func seal(
        _ plain: UnsafeRawBufferPointer, as identity: PageIdentity, copy: UInt8,
        into page: UnsafeMutableRawBufferPointer
    ) -> Tag {
        precondition(page.count == Geometry.pageBytes && plain.count >= Geometry.pagePlainBytes)
        let nonce = page.slice(0, Geometry.nonceBytes)
        let tag = page.slice(Geometry.pageBytes - Geometry.tagBytes, Geometry.tagBytes)
        fillRandom(nonce)
        withUnsafeTemporaryAllocation(byteCount: PageIdentity.associatedBytes, alignment: 8) { associated in
            identity.encode(copy: copy, into: associated)
            key.seal(
                plain.slice(0, Geometry.pagePlainBytes),
                into: page.slice(Geometry.nonceBytes, Geometry.pagePlainBytes), tag: tag,
                nonce: UnsafeRawBufferPointer(nonce), associated: UnsafeRawBufferPointer(associated))
        }
        return Tag(UnsafeRawBufferPointer(tag))
    }

    /// Opens `page` into `plain` (4056 bytes at least). Returns false if it is not the page of `identity`, or its tag
    /// is not `expected`.
    func open(
        _ page: UnsafeRawBufferPointer, as identity: PageIdentity, copy: UInt8, expected: Tag?,
        into plain: UnsafeMutableRawBufferPointer
    ) -> Bool {
        let tag = page.slice(Geometry.pageBytes - Geometry.tagBytes, Geometry.tagBytes)
        if let expected, Tag(tag) != expected { return false }
        return withUnsafeTemporaryAllocation(byteCount: PageIdentity.associatedBytes, alignment: 8) {
            associated in
            identity.encode(copy: copy, into: associated)
            return key.open(
                page.slice(Geometry.nonceBytes, Geometry.pagePlainBytes),
                into: plain.slice(0, Geometry.pagePlainBytes), tag: tag,
                nonce: page.slice(0, Geometry.nonceBytes), associated: UnsafeRawBufferPointer(associated))
        }
    }
}
