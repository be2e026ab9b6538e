/// A mistake that a program like this one could make. The distinguisher makes it on purpose, to show that it is found.
///
/// Each is made in the system calls of tests (`DistinguisherCalls`), or by the player. None is in the program.
public enum Leak: String, CaseIterable, Sendable {
    /// A session that wrote nothing leaves the files' times as they were.
    case looksNotTouched
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

    /// The features of which at least one must find it.
    public var finders: [String] {
        switch self {
        case .looksNotTouched: ["mtime: header - spaces"]
        case .filesOfTheirOwn: ["mtime rank of own files: decoy - others"]
        // Only a host's counters and its journal tell of it.
        case .filesOfTheirOwnLevelled:
            [
                "ext4: Version of own files: decoy - others",
                "ext4: Version of own files: mean of others",
                "ext4: most changes between states of own files: decoy - others",
                "xfs: v3.change_count of own files: decoy - others",
                "xfs: times of own files: decoy - others",
                "xfs: most changes between states of own files: spread",
                "xfs: most nanoseconds between times of own files: decoy - others",
            ]
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
