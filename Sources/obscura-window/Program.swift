import CAdwaita
import Glibc

/// The end of a command of obscura(1).
struct CommandEnd {
    /// As obscura(1) lists them; -1: a signal ended it, or it did not start.
    var status: Int32
    var output: String
    /// Lines of its standard error, without the name of the program.
    var lines: [String]

    static let wrongPassword: Int32 = 4
    static let interrupted: Int32 = 130

    /// Errors for the user, or warnings of a command that succeeded.
    var message: String { lines.joined(separator: "\n") }
}

/// A command of obscura(1) that runs.
///
/// It is started without a shell. Passwords reach it through a pipe that is its standard input, straight from the
/// memory of the fields where they were typed; they are in no argument, environment or file.
final class Command {
    private static let name = "obscura"
    /// A pipe holds this many bytes without a reader.
    private static let secretBytesMax = 60_000

    /// Nil: it did not start.
    private var process: OpaquePointer?

    /// - Parameters:
    ///   - secrets: fields of passwords, each given as one line.
    ///   - done: called from the main loop when it has ended.
    init(_ arguments: [String], secrets: [Object] = [], done: @escaping (CommandEnd) -> Void) {
        let input = Command.pipe(of: secrets)
        let words = arguments + (secrets.isEmpty ? [] : ["--password-stdin"])
        process = input.flatMap { Command.start(words, $0) }
        if let process {
            g_subprocess_communicate_async(
                process, nil, nil, { _, result, data in Box<(OpaquePointer?) -> Void>.last(data)(result) },
                Box<(OpaquePointer?) -> Void>({ [self] in done(end(of: process, $0)) }).retained)
        } else {
            let reason = input == nil ? Word.passwordTooLong : .noProgram
            soon { done(CommandEnd(status: -1, output: "", lines: [reason.text])) }
        }
    }

    /// - Parameter input: a descriptor that is closed.
    private static func start(_ arguments: [String], _ input: Int32) -> OpaquePointer? {
        let pipes = G_SUBPROCESS_FLAGS_STDOUT_PIPE.rawValue | G_SUBPROCESS_FLAGS_STDERR_PIPE.rawValue
        let launcher = g_subprocess_launcher_new(GSubprocessFlags(pipes))
        defer { g_object_unref(UnsafeMutableRawPointer(launcher)) }
        g_subprocess_launcher_take_stdin_fd(launcher, input)
        return withTexts([path] + arguments) { g_subprocess_launcher_spawnv(launcher, $0, nil) }
    }

    deinit { if let process { g_object_unref(UnsafeMutableRawPointer(process)) } }

    /// Asks it to give up what it does, as ^C does.
    func interrupt() { if let process { g_subprocess_send_signal(process, SIGINT) } }

    private func end(of process: OpaquePointer, _ result: OpaquePointer?) -> CommandEnd {
        var (output, errors): (OpaquePointer?, OpaquePointer?)
        g_subprocess_communicate_finish(process, result, &output, &errors, nil)
        let status = g_subprocess_get_if_exited(process) != 0 ? g_subprocess_get_exit_status(process) : -1
        let lines = Command.text(errors).split(separator: "\n").map { line in
            let prefix = Command.name + ": "
            return String(line.hasPrefix(prefix) ? line.dropFirst(prefix.count) : line)
        }
        return CommandEnd(status: status, output: Command.text(output), lines: lines)
    }

    /// The text of bytes that are freed.
    private static func text(_ bytes: OpaquePointer?) -> String {
        guard let bytes else { return "" }
        defer { g_bytes_unref(bytes) }
        var count: gsize = 0
        let start = g_bytes_get_data(bytes, &count)
        return String(decoding: UnsafeRawBufferPointer(start: start, count: Int(count)), as: UTF8.self)
    }

    /// The program beside this one, else the installed one, else the first of PATH.
    private static let path: String = {
        let folder = taking(g_file_read_link("/proc/self/exe", nil)).flatMap {
            taking(g_path_get_dirname($0))
        }
        let places = [folder ?? "", "/usr/bin"].map { $0 + "/" + name }
        return places.first { access($0, X_OK) == 0 } ?? name
    }()

    /// The reading end of a pipe that holds the content of the fields, one a line. Nil if they do not fit.
    private static func pipe(of fields: [Object]) -> Int32? {
        var ends: [Int32] = [-1, -1]
        guard g_unix_open_pipe(&ends, FD_CLOEXEC, nil) != 0 else { return nil }
        defer { close(ends[1]) }
        var bytesLeft = secretBytesMax
        for text in fields.map({ gtk_editable_get_text($0.opaque)! }) {
            bytesLeft -= strlen(text) + 1
            guard bytesLeft >= 0 else {
                close(ends[0])
                return nil
            }
            // The pipe has room for all: these writes neither wait nor end early.
            write(ends[1], text, strlen(text))
            write(ends[1], "\n", 1)
        }
        return ends[0]
    }
}
