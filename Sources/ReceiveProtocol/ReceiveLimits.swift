import Glibc

/// Bounds of `obscura receive`, of both its processes.
///
/// They are passed in, so that tests can use `least`: a bound that no test reaches hides bugs.
package struct ReceiveLimits: Sendable, Hashable {
    /// Connections at a time; a new one takes the place of the oldest that has not shown a cookie or a password.
    package var connections = 64
    /// Memory of a connection for its headers and what it has sent, in bytes; libmicrohttpd's.
    package var connectionBytes = 48 << 10
    /// Bytes that the kernel may hold of a connection that the server does not read at once.
    package var strangerBufferBytes: Int32 = 64 << 10
    /// The same while a file comes.
    package var uploadBufferBytes: Int32 = 512 << 10
    /// Seconds without a byte after which a connection is closed.
    package var idleSeconds: UInt32 = 60
    /// Seconds within which a connection must show a cookie or a password.
    package var strangerSeconds = 20
    /// Devices that have exchanged a code.
    package var devices = 16
    /// Uploads in progress.
    package var uploads = 16
    /// Bytes of an upload that are collected for one write: a piece of the memory that both processes share.
    package var pieceBytes = 512 << 10
    /// Pieces in that memory: more than uploads, each of which may hold one that it has not filled.
    package var pieces = 24
    /// Received files that a device is shown again.
    package var recentFiles = 24
    /// Files whose progress is counted, each of them once.
    package var countedFiles = 20_000
    /// Names that WebDAV clients have added, which alone they are shown.
    package var addedNames = 20_000

    package init() {}

    /// `least` in a debug build with `OBSCURA_LIMITS=least` in its environment.
    package static let ofProcess: ReceiveLimits = {
        #if DEBUG
            if let name = unsafe getenv("OBSCURA_LIMITS"), unsafe String(cString: name) == "least" {
                return .least
            }
        #endif
        return ReceiveLimits()
    }()

    /// The least with which one device can send.
    package static var least: ReceiveLimits {
        var limits = ReceiveLimits()
        limits.connections = 8
        limits.connectionBytes = 16 << 10
        limits.devices = 2
        limits.uploads = 2
        limits.pieceBytes = 4096
        limits.pieces = 3
        limits.recentFiles = 2
        limits.countedFiles = 4
        limits.addedNames = 8
        return limits
    }
}

/// Bounds that are part of the protocol between the two processes.
package enum PacketLimits {
    /// Bytes of the body of a question or an answer.
    package static let bodyBytes = 96 << 10
    /// Bytes of a name.
    package static let nameBytes = 255
    /// Names in a path.
    package static let depth = 16
    /// Everything else in a packet.
    package static let headerBytes = 8192
    package static let packetBytes = bodyBytes + headerBytes
    /// SHA-256.
    package static let digestBytes = 32
    /// Tokens, cookies, devices' numbers.
    package static let secretBytes = 16
}
