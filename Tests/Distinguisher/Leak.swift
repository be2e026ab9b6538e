/// A mistake that a program like this one could make. The distinguisher makes it on purpose, to show that it is found.
///
/// Each is made in the system calls of tests (`DistinguisherCalls`), or by the player. None is in the program.
public enum Leak: String, CaseIterable, Sendable {
    /// Times are set at the beginning and the end of a session only: the host's journal shows the commits in between.
    case withoutCoverTraffic
    /// A session writes what it has to write, and a new vault is written once: hosts count all bytes ever written.
    case withoutCoverWrites
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

    /// Whether it is among the facts told.
    public func isFound(by told: some Sequence<String>) -> Bool {
        told.contains { name in
            finders.contains(name)
                || (name.hasPrefix("ext4: ") || name.hasPrefix("xfs: "))
                    && (self == .filesOfTheirOwnLevelled && name.contains(" of own files")
                        || self == .withoutCoverTraffic && name.hasSuffix(" of spaces"))
        }
    }

    /// The features of which at least one must find it.
    private var finders: [String] {
        switch self {
        case .filesOfTheirOwn: ["mtime rank of own files: decoy - others"]
        // Only a host's counters and its journal tell of it, many of them a little.
        case .filesOfTheirOwnLevelled, .withoutCoverTraffic: []
        case .withoutCoverWrites: [bytesWrittenFeature, bytesOfDiskFeature]
        case .slotsInOrder: ["slot of the decoy"]
        case .growsAlone: ["bytes behind the last row"]
        case .zerosInNewSegments: ["zero sectors: mean of others"]
        case .holesInNewSegments: ["bytes in holes: mean of others"]
        case .repeatedFill: ["pages as in the same segment: mean of others"]
        case .counterInHeader: [headerBytesFeature]
        }
    }
}

/// The names of the bytes that were written, by the program and to the whole disk.
let bytesWrittenFeature = "bytes written, less those that the decoy explains"
let bytesOfDiskFeature = "ext4: bytes ever written, less those that the decoy explains"

/// The name under which the worst byte of the header is reported.
let headerBytesFeature = "every byte of the header"
