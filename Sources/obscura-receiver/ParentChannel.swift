internal import CShims
internal import Glibc
internal import ReceiveProtocol

/// The server's end of the socket to its parent (SOCK_SEQPACKET). No call here blocks.
struct ParentChannel {
    /// Inherited under this number.
    static let descriptor: Int32 = 3

    /// Packets that did not fit. Each connection adds at most a few short ones, and each piece one.
    private var pending: [[UInt8]] = []
    private(set) var isBroken = false

    /// Whether a packet waits to be sent.
    var isFull: Bool { !pending.isEmpty }

    /// Sends a packet now or later.
    mutating func send(_ message: ServerMessage) {
        let bytes = message.bytes
        if isFull || !sendNow(bytes) { pending.append(bytes) }
    }

    /// Sends what waits, as far as it fits now.
    mutating func flush() {
        while let next = pending.first, sendNow(next) { pending.removeFirst() }
    }

    /// False if the packet does not fit now.
    private mutating func sendNow(_ packet: [UInt8]) -> Bool {
        var result = 0
        repeat {
            result = Glibc.send(
                Self.descriptor, packet, packet.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
        } while result < 0 && errno == EINTR
        if result < 0, errno != EAGAIN, errno != ENOBUFS { isBroken = true }
        return result >= 0 || isBroken
    }

    /// The next packet; nil if none has arrived. `isBroken` is set once none can arrive.
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
