/// A mistake that a program like this one could make. The game plays with it on purpose, to show that it is found.
///
/// Each is made where tests may meddle: in the system calls (`GameCalls`), or by the player. None is in the program.
public enum Leak: String, CaseIterable, Sendable {
    /// Files keep the times of their last write.
    case timesNotTouched
    /// All get the same times, but those of the space that was written get them last.
    case timesInOrder
    /// The first password gets the first slot, the next one the next.
    case slotsInOrder
    /// A space that is in use gets another segment, the others do not.
    case growsAlone
    /// New segments begin with zeros.
    case zerosInNewSegments
    /// New segments have holes.
    case holesInNewSegments
    /// New segments are filled with the same random bytes again and again.
    case repeatedFill
    /// The header counts how often it was written.
    case counterInHeader

    /// The features of which at least one must find it.
    public var finders: [String] {
        switch self {
        case .timesNotTouched: ["mtime rank: decoy - others"]
        case .timesInOrder: ["ctime: files of one other space at the end"]
        case .slotsInOrder: ["slot of the decoy"]
        case .growsAlone: ["segments: others apart", "segments: decoy - others"]
        case .zerosInNewSegments: ["zero sectors: mean of others"]
        case .holesInNewSegments: ["blocks: mean of others"]
        case .repeatedFill: ["pages as in the same segment: mean of others"]
        case .counterInHeader: [headerBytesFeature]
        }
    }
}

/// The name under which the worst byte of the header is reported.
let headerBytesFeature = "every byte of the header"
