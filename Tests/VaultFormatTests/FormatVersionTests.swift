import Testing
import VaultFormat

@Suite("Format: versions") struct FormatVersionTests {
    @Test(arguments: 1...Geometry.spacesMax)
    func `credential slots lie between the key slots and the checksum`(spaces: Int) {
        let bytes = HeaderLayout.credentialSlotBytes(spaces: spaces)
        // Nonce, tag, a salt, and an id of the common keys.
        #expect(bytes >= 24 + 16 + 36 + 256)
        #expect(HeaderLayout.credentialSlotOffset(0, spaces: spaces) == HeaderLayout.keySlotOffset(spaces))
        #expect(HeaderLayout.credentialSlotOffset(spaces, spaces: spaces) <= HeaderLayout.checksumOffset)
    }

    @Test func `the longest id of the standard fits where there are three spaces`() {
        for spaces in 1...3 {
            #expect(HeaderLayout.credentialSlotBytes(spaces: spaces) >= 24 + 16 + 36 + 1023)
        }
    }

    /// Where the format had zeros before.
    @Test func `versions and features of a root use bytes that were zeros`() {
        var root = [UInt8](repeating: 0, count: Geometry.pagePlainBytes)
        var format = SpaceFormat()
        root.withUnsafeMutableBytes { format.encode(intoRoot: $0) }
        #expect(root.allSatisfy { $0 == 0 })
        format.version = 0x1_0000
        format.release = Release(major: .max, minor: .max)
        (format.incompatible, format.writing, format.compatible) = (.max, .max, .max)
        root.withUnsafeMutableBytes { format.encode(intoRoot: $0) }
        let used = root.indices.filter { root[$0] != 0 }
        let words: [Range<Int>] = [14..<16, 76..<80, 124..<128, 172..<176, 220..<224]
        #expect(used == words.flatMap { Array($0) })
        #expect(root.withUnsafeBytes { SpaceFormat(ofRoot: $0) } == format)
        #expect(RootLayout.pairsMaxWithRoom == 435 && RootLayout.pairsMax == 467)
    }

    @Test func `words name the release and the number`() {
        let release = Release(major: 1, minor: 3)
        #expect(
            NewerVersion(.catalogue, version: 4, release: release).words
                == "made by Obscura 1.3 (catalogue version 4): needs that or later")
        #expect(
            NewerVersion(.header, version: 9, release: .unknown).words
                == "made by a newer Obscura (vault format version 9): needs that")
        #expect(
            NewerVersion(.writingFeatures, version: 10, release: release).words
                == "made by Obscura 1.3 (features 0xa): only that or a later one may change it")
    }

    @Test func `releases are stored in four bytes`() {
        let release = Release(major: 0x0102, minor: 0x0304)
        var bytes = [UInt8](repeating: 0, count: Release.storedBytes)
        bytes.withUnsafeMutableBytes { release.encode(into: $0) }
        #expect(bytes == [2, 1, 4, 3])
        #expect(bytes.withUnsafeBytes { Release(decoding: $0) } == release)
        #expect(Release(number: release.number) == release)
    }

    @Test func `known features are no obstacle`() {
        var format = SpaceFormat()
        #expect(format.obstacle == nil && format.writingObstacle == nil)
        format.compatible = .max
        #expect(format.obstacle == nil && format.writingObstacle == nil)
        format.writing = 4
        #expect(format.obstacle == nil && format.writingObstacle?.version == 4)
        format.incompatible = 8
        #expect(format.obstacle?.structure == .features && format.obstacle?.version == 8)
        format.version = 2
        #expect(format.obstacle?.structure == .space && format.obstacle?.version == 2)
    }
}
