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
        if thread <= 0 || isThreadKilled(thread) != false { cancellation.cancel() }
    }
}

/// Whether a thread is being killed, or has called exit(2) and closes its files. False if that cannot be told.
func isThreadEnding(_ thread: Int32) -> Bool {
    if isThreadKilled(thread) == true { return true }
    return contents(ofFile: "/proc/\(thread)/stat").map { isExiting(stat: $0) } ?? false
}

/// Whether SIGKILL is pending, which the kernel sends to each thread of a process that any signal kills (proc(5),
/// *SigPnd*). Nil if that cannot be told.
private func isThreadKilled(_ thread: Int32) -> Bool? {
    guard let status = contents(ofFile: "/proc/\(thread)/status") else { return nil }
    let label = "SigPnd:"
    let lines = String(decoding: status, as: UTF8.self).split(separator: "\n")
    let line = lines.first { $0.hasPrefix(label) }
    let digits = line?.dropFirst(label.count).drop { $0 == " " || $0 == "\t" } ?? ""
    return UInt64(digits, radix: 16).map { $0 & killed != 0 }
}

/// SIGKILL, 9, in a mask whose lowest bit is signal 1.
private let killed: UInt64 = 1 << 8

/// Whether /proc/TID/stat is that of a thread that is ending, and has not ended.
func isExiting(stat: [UInt8]) -> Bool {
    // The program's name, before the last parenthesis, may have any bytes. Then come state, five numbers, and flags.
    guard let end = stat.lastIndex(of: UInt8(ascii: ")")) else { return false }
    let fields = String(decoding: stat[(end + 1)...], as: UTF8.self).split(separator: " ")
    guard fields.count > 6, let flags = UInt64(fields[6]), !["Z", "X"].contains(fields[0]) else {
        return false
    }
    return flags & exiting != 0
}

/// PF_EXITING of linux/sched.h.
private let exiting: UInt64 = 0x4
