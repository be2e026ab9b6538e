internal import Glibc
internal import LinuxIO

/// An event of a running mount, sent to the thread that watches it.
enum ControlEvent: Equatable {
    /// The kernel has the answer to its INIT: requests are served.
    case live
    /// The last worker saw the connection end.
    case ended
    /// This process asked for the unmount.
    case unmountRequested
    /// Another computer asks for the vault.
    case handoverRequested
    /// A signal of that number arrived.
    case signal(Int32)

    private static let liveByte: UInt8 = 200
    private static let endedByte: UInt8 = 201
    private static let unmountByte: UInt8 = 202
    private static let handoverByte: UInt8 = 203

    init(byte: UInt8) {
        switch byte {
        case Self.liveByte: self = .live
        case Self.endedByte: self = .ended
        case Self.unmountByte: self = .unmountRequested
        case Self.handoverByte: self = .handoverRequested
        default: self = .signal(Int32(byte))
        }
    }

    /// A signal is its own number (1 to 64), so that the signal handler need not compute anything.
    var byte: UInt8 {
        switch self {
        case .live: Self.liveByte
        case .ended: Self.endedByte
        case .unmountRequested: Self.unmountByte
        case .handoverRequested: Self.handoverByte
        case .signal(let number): UInt8(number)
        }
    }
}

/// A pipe of one-byte events. Any thread and the signal handler write; one thread reads.
final class ControlPipe: Sendable {
    private let readEnd: Int32
    /// For the signal handler, which may do no more than write(2).
    let writeEnd: Int32

    init() throws(Errno) {
        (readEnd, writeEnd) = try makePipe(isBlocking: false)
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// Never blocks. A full pipe already holds thousands of events, so one more would add nothing.
    func send(_ event: ControlEvent) {
        var byte = event.byte
        _ = write(writeEnd, &byte, 1)
    }

    /// The next event. Nil if none came within that many milliseconds (nil: for ever) or a signal interrupted the wait.
    func next(milliseconds: Int32?) -> ControlEvent? {
        var wanted = pollfd(fd: readEnd, events: Int16(POLLIN), revents: 0)
        guard poll(&wanted, 1, milliseconds ?? -1) > 0 else { return nil }
        var byte: UInt8 = 0
        guard read(readEnd, &byte, 1) == 1 else { return nil }
        return ControlEvent(byte: byte)
    }
}
