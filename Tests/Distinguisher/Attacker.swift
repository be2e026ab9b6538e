import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// An attacker with a copy of a vault and a password. Reads by the format's specification and not by the program's
/// code.
struct Attacker {
    /// The one the password opens.
    let space: Int
    let spaceCount: Int
    let segmentBytes: Int
    let header: [UInt8]
    private let page: SealingKey
    private let descriptor: SealingKey

    /// The specification did not hold.
    struct Surprise: Error { var what: String }

    init(_ vault: String, _ password: SecretBytes) throws {
        let calls = LinuxCalls.shared
        // Before the files' times are looked at: it leaves none of its own.
        let file = try calls.openRegular(AT_FDCWD, vault + "/obscura.vault", flags: O_RDONLY, mode: 0)
        defer { calls.close(file) }
        var bytes = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        guard try calls.readFully(file, at: 0, into: &bytes) == bytes.count else {
            throw Surprise(what: "header's size")
        }
        header = bytes
        (spaceCount, segmentBytes) = header.withUnsafeBytes { bytes in
            (
                Int(bytes.number(HeaderLayout.spaceCountOffset, as: UInt8.self)),
                Int(bytes.number(HeaderLayout.segmentBytesOffset, as: UInt64.self))
            )
        }
        let (space, key) = try Self.openSlot(header, spaceCount, password)
        self.space = space
        page = SealingKey(deriveKey(key, purpose: "obscura 1 page"))
        descriptor = SealingKey(deriveKey(key, purpose: "obscura 1 descriptor"))
    }

    private static func openSlot(
        _ header: [UInt8], _ count: Int, _ password: SecretBytes
    ) throws -> (Int, SecretBytes) {
        try header.withUnsafeBytes { bytes in
            let parameters = KDFParameters(
                memoryBytes: bytes.number(HeaderLayout.kdfMemoryOffset),
                passes: bytes.number(HeaderLayout.kdfPassesOffset))
            let salt = bytes.slice(HeaderLayout.saltOffset, HeaderLayout.saltBytes)
            guard let stretched = stretch(password: password, salt: salt, parameters: parameters, count: 32)
            else { throw Surprise(what: "memory") }
            let sealing = SealingKey(deriveKey(stretched, purpose: "obscura 1 slot"))
            for slot in 0..<count {
                let part = bytes.slice(HeaderLayout.keySlotOffset(slot), HeaderLayout.keySlotBytes)
                let associated = Array(bytes.slice(0, HeaderLayout.clearBytes)) + [UInt8(slot)]
                let plain = SecretBytes(count: HeaderLayout.keySlotPlainBytes)
                let isOpen = plain.withUnsafeMutableBytes { plain in
                    associated.withUnsafeBytes {
                        sealing.open(
                            part.slice(HeaderLayout.keySlotSealedOffset, plain.count), into: plain,
                            tag: part.slice(HeaderLayout.keySlotTagOffset, Geometry.tagBytes),
                            nonce: part.slice(HeaderLayout.keySlotNonceOffset, Geometry.nonceBytes),
                            associated: $0)
                    }
                }
                if isOpen {
                    return plain.withUnsafeBytes {
                        (Int($0[32]), SecretBytes(copying: $0.slice(0, Geometry.keyBytes)))
                    }
                }
            }
            throw Surprise(what: "no slot opens")
        }
    }

    /// The fields of a root record that may tell a history.
    struct Root {
        var slot: Int
        var copy: Int
        var plain: [UInt8]

        func number<T: FixedWidthInteger>(_ offset: Int, as type: T.Type) -> Double {
            Double(plain.withUnsafeBytes { $0.number(offset, as: type) })
        }
        var generation: Double { number(RootLayout.generationOffset, as: UInt64.self) }
        var isDurable: Bool { plain[RootLayout.kindOffset] == RootLayout.kindDurable }
        var epoch: [UInt8] { Array(plain[RootLayout.epochOffset..<RootLayout.epochOffset + 8]) }
    }

    /// The root that opens at a root slot of a segment's first bytes, as copy 0 or 1.
    func root(_ head: UnsafeRawBufferPointer, slot: Int, copy: Int) -> Root? {
        opened(head, slot: slot, copy: copy, as: .root).map { Root(slot: slot, copy: copy, plain: $0) }
    }

    /// Whether there is a claim among a segment's first bytes.
    func hasClaim(_ head: UnsafeRawBufferPointer, copy: Int) -> Bool {
        opened(head, slot: RootLayout.claimSlot, copy: copy, as: .claim) != nil
    }

    private func opened(
        _ head: UnsafeRawBufferPointer, slot: Int, copy: Int, as role: PageRole
    ) -> [UInt8]? {
        // Version (2), role, copy, object, level, zero (2), index (4).
        var associated = [UInt8](repeating: 0, count: 12)
        associated.withUnsafeMutableBytes {
            $0.setNumber(formatVersion, 0)
            $0.setNumber(role.rawValue, 2)
            $0.setNumber(UInt8(copy), 3)
            $0.setNumber(UInt32(slot), 8)
        }
        let sealed = head.slice(slot * Geometry.pageBytes, Geometry.pageBytes)
        var plain = [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
        let isOpen = plain.withUnsafeMutableBytes { plain in
            associated.withUnsafeBytes {
                page.open(
                    sealed.slice(Geometry.nonceBytes, plain.count), into: plain,
                    tag: sealed.slice(Geometry.pageBytes - Geometry.tagBytes, Geometry.tagBytes),
                    nonce: sealed.slice(0, Geometry.nonceBytes), associated: $0)
            }
        }
        return isOpen ? plain : nil
    }

    /// Whether an extent's descriptor begins with a sector.
    func opensAsExtent(_ sector: UnsafeRawBufferPointer) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: Geometry.descriptorBytes, alignment: 8) { plain in
            var version = formatVersion.littleEndian
            return withUnsafeBytes(of: &version) {
                descriptor.open(
                    sector.slice(Geometry.nonceBytes, Geometry.descriptorBytes), into: plain,
                    tag: sector.slice(Geometry.nonceBytes + Geometry.descriptorBytes, Geometry.tagBytes),
                    nonce: sector.slice(0, Geometry.nonceBytes), associated: $0)
            }
        }
    }
}
