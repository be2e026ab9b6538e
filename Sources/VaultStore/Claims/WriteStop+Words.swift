import LinuxIO
import VaultFormat

extension WriteStop {
    /// The reason, phrased to follow a colon: `segment 000000 is missing`.
    public var reason: String {
        switch self {
        case .claimLost: "another mount has taken the space over"
        case .segmentMissing(let number): SegmentFault.missing(number).text
        case .segmentShort(let number): SegmentFault.short(number).text
        case .segmentsExchanged(let numbers): Self.exchanged(numbers)
        case .olderState(let fault):
            "the newest state of the space cannot be read\(fault.map { " (\($0.text))" } ?? ""): an older one is shown"
        case .io(.readOnlyFileSystem): "the vault's disk is read-only"
        case .io(let error) where error.refusesWriting: "the vault's files may not be written (\(error))"
        case .io(let error): "the vault's disk takes no more writes (\(error))"
        case .notInPlace: "files cannot be changed in place there"
        case .givenUp: "the unwritten changes were discarded"
        case .newer(let version): version.words
        case .noRoomToUpdate: "the space is full, and its catalogue is of an older release"
        }
    }

    /// Advice for the user; nil if nothing helps.
    ///
    /// - Parameters:
    ///   - vault: its path, as the user types it.
    ///   - isMounted: whether the space is mounted.
    public func advice(vault: String, isMounted: Bool) -> String? {
        switch self {
        case .segmentMissing, .segmentShort:
            (isMounted ? "unmount it, " : "") + "put it back from a backup if there is one, "
                + "then run obscura check \(vault) --repair"
        case .segmentsExchanged, .olderState:
            (isMounted ? "unmount it, then run" : "run") + " obscura check \(vault) --repair"
        case .claimLost: "unmount it, and mount it again when the other mount has ended"
        case .io(.readOnlyFileSystem): "make the disk writable"
        case .io(let error) where error.refusesWriting: "check the owner and mode of the vault's files"
        case .io: "check the disk"
        case .notInPlace: "copy the vault to a disk, NFS, SMB or CephFS"
        case .noRoomToUpdate: (isMounted ? "unmount it, then run" : "run") + " obscura grow \(vault) SIZE"
        case .givenUp, .newer: nil
        }
    }

    /// `segments 5 and 9 are exchanged`.
    static func exchanged(_ numbers: [Int]) -> String {
        let names = numbers.map(String.init)
        guard let last = names.last else { return "segments are exchanged" }
        if names.count == 1 { return "segment \(last) has the name of another" }
        return "segments \(names.dropLast().joined(separator: ", ")) and \(last) are exchanged"
    }
}
