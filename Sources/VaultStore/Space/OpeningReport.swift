import VaultFormat

/// A state of a space that could not be read.
struct UnreadableState: Sendable {
    var generation: UInt64
    /// Whether it was durable. No crash makes such a state unreadable.
    var isDurable: Bool
    var error: StoreError

    /// Whether writing to an older state could lose it for good: it was durable, or the error may pass. A soft state
    /// with bytes that do not open is one whose disk was cut off.
    var mustStay: Bool { isDurable || error != .damaged }
}

extension UnreadableState {
    init(_ root: RootRecord, _ error: StoreError, _ disk: SpaceDisk) {
        self.init(generation: root.generation, isDurable: root.isDurable, error: error)
        guard error == .damaged else { return }
        // A page in a missing segment does not open.
        let missing = root.pairs.flatMap { [Int($0.a), Int($0.b)] }.first { !disk.exists($0) }
        if let missing { self.error = .segmentMissing(missing) }
    }
}

/// How the newest state of a space was found, and which newer ones or roots were not.
public struct OpeningReport: Sendable {
    /// Unreadable states that are newer than the opened one.
    let unreadable: [UnreadableState]
    /// The error of the disk because of which neither copy of some root can be read.
    var rootError: StoreError?
    /// The root copy, 0 or 1, of which no root opens at its place; nil if there is none.
    var missingRootCopy: Int?
    /// Whether the newest root of a closed space is lost: a delta is newer than all roots found.
    public internal(set) var hasLostNewestRoot = false

    init(unreadable: [UnreadableState]) { self.unreadable = unreadable }

    /// Whether at least one root has both copies, so that mounts may write.
    public var missesNoRoots: Bool { missingRootCopy == nil }
    /// Whether newer states than the opened one, or roots that may be theirs, could not be read.
    public var hasUnreadableStates: Bool { !unreadable.isEmpty || rootError != nil }
    /// Whether a newer state than the opened one existed.
    public var isOlderState: Bool { hasUnreadableStates || hasLostNewestRoot }
    /// Whether writing could lose a newer state for good.
    var mustKeepNewerState: Bool { rootError != nil || unreadable.contains(where: \.mustStay) }
    /// The fault of a segment because of which the newest state cannot be read; nil if it is another reason.
    public var newestStateFault: SegmentFault? {
        unreadable.lazy.compactMap { SegmentFault($0.error) }.first
    }
}
