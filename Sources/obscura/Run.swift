import Glibc

/// The program: what main.swift calls. Returns the exit status.
func runObscura() -> Int32 {
    do throws(Failure) {
        try hardenProcess(CommandLine.unsafeArgv)
        let words = try decodeArguments()
        if let first = words.dropFirst().first,
            [Daemon.backgroundWord, Daemon.foregroundWord].contains(first)
        {
            return runDaemon(Array(words.dropFirst())).rawValue
        }
        if words.dropFirst().first == CacheSweep.word {
            try CacheSweep(Array(words.dropFirst())).run()
            return ExitStatus.done.rawValue
        }
        endOnInterruption()
        try run(words)
        return ExitStatus.done.rawValue
    } catch {
        note(error.line)
        return error.status.rawValue
    }
}

/// Paths are bytes to Linux; those that are not UTF-8 would come out as other paths.
private func decodeArguments() throws(Failure) -> [String] {
    var words: [String] = []
    for index in 0..<Int(CommandLine.argc) {
        guard let argument = CommandLine.unsafeArgv[index], let word = String(validatingCString: argument)
        else {
            throw Failure(
                .usage, "argument \(index)", "it is not UTF-8: rename the file or directory it names")
        }
        words.append(word)
    }
    return words
}

/// - Parameter words: the whole command line, with the program's name.
private func run(_ words: [String]) throws(Failure) {
    if let name = words.first, mountHelperNames.contains(lastComponent(name)) {
        return try runMountHelper(Array(words.dropFirst()))
    }
    switch try parseArguments(Array(words.dropFirst())) {
    case .version: say("obscura \(programVersion)")
    case .help(let command): say(command.map { helpText($0) } ?? helpText())
    case .run(let arguments): try run(arguments)
    }
}

private func run(_ arguments: Arguments) throws(Failure) {
    switch arguments.command {
    case .create: try runCreate(arguments)
    case .mount: try runMount(arguments)
    case .unmount: try runUnmount(arguments)
    case .passwd: try runPasswd(arguments)
    case .spaceAdd: try runSpaceAdd(arguments)
    case .spaceRemove: try runSpaceRemove(arguments)
    case .grow: try runGrow(arguments)
    case .import: try runImport(arguments)
    case .export: try runExport(arguments)
    case .backup: try runBackup(arguments)
    case .info: try runInfo(arguments)
    }
}
