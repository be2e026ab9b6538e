import Glibc
import LinuxIO
import VaultCrypto

/// Maximum length of a password in bytes, without its newline.
let passwordBytesMax = 65_536

/// The source of passwords.
enum PasswordSource: Equatable {
    case descriptor(Int32)
    /// `option` is the word that error messages name.
    case file(String, option: String)
    /// A program's standard output. Its first word is a path.
    case program([String], option: String)
    case standardInput
    /// A prompt. `hint` lists the other ways to give a password, for use without a terminal.
    case terminal(hint: String)

    /// The mount option whose command may ask a person.
    static let askpassOption = "askpass"

    static func shellCommand(_ command: String, option: String) -> PasswordSource {
        .program(["/bin/sh", "-c", command], option: option)
    }

    /// The first source that is given, in the documented order; nil if there is none.
    init?(_ arguments: Arguments) throws(Failure) {
        if let text = arguments[.passwordFD] {
            guard let number = parseNumber(text, in: 0...UInt64(Int32.max)),
                fcntl(Int32(number), F_GETFD) != -1
            else {
                throw Failure(.usage, "--password-fd \(text)", "no such open file descriptor: open it first")
            }
            self = .descriptor(Int32(number))
        } else if let path = arguments[.passwordFile] {
            self = .file(path, option: "--password-file")
        } else if let command = arguments[.passwordCommand] {
            self = .shellCommand(command, option: "--password-command")
        } else if arguments.has(.passwordStdin) {
            self = .standardInput
        } else {
            return nil
        }
    }

    static let commandLineHint =
        "no terminal to ask on: give --password-file F, --password-command CMD, --password-fd N or --password-stdin"

    static let mountHelperHint =
        "no terminal or display to ask on: give -o passfile=FILE or -o askpass=COMMAND, or set OBSCURA_ASKPASS"
}

/// The passwords of a source other than a terminal, one per line.
final class PasswordLines {
    private let name: String
    private let descriptor: Int32
    /// Whether this object closes `descriptor`.
    private var isOwned: Bool
    private let process: pid_t?

    /// - Precondition: `source` is not `.terminal`.
    init(_ source: PasswordSource) throws(Failure) {
        switch source {
        case .descriptor(let descriptor):
            (name, self.descriptor, isOwned, process) = (
                "--password-fd \(descriptor)", descriptor, false, nil
            )
        case .standardInput:
            (name, descriptor, isOwned, process) = ("--password-stdin", STDIN_FILENO, false, nil)
        case .file(let path, let option):
            descriptor = try openPasswordFile(path)
            (name, isOwned, process) = ("\(option) \(path)", true, nil)
        case .program(let words, let option):
            let output = try pipeEnds(for: option)
            defer { close(output.write) }
            do {
                process = try spawn(words, descriptors: [(output.write, STDOUT_FILENO)])
            } catch {
                close(output.read)
                throw Failure(option, "running it", error)
            }
            (name, descriptor, isOwned) = (option, output.read, true)
        case .terminal:
            preconditionFailure("a terminal is asked, not read")
        }
    }

    deinit { if isOwned { close(descriptor) } }

    /// The next password; nil at the end. An empty line is refused.
    func next() throws(Failure) -> SecretBytes? {
        guard let line = try readPasswordLine(from: descriptor, named: name) else { return nil }
        if line.count == 0 { throw emptyPassword(name) }
        return line
    }

    /// The next password. Throws if there is none.
    ///
    /// - Parameter meaning: its purpose, as "the new password".
    func required(_ meaning: String) throws(Failure) -> SecretBytes {
        if let password = try next() { return password }
        try finish()
        throw Failure(.usage, name, "\(meaning) is missing: give one password a line")
    }

    /// Call this after the last password. Throws if a program failed.
    ///
    /// A program that still has something to write dies of SIGPIPE, which is no failure.
    ///
    /// - Parameter failure: thrown in place of the program's own, where its failing is an answer.
    func finish(orThrow failure: Failure? = nil) throws(Failure) {
        guard let process else { return }
        close(descriptor)
        isOwned = false
        switch waitForEnd(of: process) {
        case .exited(0), .exited(128 + SIGPIPE), .signalled(SIGPIPE): return
        case .exited(let status):
            if let failure { throw failure }
            throw Failure(.failed, name, "the command ended with status \(status): run it by hand to see why")
        case .signalled(let signal):
            throw Failure(
                .failed, name, "the command was ended by signal \(signal): run it by hand to see why")
        }
    }
}

/// Opens a password file. Refuses one that others may read: a password that they could have seen protects nothing.
private func openPasswordFile(_ path: String) throws(Failure) -> Int32 {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { throw Failure(path, "opening the password file", .last) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else {
        let code = errno
        close(descriptor)
        throw Failure(path, "looking at the password file", Errno(code))
    }
    if status.st_mode & (S_IRGRP | S_IROTH) != 0 {
        close(descriptor)
        throw Failure(
            .failed, path, "others may read this password file: chmod 600 it, and consider a new password")
    }
    return descriptor
}

func emptyPassword(_ source: String) -> Failure {
    Failure(.usage, source, "the password is empty: an empty one is never accepted")
}

/// Reads up to a newline, or the end, straight into locked memory. Nil if nothing was left.
///
/// Reads byte by byte, so that the bytes after the newline stay for the next reader of the descriptor.
func readPasswordLine(from descriptor: Int32, named name: String) throws(Failure) -> SecretBytes? {
    try requireLockableMemory()
    let buffer = SecretBytes(count: passwordBytesMax + 1)
    var length = 0
    var isEnded = false
    try buffer.withUnsafeMutableBytes { bytes throws(Failure) in
        while length <= passwordBytesMax {
            let count = read(descriptor, bytes.baseAddress.map { $0 + length }, 1)
            if count < 0 {
                if errno == EINTR { continue }
                throw Failure(name, "reading the password", .last)
            }
            isEnded = count == 0
            if isEnded || bytes[length] == UInt8(ascii: "\n") { return }
            length += 1
        }
        throw Failure(.usage, name, "the password is longer than \(passwordBytesMax) bytes: shorten it")
    }
    if isEnded && length == 0 { return nil }
    return buffer.withUnsafeBytes { SecretBytes(copying: UnsafeRawBufferPointer(rebasing: $0[0..<length])) }
}
