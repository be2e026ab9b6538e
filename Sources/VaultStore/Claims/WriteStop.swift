public import LinuxIO
public import VaultFormat

/// Why an open space takes no more writes until it is opened again.
public enum WriteStop: Sendable, Hashable {
    /// Another mount, of this computer or another, has claimed the space, or wrote to it before this one did.
    case claimLost
    /// A segment to be written has no file: its number.
    case segmentMissing(Int)
    /// The file of a segment to be written is too short: its number.
    case segmentShort(Int)
    /// The files of some segments have exchanged names: their numbers, ascending.
    case segmentsExchanged([Int])
    /// The newest state cannot be read, and writing to the older one that is open could lose it for good; the segment
    /// whose file is the reason, if one is.
    case olderState(SegmentFault?)
    /// The host refuses durable commits for good.
    case io(Errno)
    /// The host takes whole files only.
    case notInPlace
    /// The user gave up the unwritten changes.
    case givenUp
    /// The space has features without which it must not be changed, or a later release has changed it meanwhile.
    case newer(NewerVersion)
    /// The space has no room for bringing an older catalogue up to date.
    case noRoomToUpdate

    /// Whether the cause may pass, so that writing may be retried.
    var mayPass: Bool {
        switch self {
        case .segmentMissing, .segmentShort, .io: true
        case .claimLost, .segmentsExchanged, .olderState, .notInPlace, .givenUp, .newer, .noRoomToUpdate:
            false
        }
    }
}
