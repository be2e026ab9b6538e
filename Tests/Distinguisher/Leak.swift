/// A mistake that a program like this one could make. The distinguisher makes it on purpose, to show that it is found.
///
/// Each is made in the system calls of tests (`DistinguisherCalls`), or by the player. None is in the program.
public enum Leak: String, CaseIterable, Sendable {
    /// A session that wrote nothing leaves the files' times as they were.
    case looksNotTouched
    /// Times are set while there are requests only, and the access time with them. So a write's commit, which comes
    /// some seconds after the last request, leaves a state of its own in the host's journal.
    case touchedWithRequests
    /// Each space has a file of its own, whose time is that of its last write.
    case filesOfTheirOwn
    /// Each space has a file of its own. Their times are set alike at the end of each session.
    case filesOfTheirOwnLevelled
    /// The first password gets the first slot, the next one the next.
    case slotsInOrder
    /// A space that is in use gets another segment at the end of the file, the others do not.
    case growsAlone
    /// New segments begin with zeros.
    case zerosInNewSegments
    /// New segments have holes.
    case holesInNewSegments
    /// New segments are filled with the same random bytes again and again.
    case repeatedFill
    /// The header counts how often a space was added to it.
    case counterInHeader

    /// Whether it is among what was told.
    public func isFound(by told: some Sequence<String>) -> Bool {
        told.contains { name in
            finders.contains(name)
                || self == .filesOfTheirOwnLevelled && name.contains(" of own files")
                    && (name.hasPrefix("ext4: ") || name.hasPrefix("xfs: "))
        }
    }

    /// The features of which at least one must find it.
    private var finders: [String] {
        switch self {
        case .looksNotTouched: ["mtime: header - spaces"]
        case .filesOfTheirOwn: ["mtime rank of own files: decoy - others"]
        case .touchedWithRequests:
            ["ext4", "xfs"].flatMap { host in
                (1...6).map { "\(host): mtime - atime, \($0) from the end of spaces" }
                    + ["\(host): states with mtime - atime of spaces"]
            }
        // Only a host's counters and its journal tell of it, many of them a little.
        case .filesOfTheirOwnLevelled: []
        case .slotsInOrder: ["slot of the decoy"]
        case .growsAlone: ["bytes behind the last row"]
        case .zerosInNewSegments: ["zero sectors: mean of others"]
        case .holesInNewSegments: ["bytes in holes: mean of others"]
        case .repeatedFill: ["pages as in the same segment: mean of others"]
        case .counterInHeader: [headerBytesFeature]
        }
    }
}

/// The name under which the worst byte of the header is reported.
let headerBytesFeature = "every byte of the header"
