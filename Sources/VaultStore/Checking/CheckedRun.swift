public import LinuxIO
public import VaultFormat

/// A run of extents to check, with its content.
public struct CheckedRun: Sendable, Hashable {
    public var content: UInt64
    /// Whether it is an identity record: these have their own numbering.
    public var isRecord: Bool
    public var run: ExtentRun

    public init(content: UInt64, isRecord: Bool = false, run: ExtentRun) {
        self.content = content
        self.isRecord = isRecord
        self.run = run
    }

    /// The roles that its extents may have.
    var roles: [ExtentRole] { isRecord ? [.identity] : [.content, .thumbnail] }

    public var key: ContentKey { ContentKey(content: content, isRecord: isRecord) }

    /// Leaves out rows of extents that the row before is of too: snapshots have those of their source.
    ///
    /// - Parameter runs: by sector.
    public static func withoutSame(_ runs: [CheckedRun]) -> [CheckedRun] {
        var left: [CheckedRun] = []
        for run in runs where left.last.map({ !run.isSame(as: $0) }) ?? true { left.append(run) }
        return left
    }

    /// Whether both are the same extents, by rows of a content and its snapshot, or of two of its snapshots.
    func isSame(as other: CheckedRun) -> Bool {
        run == other.run && content != other.content && !isRecord && !other.isRecord
            && SnapshotID.source(content) == SnapshotID.source(other.content)
    }
}

/// The content of an extent. Identity records have their own numbering.
public struct ContentKey: Sendable, Hashable {
    public var content: UInt64
    public var isRecord: Bool

    public init(content: UInt64, isRecord: Bool = false) {
        self.content = content
        self.isRecord = isRecord
    }
}

/// The fault of an extent.
public enum ExtentFault: Sendable, Hashable {
    /// Its bytes cannot be authenticated.
    case unauthentic
    /// The descriptor there is another extent's.
    case another
    /// Its segment's file is missing or too short.
    case segment(SegmentFault)
    /// The disk cannot read its bytes.
    case unreadable(Errno)
    /// The payload is intact, but its descriptor is not: it is needed if the catalogue is lost.
    case descriptor(ExtentRole)
    /// The catalogue's row gives a place where no extent can lie.
    case impossible
    /// The catalogue's row stands for lost bytes.
    case lost
}

/// Consecutive chunks of a content with the same fault.
public struct ExtentDamage: Sendable, Hashable {
    public var content: UInt64
    /// See `CheckedRun.isRecord`.
    public var isRecord: Bool
    /// First plaintext byte in the content.
    public var offset: UInt64
    public var length: UInt64
    /// First sector of the first chunk.
    public var sector: UInt64
    public var fault: ExtentFault

    public var key: ContentKey { ContentKey(content: content, isRecord: isRecord) }

    /// The sectors of the chunks; nil if they have none, or may have none.
    public var sectors: Range<UInt64>? {
        switch fault {
        case .lost, .impossible, .segment: return nil
        case .unauthentic, .another, .unreadable, .descriptor:
            let run = ExtentRun(offset: offset, length: length, sector: sector, generation: 0, epoch: 0)
            return length > 0 ? sector..<run.endSector : nil
        }
    }
}
