import LinuxIO
import VaultCrypto
import VaultFormat

/// One copy of a vault's header: 4096 bytes. See the format specification, *Header*.
struct Header: Sendable {
    private(set) var bytes: [UInt8]

    /// Makes a header with a random salt. Its key slots and the bytes behind them are random.
    init(spaces: Int, segmentBytes: UInt64, kdf: KDFParameters) {
        bytes = [UInt8](repeating: 0, count: HeaderLayout.copyBytes)
        bytes.withUnsafeMutableBytes { bytes in
            fillRandom(bytes)
            bytes.slice(0, HeaderLayout.clearBytes).zero()
            bytes.copyBytes(from: HeaderLayout.magic)
            bytes.setNumber(formatVersion, HeaderLayout.versionOffset)
            bytes.setNumber(UInt8(spaces), HeaderLayout.spaceCountOffset)
            bytes.setNumber(segmentBytes, HeaderLayout.segmentBytesOffset)
            bytes.setNumber(kdf.memoryBytes, HeaderLayout.kdfMemoryOffset)
            bytes.setNumber(kdf.passes, HeaderLayout.kdfPassesOffset)
            fillRandom(bytes.slice(HeaderLayout.saltOffset, HeaderLayout.saltBytes))
        }
        seal()
    }

    private enum CopyState {
        case valid
        case newer(NewerVersion)
        case damaged
    }

    /// Reads the first valid copy of a vault's header; repairs the other if `mayRepair`.
    ///
    /// Sizes and versions are validated before any cryptography: a header cannot demand absurd memory.
    static func read(from vault: any VaultHost, mayRepair: Bool) throws(VaultError) -> Header {
        var refusal: Errno?
        let copies = readCopies(vault, refusal: &refusal)
        let states = copies.map { classify($0) }
        for (index, state) in states.enumerated() {
            if case .valid = state {
                let header = Header(copy: copies[index])
                let other = 1 - index
                if mayRepair && copies[other] != copies[index] {
                    // Repairing is best effort: the vault is readable as it is.
                    try? header.write(to: vault, copy: other)
                }
                return header
            }
        }
        for state in states {
            if case .newer(let version) = state { throw .newer(version) }
        }
        // A header that the host does not hand out is not damaged.
        if let refusal, copies.allSatisfy(\.isEmpty) {
            // The file was opened for reading: another computer has its lock.
            if refusal == .accessDenied { throw .inUse }
            throw InPlaceProbe.refusals.contains(refusal.rawValue)
                ? .unsuitableHost : .system(refusal, "cannot read the header")
        }
        throw .headerDamaged
    }

    /// Whether copy A and copy B are valid. If both are and they differ, B counts as invalid.
    static func copyStates(_ vault: any VaultHost) -> [Bool] {
        var refusal: Errno?
        let copies = readCopies(vault, refusal: &refusal)
        var states = copies.map { copy in
            if case .valid = classify(copy) { return true }
            return false
        }
        if states == [true, true], copies[0] != copies[1] { states[1] = false }
        return states
    }

    /// Reads both copies; an unreadable one is empty.
    ///
    /// - Parameter refusal: an error that tells nothing about the bytes, as EIO does.
    private static func readCopies(_ vault: any VaultHost, refusal: inout Errno?) -> [[UInt8]] {
        HeaderLayout.copyOffsets.map { offset in
            var copy = [UInt8](repeating: 0, count: HeaderLayout.copyBytes)
            do throws(Errno) {
                let count = try vault.readHeader(at: offset, into: &copy)
                return count == copy.count ? copy : []
            } catch {
                if error != .inputOutput { refusal = error }
                return []
            }
        }
    }

    private static func classify(_ copy: [UInt8]) -> CopyState {
        guard copy.count == HeaderLayout.copyBytes, copy.starts(with: HeaderLayout.magic) else {
            return .damaged
        }
        return copy.withUnsafeBytes { bytes in
            let version: UInt16 = bytes.number(HeaderLayout.versionOffset)
            var sum = [UInt8](repeating: 0, count: HeaderLayout.checksumBytes)
            sum.withUnsafeMutableBytes { hash([bytes.slice(0, HeaderLayout.checksumOffset)], into: $0) }
            let isWhole = bytes.slice(HeaderLayout.checksumOffset, HeaderLayout.checksumBytes).elementsEqual(
                sum)
            guard isWhole else { return .damaged }
            guard version == formatVersion else {
                let release = Release(decoding: bytes.slice(HeaderLayout.releaseOffset, Release.storedBytes))
                return .newer(NewerVersion(.header, version: Int(version), release: release))
            }
            let spaces = Int(bytes.number(HeaderLayout.spaceCountOffset, as: UInt8.self))
            let memory: UInt64 = bytes.number(HeaderLayout.kdfMemoryOffset)
            let passes: UInt32 = bytes.number(HeaderLayout.kdfPassesOffset)
            let isPlausible =
                spaces >= 1 && spaces <= Geometry.spacesMax
                && Geometry.isPlausible(segmentBytes: bytes.number(HeaderLayout.segmentBytesOffset))
                && KDFLimits.memoryBytes.contains(memory) && KDFLimits.passes.contains(passes)
            return isPlausible ? .valid : .damaged
        }
    }

    private init(copy: [UInt8]) { bytes = copy }

    /// The first valid copy in the bytes of an `obscura.vault`.
    static func read(image: [UInt8]) throws(VaultError) -> Header {
        var newer: NewerVersion?
        for offset in HeaderLayout.copyOffsets.map(Int.init) {
            let copy = Array(image.dropFirst(offset).prefix(HeaderLayout.copyBytes))
            switch classify(copy) {
            case .valid: return Header(copy: copy)
            case .newer(let version): newer = newer ?? version
            case .damaged: continue
            }
        }
        if let newer { throw .newer(newer) }
        throw .headerDamaged
    }

    /// The bytes of an `obscura.vault` with this header: both copies, surrounded by random bytes.
    func image() -> [UInt8] {
        var image = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        image.withUnsafeMutableBytes { fillRandom($0) }
        for offset in HeaderLayout.copyOffsets.map(Int.init) {
            image.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }
        return image
    }

    /// The fields that never change: number of spaces, segment size, key derivation and its random salt.
    var clearBytes: ArraySlice<UInt8> { bytes[0..<HeaderLayout.clearBytes] }

    var spaceCount: Int { Int(number(HeaderLayout.spaceCountOffset, as: UInt8.self)) }
    var segmentBytes: UInt64 { number(HeaderLayout.segmentBytesOffset) }
    var layout: SegmentLayout { Self.layout(ofClearFields: clearFields) }
    /// The bytes before the key slots. They identify the vault and never change.
    var clearFields: [UInt8] { Array(bytes[0..<HeaderLayout.clearBytes]) }
    /// - Parameter fields: the clear fields of a valid header, or a copy of them.
    static func layout(ofClearFields fields: [UInt8]) -> SegmentLayout {
        fields.withUnsafeBytes { bytes in
            SegmentLayout(
                spaceCount: Int(bytes.number(HeaderLayout.spaceCountOffset, as: UInt8.self)),
                segmentBytes: bytes.number(HeaderLayout.segmentBytesOffset))
        }
    }
    var kdf: KDFParameters {
        KDFParameters(
            memoryBytes: number(HeaderLayout.kdfMemoryOffset), passes: number(HeaderLayout.kdfPassesOffset))
    }

    private func number<T: FixedWidthInteger>(_ offset: Int, as type: T.Type = T.self) -> T {
        bytes.withUnsafeBytes { $0.number(offset) }
    }

    /// Recomputes the checksum.
    private mutating func seal() {
        bytes.withUnsafeMutableBytes { bytes in
            hash(
                [UnsafeRawBufferPointer(bytes).slice(0, HeaderLayout.checksumOffset)],
                into: bytes.slice(HeaderLayout.checksumOffset, HeaderLayout.checksumBytes))
        }
    }

    /// Writes copy A, syncs, writes copy B, syncs: at any moment one of them is whole.
    func write(to vault: any VaultHost) throws(VaultError) {
        // ^C between the two would leave another header in copy B: a password that was to be gone may open that one.
        try withoutInterruption { () throws(VaultError) in
            for copy in 0..<2 { try write(to: vault, copy: copy) }
        }
    }

    private func write(to vault: any VaultHost, copy: Int) throws(VaultError) {
        do throws(Errno) { try vault.writeHeader(bytes, at: HeaderLayout.copyOffsets[copy]) } catch {
            throw .system(error, "cannot write the header")
        }
    }

    // MARK: Key slots

    /// Stretches the password to the secret that opens and seals key slots. One Argon2id run.
    func stretched(
        _ password: SecretBytes, by stretcher: any PasswordStretcher
    ) throws(VaultError) -> SecretBytes {
        try kdf.checkMachine()
        let salt = Array(bytes[HeaderLayout.saltOffset..<HeaderLayout.saltOffset + HeaderLayout.saltBytes])
        return try stretcher.stretch(password, salt: salt, parameters: kdf)
    }

    /// Tries every key slot, in constant work. Returns the key and number of the space whose slot opens. Throws `newer`
    /// if that slot is of a version that this program does not know.
    ///
    /// - Parameter willTry: called with each slot before it is tried.
    func openKeySlots(
        _ stretched: SecretBytes, willTry: (_ slot: Int) -> Void = { _ in }
    ) throws(VaultError) -> (key: SecretBytes, space: Int)? {
        let sealing = SealingKey(deriveKey(stretched, purpose: "obscura 1 slot"))
        var found: (key: SecretBytes, space: Int)?
        var newer: NewerVersion?
        for slot in 0..<spaceCount {
            willTry(slot)
            let plain = SecretBytes(count: HeaderLayout.keySlotPlainBytes)
            let isOpen = bytes.withUnsafeBytes { bytes -> Bool in
                let part = bytes.slice(HeaderLayout.keySlotOffset(slot), HeaderLayout.keySlotBytes)
                let nonce = part.slice(HeaderLayout.keySlotNonceOffset, Geometry.nonceBytes)
                var commitment = [UInt8](repeating: 0, count: HeaderLayout.keySlotCommitmentBytes)
                commitment.withUnsafeMutableBytes { commit(stretched, slot, nonce, into: $0) }
                let isCommitted = commitment.withUnsafeBytes {
                    constantTimeEqual(
                        $0,
                        part.slice(HeaderLayout.keySlotCommitmentOffset, HeaderLayout.keySlotCommitmentBytes))
                }
                let isSealed = plain.withUnsafeMutableBytes { plain in
                    associated(slot).withUnsafeBytes {
                        sealing.open(
                            part.slice(HeaderLayout.keySlotSealedOffset, HeaderLayout.keySlotPlainBytes),
                            into: plain,
                            tag: part.slice(HeaderLayout.keySlotTagOffset, Geometry.tagBytes), nonce: nonce,
                            associated: $0)
                    }
                }
                return isCommitted && isSealed
            }
            let space = plain.withUnsafeBytes { Int($0[Geometry.keyBytes]) }
            if isOpen && space < spaceCount {
                let key = plain.withUnsafeBytes { SecretBytes(copying: $0.slice(0, Geometry.keyBytes)) }
                found = (key, space)
                newer = plain.withUnsafeBytes { Self.newerVersion(ofSlot: $0) }
            }
        }
        if let newer { throw .newer(newer) }
        return found
    }

    private static func newerVersion(ofSlot plain: UnsafeRawBufferPointer) -> NewerVersion? {
        let version = Int(plain[HeaderLayout.keySlotVersionOffset]) + 1
        let release = Release(decoding: plain.slice(HeaderLayout.keySlotReleaseOffset, Release.storedBytes))
        return version > 1 ? NewerVersion(.keySlot, version: version, release: release) : nil
    }

    /// Seals a space's key into its key slot. Its credential slot becomes random.
    mutating func setKeySlot(_ space: Int, key: SecretBytes, stretched: SecretBytes) {
        let sealing = SealingKey(deriveKey(stretched, purpose: "obscura 1 slot"))
        let plain = SecretBytes(count: HeaderLayout.keySlotPlainBytes)
        plain.withUnsafeMutableBytes { plain in
            key.withUnsafeBytes { plain.copyMemory(from: $0) }
            plain[Geometry.keyBytes] = UInt8(space)
        }
        let associated = associated(space)
        var slot = [UInt8](repeating: 0, count: HeaderLayout.keySlotBytes)
        slot.withUnsafeMutableBytes { part in
            let nonce = part.slice(HeaderLayout.keySlotNonceOffset, Geometry.nonceBytes)
            fillRandom(nonce)
            commit(
                stretched, space, UnsafeRawBufferPointer(nonce),
                into: part.slice(HeaderLayout.keySlotCommitmentOffset, HeaderLayout.keySlotCommitmentBytes))
            plain.withUnsafeBytes { plain in
                associated.withUnsafeBytes {
                    sealing.seal(
                        plain,
                        into: part.slice(HeaderLayout.keySlotSealedOffset, HeaderLayout.keySlotPlainBytes),
                        tag: part.slice(HeaderLayout.keySlotTagOffset, Geometry.tagBytes),
                        nonce: UnsafeRawBufferPointer(nonce), associated: $0)
                }
            }
        }
        let start = HeaderLayout.keySlotOffset(space)
        bytes.replaceSubrange(start..<start + slot.count, with: slot)
        clearCredentialSlot(space)
        seal()
    }

    /// Fills a key slot with random bytes: everything sealed with its key is lost for good.
    mutating func clearKeySlot(_ space: Int) {
        bytes.withUnsafeMutableBytes {
            fillRandom($0.slice(HeaderLayout.keySlotOffset(space), HeaderLayout.keySlotBytes))
        }
        clearCredentialSlot(space)
        seal()
    }

    /// Whatever changes a key slot changes its credential slot too, used or not: so two states of a header do not tell
    /// whether a hardware key belongs to a space.
    private mutating func clearCredentialSlot(_ space: Int) {
        let spaces = spaceCount
        bytes.withUnsafeMutableBytes {
            fillRandom(
                $0.slice(
                    HeaderLayout.credentialSlotOffset(space, spaces: spaces),
                    HeaderLayout.credentialSlotBytes(spaces: spaces)))
        }
    }

    /// A key slot's associated data: the clear fields and the slot's number.
    private func associated(_ slot: Int) -> [UInt8] { clearBytes + [UInt8(slot)] }

    /// Computes the slot's commitment to its key, as AEADs do not commit: BLAKE2b of slot number and nonce, keyed with
    /// a key derived from the stretched password.
    private func commit(
        _ stretched: SecretBytes, _ slot: Int, _ nonce: UnsafeRawBufferPointer,
        into out: UnsafeMutableRawBufferPointer
    ) {
        let key = deriveKey(stretched, purpose: "obscura 1 commitment")
        [UInt8(slot)].withUnsafeBytes { hash([$0, nonce], key: key, into: out) }
    }
}
