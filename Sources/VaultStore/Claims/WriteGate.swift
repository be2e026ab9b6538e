import LinuxIO
import Synchronization

/// Decides whether a space may be written: it was opened for writing, nothing has stopped that, and its claim is held.
final class WriteGate: Sendable {
    let isReadOnly: Bool
    /// Nil if nothing is written, and in tests of the space alone.
    let claim: ClaimKeeper?
    private let stop = Mutex<WriteStop?>(nil)

    init(isReadOnly: Bool, claim: ClaimKeeper?) { (self.isReadOnly, self.claim) = (isReadOnly, claim) }

    /// Why writing has stopped; nil while it goes on.
    var stopped: WriteStop? { stop.withLock { $0 } }

    /// Stops writing: from now on all writes throw `StoreError.readOnly`. The first reason stays, except that `givenUp`
    /// replaces it.
    func close(for reason: WriteStop) {
        stop.withLock { $0 = reason == .givenUp ? reason : $0 ?? reason }
    }

    /// Allows writing again if the reason may have passed. Returns whether nothing stops it now.
    func reopen() -> Bool {
        stop.withLock {
            if $0?.mayPass == true { $0 = nil }
            return $0 == nil
        }
    }

    /// Throws `readOnly` if the space was opened for reading or writing has stopped. Claims the space before the first
    /// write. No lock is held: checking the claim takes time.
    func requireOpen() throws(StoreError) {
        if isReadOnly || stopped != nil { throw .readOnly }
        do throws(StoreError) { try claim?.willWrite() } catch {
            switch error {
            case .io(let number) where number.refusesWriting: close(for: .io(number))
            // The claim's own file: bytes written to it could not be found again.
            case .segmentMissing(let number): close(for: .segmentMissing(number))
            case .segmentShort(let number): close(for: .segmentShort(number))
            case .newer(let version): close(for: .newer(version))
            default: throw error
            }
            throw .readOnly
        }
    }

    /// Checks the claim, right before a root is written and before a commit is reported as durable.
    func verifyClaim() throws(StoreError) { try claim?.verify() }
}
