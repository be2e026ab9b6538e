import Glibc
import LinuxIO
import VaultCrypto

/// The terminal from which the program was started, with any standard streams.
final class Terminal {
    private let descriptor: Int32

    /// Nil if there is none, as under cron or systemd.
    init?() {
        descriptor = open("/dev/tty", O_RDWR | O_CLOEXEC)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Writes a sentence of the dialogue.
    func tell(_ text: String) { writeText(text + "\n", to: descriptor) }

    /// A line that the user types, without its newline; nil at the end of input.
    func ask(_ prompt: String) throws(Failure) -> String? {
        writeText(prompt, to: descriptor)
        guard let answer = try line() else { return nil }
        return answer.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
    }

    /// A line typed without echo; nil at the end of input. The terminal is restored on return and by ^C.
    func askSecret(_ prompt: String) throws(Failure) -> SecretBytes? {
        try withoutEcho { () throws(Failure) in
            writeText(prompt, to: descriptor)
            defer { writeText("\n", to: descriptor) }
            guard let secret = try line() else { return nil }
            guard secret.count < Self.lineBytesMax else {
                throw Failure(
                    .usage, "/dev/tty",
                    "a password typed here has at most \(Self.lineBytesMax - 1) bytes: give it with --password-file"
                )
            }
            return secret
        }
    }

    /// Runs `body`, which shows nothing that is typed meanwhile. The terminal is restored on return and by ^C.
    func withoutEcho<R>(_ body: () throws(Failure) -> R) throws(Failure) -> R {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else {
            throw Failure("/dev/tty", "turning off its echo", .last)
        }
        var silent = Self.silent(settings)
        return try restoringOnInterruption(terminal: descriptor, settings: settings) { () throws(Failure) in
            guard tcsetattr(descriptor, TCSADRAIN, &silent) == 0 else {
                throw Failure("/dev/tty", "turning off its echo", .last)
            }
            defer { tcsetattr(descriptor, TCSADRAIN, &settings) }
            return try body()
        }
    }

    /// The same for a body that asks for nothing: it runs also where the echo cannot be turned off.
    func hushing<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { return try body() }
        var silent = Self.silent(settings)
        return try restoringOnInterruption(terminal: descriptor, settings: settings) { () throws(E) in
            tcsetattr(descriptor, TCSADRAIN, &silent)
            defer { tcsetattr(descriptor, TCSADRAIN, &settings) }
            return try body()
        }
    }

    private static func silent(_ settings: termios) -> termios {
        var silent = settings
        silent.c_lflag &= ~tcflag_t(ECHO | ECHOE | ECHOK | ECHONL)
        silent.c_lflag |= tcflag_t(ICANON | ISIG)
        // ^Z would leave the shell with a terminal that does not echo, so it is disabled. 0 is _POSIX_VDISABLE.
        withUnsafeMutableBytes(of: &silent.c_cc) { $0[Int(VSUSP)] = 0 }
        return silent
    }

    /// Linux drops what is typed beyond so many bytes (termios(3), canonical mode).
    private static let lineBytesMax = 4095

    private func line() throws(Failure) -> SecretBytes? {
        try readPasswordLine(from: descriptor, named: "/dev/tty")
    }
}
