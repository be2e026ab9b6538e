package import FileRequests
import LinuxIO
import ReceiveProtocol
import VaultCrypto

/// One session of receiving: the server, the inbox for the files that it hands on, and the record of them.
///
/// For one thread, which prepares it, offers tokens, begins it and ends it.
package final class ReceiveSession {
    private let mount: ReceivingMount
    private let server: ReceiverProcess
    private let record: ReceiveRecord
    private let inbox: Inbox
    /// The thread that takes the server's messages, from `begin` on.
    private var receiving: JobQueue?
    private lazy var watch = MountWatch(mount)

    /// Starts the server.
    ///
    /// - Parameters:
    ///   - album: the names below `albums`; the directory is there.
    ///   - listener: a socket that listens, see `ListeningAddress.listen`.
    package init(
        _ mount: ReceivingMount, album: [Name], listeningOn listener: Int32
    ) throws(ReceiveError) {
        self.mount = mount
        server = try ReceiverProcess(listeningOn: listener)
        let limits = ReceiveLimits.ofProcess
        record = ReceiveRecord(limits)
        inbox = Inbox(mount, album: album, limits, server.pieces, record: record) { [server] in
            server.send($0)
        }
    }

    /// The words that the page shows, from the certificate's SHA-256.
    package var words: String { fingerprintWords(server.fingerprint) }

    /// The certificate's SHA-256, as browsers show it.
    package var fingerprint: String { fingerprintText(server.fingerprint) }

    /// Removes old working files and lets the server answer. Returns the password for WebDAV; empty without WebDAV.
    package func prepare(offersWebDAV: Bool) -> String {
        inbox.removeOldWorkingFiles(now: .now())
        let password = offersWebDAV ? SecretText.text(randomSecret()) : ""
        server.send(.start(words: Array(words.utf8), password: Array(password.utf8)))
        return password
    }

    /// A new secret for a device's link; the server no longer takes the one before.
    package func newToken() -> String {
        let token = randomSecret()
        server.send(.token(token))
        return SecretText.text(token)
    }

    private func randomSecret() -> [UInt8] {
        var secret = [UInt8](repeating: 0, count: PacketLimits.secretBytes)
        secret.withUnsafeMutableBytes { fillRandom($0) }
        return secret
    }

    /// Receives on a thread of its own, until `end`.
    package func begin() {
        let (server, inbox) = (server, inbox)
        let queue = JobQueue()
        queue.add {
            server.receive { packet in
                if let message = ServerMessage(packet) { inbox.take(message) }
            }
            inbox.close()
        }
        receiving = queue
    }

    /// Ends the server, and returns when the files that it handed on are finished.
    package func end() {
        server.end()
        receiving?.close()
    }

    /// False once the server has ended by itself.
    package var isServerRunning: Bool { server.isRunning }

    /// Whether the space is still mounted and its process lives. Does not wait for that process.
    package var isMounted: Bool { mount.isThere && watch.answers }

    /// The files and bytes so far.
    package var counts: ReceiveCounter.Counts { record.counts }

    /// Whether something came since the last call.
    package func takeActivity() -> Bool { record.takeActivity() }

    /// The failures since the last call, a line each.
    package func takeProblems() -> [String] { record.takeProblems() }
}
