import DesktopTraces
import Glibc
import LinuxIO

/// Body of the program, called by main.swift. Returns the exit status.
func runObscura() -> Int32 {
    fillStandardStreams()
    surviveFileSizeLimit()
    do throws(Failure) {
        try hardenProcess()
        let words = decodeArguments()
        let first = words.dropFirst().first ?? ""
        if Daemon.words.contains(first) { return runDaemon(Array(words.dropFirst())).rawValue }
        if first == privateSessionWord { return try runPrivateSession(Array(words.dropFirst(2))) }
        if first == DesktopSweep.word {
            try DesktopSweep(Array(words.dropFirst())).run()
            return ExitStatus.done.rawValue
        }
        if words.dropFirst() == [ChildStretcher.word] { return ChildStretcher.run().rawValue }
        endOnInterruption()
        let status = try run(words)
        if status == ExitStatus.done.rawValue { try requireSaid() }
        return status
    } catch {
        note(error.line)
        return error.status.rawValue
    }
}

/// Opens standard streams that are closed: otherwise a file of the vault would have the number of one, and get what is
/// printed. Writing to them is an error all the same.
private func fillStandardStreams() {
    for stream in STDIN_FILENO...STDERR_FILENO where fcntl(stream, F_GETFD) < 0 {
        // The lowest free number is taken.
        _ = open("/dev/null", O_RDONLY)
    }
}

/// Makes a write beyond `ulimit -f` fail with EFBIG, instead of ending the process. Programs that are started from here
/// do not inherit it.
private func surviveFileSizeLimit() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(SIGXFSZ, &action, nil)
}

/// The arguments, with the bytes of paths that are not UTF-8: `CommandLine.arguments` would name other files.
private func decodeArguments() -> [String] {
    (0..<Int(CommandLine.argc)).compactMap { index in CommandLine.unsafeArgv[index].map { pathText($0) } }
}

/// Runs the command line and returns its exit status.
private func run(_ words: [String]) throws(Failure) -> Int32 {
    if let name = words.first, mountHelperNames.contains(lastComponent(name)) {
        try runMountHelper(Array(words.dropFirst()))
        return ExitStatus.done.rawValue
    }
    switch try parseArguments(Array(words.dropFirst())) {
    case .version: say("obscura \(programVersion)")
    case .usage:
        note(helpText())
        return ExitStatus.usage.rawValue
    case .help(let command): say(command.map { helpText($0) } ?? helpText())
    case .run(let arguments): return try arguments.command.run(arguments)
    }
    return ExitStatus.done.rawValue
}
