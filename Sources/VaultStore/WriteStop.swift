public import LinuxIO
import Synchronization
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
        case .claimLost, .segmentsExchanged, .olderState, .givenUp, .newer, .noRoomToUpdate: false
        }
    }
}

extension Space {
    /// Why writing has stopped; nil while it goes on.
    public var writeStop: WriteStop? { stop.withLock { $0 } }

    /// Features of the space because of which this program must not change it; nil if there are none.
    var formatStop: WriteStop? { current.format.writingObstacle.map { .newer($0) } }

    /// Stops writing: from now on all writes throw `StoreError.readOnly`. The first reason stays, except that `givenUp`
    /// replaces it.
    public func stopWriting(_ reason: WriteStop) {
        stop.withLock { $0 = reason == .givenUp ? reason : $0 ?? reason }
    }

    /// Throws `readOnly` if the space was opened for reading or writing has stopped. Claims the space before the first
    /// write.
    func requireWritable() throws(StoreError) {
        if isReadOnly || writeStop != nil { throw .readOnly }
        // Here rather than under the locks taken later: checking the claim takes time.
        do throws(StoreError) { try claim?.willWrite() } catch {
            switch error {
            case .io(let number) where number.refusesWriting: stopWriting(.io(number))
            // The claim's own file: bytes written to it could not be found again.
            case .segmentMissing(let number): stopWriting(.segmentMissing(number))
            case .segmentShort(let number): stopWriting(.segmentShort(number))
            case .newer(let version): stopWriting(.newer(version))
            default: throw error
            }
            throw .readOnly
        }
    }

    /// Accepts writes again after a stop whose cause may have passed. Files are reopened, and everything written since
    /// the newest durable root is read and rewritten before the next one. If some of it was lost, that commit fails.
    ///
    /// - Returns: false if the stop is permanent, or there is none.
    public func resumeWriting() -> Bool {
        guard !isReadOnly, writeStop?.mayPass == true else { return false }
        lock.withLock { syncFailed = true }
        files.reopenAll()
        stop.withLock { if $0?.mayPass == true { $0 = nil } }
        return writeStop == nil
    }
}
