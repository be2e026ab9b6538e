/// A release of Obscura, as it is stored beside a version: the first one that knows that version. Zeros where none is
/// stored. Never more is stored than major and minor number: two bytes each.
public struct Release: Sendable, Hashable {
    public var major: UInt16
    public var minor: UInt16

    public static let storedBytes = 4

    public init(major: UInt16, minor: UInt16) {
        self.major = major
        self.minor = minor
    }

    /// Where none is stored.
    public static let unknown = Release(major: 0, minor: 0)

    public init(decoding bytes: UnsafeRawBufferPointer) {
        unsafe self.init(major: bytes.number(0), minor: bytes.number(2))
    }

    public func encode(into bytes: UnsafeMutableRawBufferPointer) {
        unsafe bytes.setNumber(major, 0)
        unsafe bytes.setNumber(minor, 2)
    }

    /// As one number, for SQLite's `application_id`.
    public init(number: UInt32) {
        self.init(major: UInt16(number >> 16), minor: UInt16(truncatingIfNeeded: number))
    }

    public var number: UInt32 { UInt32(major) << 16 | UInt32(minor) }

    /// As `1.3`.
    public var text: String { "\(major).\(minor)" }
}

/// A stored structure that only a later release can use. It is refused by its number, and never called damaged.
public struct NewerVersion: Error, Sendable, Hashable {
    /// The structures that tell their version.
    public enum Structure: Sendable, Hashable {
        case header
        case keySlot
        /// A root, and with it the whole state of a space.
        case space
        case catalogue
        case record
        case backupLog
        /// Features of a space without which it cannot be read. The version is their bits.
        case features
        /// Features of a space without which it cannot be changed. The version is their bits.
        case writingFeatures
    }

    public var structure: Structure
    public var version: Int
    /// The release that is needed.
    public var release: Release

    public init(_ structure: Structure, version: Int, release: Release) {
        self.structure = structure
        self.version = version
        self.release = release
    }

    /// The reason, phrased to follow a colon: `made by Obscura 1.3 (catalogue version 4): needs that or later`.
    public var words: String {
        let isForWriting = structure == .writingFeatures
        if release == .unknown {
            return
                "made by a newer Obscura (\(what)): \(isForWriting ? "only that may change it" : "needs that")"
        }
        let need = isForWriting ? "only that or a later one may change it" : "needs that or later"
        return "made by Obscura \(release.text) (\(what)): \(need)"
    }

    private var what: String {
        switch structure {
        case .header: "vault format version \(version)"
        case .keySlot: "key slot version \(version)"
        case .space: "space format version \(version)"
        case .catalogue: "catalogue version \(version)"
        case .record: "identity record version \(version)"
        case .backupLog: "backup log version \(version)"
        case .features, .writingFeatures: "features 0x\(String(version, radix: 16))"
        }
    }
}

/// The version and features of a space, as a root tells them. See the format specification, *Features*.
///
/// These bytes of a root mean the same in every version: a reader looks at them before any other.
public struct SpaceFormat: Sendable, Hashable {
    /// The version of the root and of everything that it leads to, but for the catalogue's tables and the records.
    public var version: UInt32 = 1
    /// The release that is needed for version and features.
    public var release = Release.unknown
    /// Features that a reader must know.
    public var incompatible: UInt32 = 0
    /// Features that a writer must know.
    public var writing: UInt32 = 0
    /// Features that nobody needs to know. A writer keeps those that it does not know.
    public var compatible: UInt32 = 0

    /// The newest version that this program knows.
    public static let newest: UInt32 = 1
    /// The features that this program knows: none exists yet.
    public static let knownIncompatible: UInt32 = 0
    public static let knownWriting: UInt32 = 0

    public init() {}

    /// - Parameter root: a root's plaintext.
    public init(ofRoot root: UnsafeRawBufferPointer) {
        version = unsafe UInt32(root.number(RootLayout.versionOffset, as: UInt16.self)) + 1
        release = unsafe Release(decoding: root.slice(RootLayout.releaseOffset, Release.storedBytes))
        incompatible = unsafe root.number(RootLayout.incompatibleOffset)
        writing = unsafe root.number(RootLayout.writingFeaturesOffset)
        compatible = unsafe root.number(RootLayout.compatibleOffset)
    }

    public func encode(intoRoot root: UnsafeMutableRawBufferPointer) {
        unsafe root.setNumber(UInt16(version - 1), RootLayout.versionOffset)
        unsafe release.encode(into: root.slice(RootLayout.releaseOffset, Release.storedBytes))
        unsafe root.setNumber(incompatible, RootLayout.incompatibleOffset)
        unsafe root.setNumber(writing, RootLayout.writingFeaturesOffset)
        unsafe root.setNumber(compatible, RootLayout.compatibleOffset)
    }

    /// Why this program cannot read the space; nil if it can.
    public var obstacle: NewerVersion? {
        if version > Self.newest { return NewerVersion(.space, version: Int(version), release: release) }
        let unknown = incompatible & ~Self.knownIncompatible
        return unknown == 0 ? nil : NewerVersion(.features, version: Int(unknown), release: release)
    }

    /// Why this program cannot change the space, though it can read it; nil if it can.
    public var writingObstacle: NewerVersion? {
        let unknown = writing & ~Self.knownWriting
        return unknown == 0 ? nil : NewerVersion(.writingFeatures, version: Int(unknown), release: release)
    }
}
