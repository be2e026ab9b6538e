internal import LinuxIO

/// The thread of some program whose request waits for a picture.
final class InterruptibleCaller: Sendable {
    /// Called off when the thread is being killed.
    let cancellation = Cancellation()
    private let thread: Int32

    /// - Parameter thread: its number; 0 where it is in a namespace whose numbers are not ours.
    init(thread: Int32) { self.thread = thread }

    static func from(_ userData: UnsafeMutableRawPointer?) -> InterruptibleCaller {
        Unmanaged<InterruptibleCaller>.fromOpaque(userData!).takeUnretainedValue()
    }

    /// The thread got a signal (FUSE_INTERRUPT).
    ///
    /// One that it handles is no reason to fail: what has a handler for SIGCHLD or SIGALRM and calls stat(2) is not
    /// prepared for EINTR, which the kernel passes on even where the handler has SA_RESTART.
    func noteSignal() {
        if isBeingKilled { cancellation.cancel() }
    }

    /// Whether SIGKILL is pending, which the kernel gives each thread of a process that any signal kills
    /// (proc(5), *SigPnd*). True where that cannot be told.
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
