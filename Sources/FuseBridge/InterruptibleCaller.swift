internal import LinuxIO

/// The thread of a client program whose request may take long.
final class InterruptibleCaller: Sendable {
    /// Cancelled when the thread is being killed.
    let cancellation = Cancellation()
    private let thread: Int32

    /// - Parameter thread: its thread ID; 0 if it is in a pid namespace whose IDs are not ours.
    init(thread: Int32) { self.thread = thread }

    static func from(_ userData: UnsafeMutableRawPointer?) -> InterruptibleCaller {
        Unmanaged<InterruptibleCaller>.fromOpaque(userData!).takeUnretainedValue()
    }

    /// Handles FUSE_INTERRUPT: the thread received a signal.
    ///
    /// A signal that the program handles is no reason to fail. A program with a handler for SIGCHLD or SIGALRM that
    /// calls stat(2) is not prepared for EINTR, which the kernel passes on even if the handler has SA_RESTART.
    func noteSignal() {
        if isBeingKilled { cancellation.cancel() }
    }

    /// Whether SIGKILL is pending, which the kernel sends to each thread of a process that any signal kills (proc(5),
    /// *SigPnd*). True if that cannot be told.
    private var isBeingKilled: Bool {
        guard thread > 0, let status = contents(ofFile: "/proc/\(thread)/status") else { return true }
        let label = "SigPnd:"
        let lines = String(decoding: status, as: UTF8.self).split(separator: "\n")
        let line = lines.first { $0.hasPrefix(label) }
        let digits = line?.dropFirst(label.count).drop { $0 == " " || $0 == "\t" } ?? ""
        guard let signals = UInt64(digits, radix: 16) else { return true }
        return signals & Self.killed != 0
    }

    /// SIGKILL, 9, in a mask whose lowest bit is signal 1.
    private static let killed: UInt64 = 1 << 8
}
