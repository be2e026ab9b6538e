public import LinuxIO
import Synchronization

/// Why a space that was opened for writing takes no more writes, until it is opened again.
public enum WriteStop: Sendable, Hashable {
    /// Another mount, of this computer or another, has claimed the space, or has written to it before this one did.
    case claimLost
    /// A segment that is to be written has no file: its number.
    case segmentMissing(Int)
    /// The file of a segment that is to be written ends too early: its number.
    case segmentShort(Int)
    /// The files of some segments have each other's names: their numbers, ascending.
    case segmentsExchanged([Int])
    /// The host refuses durable commits for good.
    case io(Errno)
    /// The user gave up what is not written.
    case givenUp

    /// Whether its cause may be gone, so that writing may be tried once more.
    public var mayPass: Bool {
        switch self {
        case .segmentMissing, .segmentShort, .io: true
        case .claimLost, .segmentsExchanged, .givenUp: false
        }
    }
}

extension Space {
    /// Why nothing more is written; nil while writing goes on.
    public var writeStop: WriteStop? { stop.withLock { $0 } }

    /// Ends writing for good: from now on all that writes throws `StoreError.readOnly`. The first reason stays, but for
    /// `givenUp`, which is the last.
    public func stopWriting(_ reason: WriteStop) {
        stop.withLock { $0 = reason == .givenUp ? reason : $0 ?? reason }
    }

    /// Throws `readOnly` where the space was opened so, or writing has stopped. Claims the space before the first
    /// write.
    func requireWritable() throws(StoreError) {
        if isReadOnly || writeStop != nil { throw .readOnly }
        // Here rather than under the locks that are taken later: a look takes time.
        do throws(StoreError) { try claim?.willWrite() } catch {
            switch error {
            case .io(let number) where number.refusesWriting: stopWriting(.io(number))
            // The file of the claim: what is written to it cannot be found again.
            case .segmentMissing(let number): stopWriting(.segmentMissing(number))
            case .segmentShort(let number): stopWriting(.segmentShort(number))
            default: throw error
            }
            throw .readOnly
        }
    }

    /// Takes writes again after a stop whose cause may be gone. Files are opened anew, and everything written since
    /// the newest durable root is read and written once more before the next one: what was lost fails that commit.
    ///
    /// - Returns: false where the stop is one for good, or there is none.
    public func resumeWriting() -> Bool {
        guard !isReadOnly, writeStop?.mayPass == true else { return false }
        lock.withLock { syncFailed = true }
        files.reopenAll()
        stop.withLock { if $0?.mayPass == true { $0 = nil } }
        return writeStop == nil
    }
}
