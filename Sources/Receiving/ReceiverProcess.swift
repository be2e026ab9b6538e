import CShims
import Glibc
import LinuxIO
import ReceiveProtocol

/// The server: a confined process that alone speaks HTTP.
final class ReceiverProcess: @unchecked Sendable {
    /// The server's numbers of its socket to us and of the one that listens.
    private static let socketNumber: Int32 = 3
    private static let listenerNumber: Int32 = 4
    private static let memoryNumber: Int32 = 5
    /// Of the socket: several answers with thumbnails.
    private static let socketBytes: Int32 = 512 << 10

    private static let sendSecondsMax = 10

    private let socket: Int32
    private let process: pid_t
    /// Where the server lays down the bytes of files.
    let pieces: PieceBuffer
    /// SHA-256 of its certificate.
    private(set) var fingerprint: [UInt8] = []
    private let sending = Lock()
    private var isEnded = false

    /// Starts the server and waits for its greeting.
    init(listeningOn listener: Int32) throws(ReceiveError) {
        guard let program = programBeside("obscura-receiver") else {
            throw .noServer
        }
        guard let pieces = PieceBuffer(.ofProcess) else {
            throw Self.failure("making memory for it", .last)
        }
        self.pieces = pieces
        let pair: (ours: Int32, theirs: Int32)
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        do throws(Errno) { pair = try makeSocketPair(SOCK_SEQPACKET) } catch {
            throw Self.failure("making a socket", error)
        }
        defer { close(pair.theirs) }
        for end in [pair.ours, pair.theirs] {
            var bytes = Self.socketBytes
            setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, socklen_t(MemoryLayout<Int32>.size))
        }
        var timeout = timeval(tv_sec: Self.sendSecondsMax, tv_usec: 0)
        setsockopt(pair.ours, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        socket = pair.ours
        do throws(Errno) {
            process = try spawn(
                [program], environment: [backtracerOff] + Self.limitsVariable,
                descriptors: [
                    (null, STDIN_FILENO), (null, STDOUT_FILENO), (null, STDERR_FILENO),
                    (pair.theirs, Self.socketNumber), (listener, Self.listenerNumber),
                    (pieces.descriptor, Self.memoryNumber),
                ], asSession: true)
        } catch {
            close(socket)
            throw Self.failure("starting it", error)
        }
        guard let first = packet(waitMilliseconds: Self.greetingMilliseconds),
            case .ready(let fingerprint)? = first.withUnsafeBytes({ ServerMessage($0) })
        else {
            throw .serverNotReady
        }
        self.fingerprint = fingerprint
    }

    private static func failure(_ doing: String, _ error: Errno) -> ReceiveError {
        .system(what: "obscura-receiver", doing: doing, error)
    }

    private static let greetingMilliseconds: Int32 = 30_000

    /// The limits of this process are the server's too.
    private static var limitsVariable: [String] {
        getenv("OBSCURA_LIMITS").map { ["OBSCURA_LIMITS=" + String(cString: $0)] } ?? []
    }

    deinit {
        end()
        close(socket)
    }

    /// Ends the server at once, with all connections. The thread that receives finds the end of its packets.
    func end() {
        let isFirst = sending.withLock {
            defer { isEnded = true }
            return !isEnded
        }
        guard isFirst else { return }
        kill(process, SIGKILL)
        _ = waitForEnd(of: process)
        shutdown(socket, Int32(SHUT_RDWR))
    }

    /// False once it has ended by itself.
    var isRunning: Bool {
        sending.withLock {
            var info = siginfo_t()
            // Left for `end` to wait for.
            return waitid(P_PID, id_t(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_signo == 0
        }
    }

    /// The next packet; nil if none comes in time.
    private func packet(waitMilliseconds: Int32) -> [UInt8]? {
        var entry = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        guard poll(&entry, 1, waitMilliseconds) > 0 else { return nil }
        var buffer = [UInt8](repeating: 0, count: PacketLimits.packetBytes)
        let count = recv(socket, &buffer, buffer.count, Int32(MSG_TRUNC))
        return count > 0 && count <= buffer.count ? Array(buffer[..<count]) : nil
    }

    /// Calls `body` with each packet until the server is gone.
    func receive(_ body: (UnsafeRawBufferPointer) -> Void) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: PacketLimits.packetBytes, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count = recv(socket, buffer.baseAddress, buffer.count, Int32(MSG_TRUNC))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return }
            // Longer than any packet: no server of ours sends that.
            if count <= buffer.count { body(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        }
    }

    /// Sends a packet; the server always reads. One that is gone gets nothing.
    func send(_ message: ParentMessage) {
        let bytes = message.bytes
        sending.withLock {
            if isEnded { return }
            while Glibc.send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) < 0 {
                if errno == EINTR { continue }
                // It does not read any more, which it always does.
                if errno == EAGAIN { kill(process, SIGKILL) }
                return
            }
        }
    }
}
