import LinuxIO
import TestSupport
import Testing
import VaultCrypto
import VaultFormat

@testable import VaultStore

/// The program comes to the verdicts of Tests/Vectors, as the reader in Tests/Reader does.
@Suite("Format: vectors") struct VectorTests {
    private func secret(_ bytes: [UInt8]?) throws -> SecretBytes {
        try #require(bytes).withUnsafeBytes { SecretBytes(copying: $0) }
    }

    private func keys(_ vector: Vector) throws -> SpaceKeys { try SpaceKeys(secret(vector.input("key"))) }

    private func bytes(_ secret: SecretBytes) -> [UInt8] { secret.withUnsafeBytes { Array($0) } }

    /// - Parameter found: the fields of a structure that was taken for valid; nil where it was not.
    private func compare(_ vector: Vector, _ found: [String: String]?) {
        #expect((found == nil ? "damaged" : "valid") == vector.verdict)
        for (name, value) in found ?? [:] {
            if let expected = vector.expected(name) { #expect(value == expected, "\(name)") }
        }
    }

    private func shown(_ reference: Reference) -> String {
        if reference.isAbsent { return "none" }
        var tags = [UInt8](repeating: 0, count: 2 * Geometry.tagBytes)
        tags.withUnsafeMutableBytes {
            reference.tagA.copy(to: $0.slice(0, Geometry.tagBytes))
            reference.tagB.copy(to: $0.slice(Geometry.tagBytes, Geometry.tagBytes))
        }
        return
            "\(reference.slot) \(Vector.text(Array(tags.prefix(16)))) \(Vector.text(Array(tags.suffix(16))))"
    }

    @Test func `every structure has vectors`() {
        let names = [
            "stretch", "header", "slot", "descriptor", "extent", "page", "node", "root", "claim", "delta",
        ]
        for name in names { #expect(!Vector.all(name).isEmpty, "\(name)") }
    }

    // MARK: Header

    @Test(arguments: Vector.all("stretch")) func `passwords are stretched`(vector: Vector) throws {
        var password = try secret(vector.input("password"))
        if let content = vector.input("key_file") {
            password = KeyFile(try secret(content)).combined(with: password)
        }
        let parameters = KDFParameters(
            memoryBytes: try #require(vector.number("memory")),
            passes: UInt32(try #require(vector.number("passes"))))
        let stretched = try #require(vector.input("salt")).withUnsafeBytes {
            stretch(password: password, salt: $0, parameters: parameters, count: Geometry.keyBytes)
        }
        compare(vector, ["stretched": Vector.text(bytes(try #require(stretched)))])
    }

    @Test(arguments: Vector.all("header")) func `headers are judged`(vector: Vector) throws {
        do throws(VaultError) {
            let header = try Header.read(image: vector.bytes)
            compare(
                vector,
                [
                    "spaces": "\(header.spaceCount)", "segment_bytes": "\(header.segmentBytes)",
                    "memory": "\(header.kdf.memoryBytes)", "passes": "\(header.kdf.passes)",
                ])
        } catch {
            switch error {
            case .newer(let newer):
                #expect(vector.verdict == "version \(newer.version)")
                #expect(vector.expected("release") == nil || vector.expected("release") == newer.release.text)
            default: compare(vector, nil)
            }
        }
    }

    @Test(arguments: Vector.all("slot")) func `slots are opened`(vector: Vector) throws {
        let index = Int(try #require(vector.number("index")))
        var copy = [UInt8](repeating: 0, count: HeaderLayout.copyBytes)
        copy.replaceSubrange(0..<HeaderLayout.clearBytes, with: try #require(vector.input("clear")))
        let start = HeaderLayout.keySlotOffset(index)
        copy.replaceSubrange(start..<start + HeaderLayout.keySlotBytes, with: vector.bytes)
        copy.withUnsafeMutableBytes { copy in
            let checked = UnsafeRawBufferPointer(copy).slice(0, HeaderLayout.checksumOffset)
            hash([checked], into: copy.slice(HeaderLayout.checksumOffset, HeaderLayout.checksumBytes))
        }
        let (stretched, found): (SecretBytes, (key: SecretBytes, space: Int)?)
        stretched = try secret(vector.input("stretched"))
        do throws(VaultError) {
            found = try Header.read(image: copy).openKeySlots(stretched)
        } catch {
            guard case .newer(let newer) = error else { throw error }
            #expect(vector.verdict == "version \(newer.version)")
            #expect(vector.expected("release") == newer.release.text)
            return
        }
        compare(vector, found.map { ["key": Vector.text(bytes($0.key))] })
        if let found { #expect(found.space == index) }
    }

    // MARK: Extents

    @Test(arguments: Vector.all("descriptor")) func `descriptors are judged`(vector: Vector) {
        compare(vector, vector.bytes.withUnsafeBytes { Descriptor(decoding: $0) }.map(fields))
    }

    private func fields(_ descriptor: Descriptor) -> [String: String] {
        [
            "role": "\(descriptor.role.rawValue)", "length": "\(descriptor.length)",
            "content": "\(descriptor.content)",
            "offset": "\(descriptor.offset)", "generation": "\(descriptor.generation)",
            "epoch": "\(descriptor.epoch)",
        ]
    }

    @Test(arguments: Vector.all("extent")) func `extents are opened`(vector: Vector) throws {
        let keys = try keys(vector)
        let found = vector.bytes.withUnsafeBytes { extent -> (Descriptor, [UInt8])? in
            var plain = [UInt8](repeating: 0, count: Geometry.descriptorBytes)
            var associated = [UInt8](repeating: 0, count: Descriptor.associatedBytes)
            let nonce = extent.slice(0, Geometry.nonceBytes)
            (associated[0], associated[1]) = (UInt8(formatVersion & 255), UInt8(formatVersion >> 8))
            let descriptor = plain.withUnsafeMutableBytes { plain -> Descriptor? in
                let isOpen = associated.prefix(2).withUnsafeBytes {
                    keys.descriptor.open(
                        extent.slice(Geometry.nonceBytes, Geometry.descriptorBytes), into: plain,
                        tag: extent.slice(Geometry.nonceBytes + Geometry.descriptorBytes, Geometry.tagBytes),
                        nonce: nonce, associated: $0)
                }
                return isOpen ? Descriptor(decoding: UnsafeRawBufferPointer(plain)) : nil
            }
            guard let descriptor, extent.count >= Int(descriptor.length) + Geometry.extentOverheadBytes else {
                return nil
            }
            associated.withUnsafeMutableBytes { descriptor.encodeAssociatedData(into: $0) }
            var content = [UInt8](repeating: 0, count: Int(descriptor.length))
            let isOpen = content.withUnsafeMutableBytes { content in
                associated.withUnsafeBytes {
                    keys.content.open(
                        extent.slice(Geometry.extentHeaderBytes, content.count), into: content,
                        tag: extent.slice(Geometry.extentHeaderBytes + content.count, Geometry.tagBytes),
                        nonce: nonce,
                        associated: $0)
                }
            }
            return isOpen ? (descriptor, content) : nil
        }
        compare(vector, found.map { fields($0.0) })
        if let found, let expected = vector.expected("plaintext") {
            #expect(found.1 == Vector.bytes(expected))
        }
    }

    // MARK: Pages

    @Test(arguments: Vector.all("page")) func `pages are opened`(vector: Vector) throws {
        func number(_ name: String) throws -> UInt64 { try #require(vector.number(name)) }
        let identity = PageIdentity(
            role: try #require(PageRole(rawValue: UInt8(number("role")))),
            object: UInt8(try number("object")),
            level: UInt8(try number("level")), index: UInt32(try number("index")))
        // The program reads whole pages only.
        guard vector.bytes.count == Geometry.pageBytes else { return compare(vector, nil) }
        let codec = PageCodec(key: try keys(vector).page)
        let copy = UInt8(try number("copy"))
        let tag = vector.input("tag").map { $0.withUnsafeBytes { Tag($0) } }
        var plain = [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
        let isOpen = plain.withUnsafeMutableBytes { plain in
            vector.bytes.withUnsafeBytes {
                codec.open($0, as: identity, copy: copy, expected: tag, into: plain)
            }
        }
        compare(vector, isOpen ? [:] : nil)
        if isOpen, let expected = vector.expected("plaintext") { #expect(plain == Vector.bytes(expected)) }
    }

    @Test(arguments: Vector.all("node")) func `nodes are read`(vector: Vector) {
        let references = vector.bytes.withUnsafeBytes { bytes in
            (0..<MapLayout.fanout).map {
                Reference(decoding: bytes.slice($0 * MapLayout.referenceBytes, MapLayout.referenceBytes))
            }
        }
        var found = ["references": "\(references.filter { !$0.isAbsent }.count)"]
        for (place, reference) in references.enumerated() { found["reference \(place)"] = shown(reference) }
        compare(vector, found)
    }

    @Test(arguments: Vector.all("root")) func `roots are judged`(vector: Vector) {
        let format = vector.bytes.withUnsafeBytes { SpaceFormat(ofRoot: $0) }
        guard let root = vector.bytes.withUnsafeBytes({ RootRecord(decoding: $0) }) else {
            guard let newer = format.obstacle else { return compare(vector, nil) }
            #expect(
                vector.verdict == (newer.structure == .space ? "version \(newer.version)" : "features"))
            #expect(vector.expected("release") == nil || vector.expected("release") == newer.release.text)
            return
        }
        var found = [
            "generation": "\(root.generation)", "durable": root.isDurable ? "1" : "0",
            "epoch": "\(root.epoch)",
            "base": "\(root.base)", "released": "\(root.released)", "delta": shown(root.delta),
            "pairs": root.pairs.map { "\($0.a) \($0.b)" }.joined(separator: " "),
        ]
        found["features"] = "\(format.incompatible) \(format.writing) \(format.compatible)"
        for (number, object) in root.objects.enumerated() {
            found["object \(number)"] = "\(object.pageCount) \(object.levels) \(shown(object.reference))"
        }
        compare(vector, found)
    }

    // MARK: Claims

    /// As a mount judges the claim that it finds, on a computer with the files that the vector gives.
    @Test(arguments: Vector.all("claim")) func `claims are judged`(vector: Vector) throws {
        let (keys, boot) = (try keys(vector), try #require(vector.input("boot_id")))
        let disk = MemoryDisk(DiskState(DiskImage()))
        if !boot.isEmpty { try disk.plant("/proc/sys/kernel/random/boot_id", boot) }
        guard case .claim(let claim) = try standingClaim(vector.bytes, keys, disk) else {
            return compare(vector, nil)
        }
        var host = ClaimHost(
            machine: nil, process: ProcessIdentity(namespace: 1, id: 1, start: 1), life: { _ in .running },
            now: { 0 }, sleep: { _ in })
        // As `UnlockedSpace.claimKeeper`.
        if !boot.isEmpty {
            host.machine = ClaimHost.machineBytes(
                id: vector.input("machine_id"), name: vector.input("hostname"))
        }
        let mark = try VaultFiles.open("/vault", calls: disk).memoryMark()
        let own = Claim(of: host, key: keys.claim, bootHash: UnlockedSpace.bootHash(keys.boot, mark))
        let ifRunning = own.fate(of: claim, host)
        host.life = { _ in .ended }
        let ifGone = own.fate(of: claim, host)
        compare(
            vector,
            [
                "namespace": "\(claim.process.namespace)", "start": "\(claim.process.start)",
                "process": "\(claim.process.id)",
                "free_if_running": ifRunning == .dead ? "1" : "0",
                "free_if_gone": ifGone == .dead ? "1" : "0",
            ])
        for (name, bytes) in [("owner", claim.owner), ("machine", claim.machine), ("boot", claim.boot)] {
            #expect(bytes == vector.expected(name).map { Vector.bytes($0) }, "\(name)")
        }
    }

    /// The bytes of slot 12 of a space on that disk.
    ///
    /// - Parameter slot: both copies, of which the second one may be cut or not there.
    private func standingClaim(
        _ slot: [UInt8], _ keys: SpaceKeys, _ disk: MemoryDisk
    ) throws -> ClaimSlot.Standing {
        let layout = SegmentLayout(spaceCount: 1, segmentBytes: Geometry.segmentBytesMin)
        let before = [UInt8](repeating: 0, count: RootLayout.claimSlot * Geometry.pageBytes)
        let copies = [slot.prefix(Geometry.pageBytes), slot.dropFirst(Geometry.pageBytes)]
        for (copy, bytes) in copies.enumerated() {
            let path = layout.path(SegmentPlace(space: 0, number: copy))
            try disk.plant("/vault/" + path, before + bytes)
        }
        try disk.plant("/vault/" + VaultFiles.headerName, [])
        let directory = try VaultFiles.open("/vault", calls: disk)
        return try ClaimSlot(directory.segments(of: 0, layout), PageCodec(key: keys.page)).standing()
    }

    // MARK: Deltas

    /// As `Space.readDelta` reads one.
    @Test(arguments: Vector.all("delta")) func `deltas are judged`(vector: Vector) throws {
        let segmentSectors = Int(try #require(vector.number("segment_sectors")))
        let slotCount = Int(try #require(vector.number("slots")))
        let found = vector.bytes.withUnsafeBytes { bytes -> [String: String]? in
            let count = Int(bytes.number(DeltaLayout.countOffset, as: UInt32.self))
            guard count <= DeltaLayout.entriesPerPage else { return nil }
            let entries = (0..<count).map {
                DeltaEntry(
                    decoding: bytes.slice(
                        DeltaLayout.entriesOffset + $0 * DeltaLayout.entryBytes, DeltaLayout.entryBytes))
            }
            let areValid = entries.allSatisfy {
                $0.isPlausible(sectorsPerSegment: segmentSectors, slotCount: slotCount)
            }
            guard areValid else { return nil }
            let previous = bytes.slice(DeltaLayout.previousOffset, MapLayout.referenceBytes)
            return [
                "generation": "\(bytes.number(DeltaLayout.generationOffset, as: UInt64.self))",
                "previous": shown(Reference(decoding: previous)),
                "entries": entries.map { "\($0.kind) \($0.count) \($0.start)" }.joined(separator: " "),
            ]
        }
        compare(vector, found)
    }
}
