internal import CShims
internal import Glibc
internal import ReceiveProtocol

/// The server's end of the socket to its parent (SOCK_SEQPACKET). Nothing here waits.
struct ParentChannel {
    /// Inherited under this number.
    static let descriptor: Int32 = 3

    /// Packets that did not fit. Each connection adds at most a few short ones: bytes of files wait with their clients.
    private var pending: [[UInt8]] = []
    private(set) var isBroken = false

    /// Whether a packet waits to be sent.
    var isFull: Bool { !pending.isEmpty }

    /// Sends a packet now or later.
    mutating func send(_ message: ServerMessage) {
        let bytes = message.bytes
        if isFull || !bytes.withUnsafeBytes({ sendNow([$0]) }) { pending.append(bytes) }
    }

    /// Sends bytes of an upload. False if that has to wait.
    mutating func send(data: UnsafeRawBufferPointer, of id: RequestID) -> Bool {
        if isFull { return false }
        return ServerMessage.dataHeader(id).withUnsafeBytes { sendNow([$0, data]) }
    }

    /// Sends what waits. False if it has to wait on.
    mutating func flush() -> Bool {
        while let next = pending.first, next.withUnsafeBytes({ sendNow([$0]) }) { pending.removeFirst() }
        return pending.isEmpty
    }

    private mutating func sendNow(_ parts: [UnsafeRawBufferPointer]) -> Bool {
        var vectors = parts.map {
            iovec(iov_base: UnsafeMutableRawPointer(mutating: $0.baseAddress), iov_len: $0.count)
        }
        let result = vectors.withUnsafeMutableBufferPointer { vectors in
            var message = msghdr()
            message.msg_iov = vectors.baseAddress
            message.msg_iovlen = vectors.count
            var result = 0
            repeat {
                result = sendmsg(
                    Self.descriptor, &message, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            } while result < 0 && errno == EINTR
            return result
        }
        if result < 0, errno != EAGAIN, errno != ENOBUFS { isBroken = true }
        return result >= 0 || isBroken
    }

    /// The next packet; nil if there is none now. `isBroken` says if there will never be one.
    mutating func receive(into buffer: UnsafeMutableRawBufferPointer, waiting: Bool = false) -> ParentMessage?
    {
        var count = 0
        repeat {
            count = recv(
                Self.descriptor, buffer.baseAddress, buffer.count, waiting ? 0 : Int32(MSG_DONTWAIT))
        } while count < 0 && errno == EINTR
        if count < 0, errno == EAGAIN { return nil }
        guard count > 0,
            let message = ParentMessage(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        else {
            isBroken = true
            return nil
        }
        return message
    }
}
