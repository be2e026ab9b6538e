public import LinuxIO
import Synchronization

/// Why a space that was opened for writing takes no more writes, until it is opened again.
public enum WriteStop: Sendable, Hashable {
    /// Another mount, of this computer or another, has claimed the space, or has written to it before this one did.
    case claimLost
    /// A segment that the catalogue's pages lie in has no file, or one that ends too early: its number.
    case segmentMissing(Int)
    /// The host refuses durable commits for good.
    case io(Errno)
}

extension Space {
    /// Why nothing more is written; nil while writing goes on.
    public var writeStop: WriteStop? { stop.withLock { $0 } }

    /// Ends writing for good: from now on all that writes throws `StoreError.readOnly`. The first reason stays.
    public func stopWriting(_ reason: WriteStop) { stop.withLock { $0 = $0 ?? reason } }

    /// Throws `readOnly` where the space was opened so, or writing has stopped. Claims the space before the first
    /// write.
    func requireWritable() throws(StoreError) {
        if isReadOnly || writeStop != nil { throw .readOnly }
        // Here rather than under the locks that are taken later: a look takes time.
        try claim?.willWrite()
    }
}
