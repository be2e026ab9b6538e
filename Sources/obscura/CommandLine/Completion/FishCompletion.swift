/// The script for fish(1).
func fishCompletion() -> String {
    var lines: [String] = []
    for first in Command.firstWords {
        let summary = first.summary ?? Command.secondWords(of: first.word).map(\.word).joined(separator: ", ")
        lines.append("complete -c obscura -n __obscura_needs_command -a \(first.word) -d \(quoted(summary))")
        for second in Command.secondWords(of: first.word) {
            lines.append(
                "complete -c obscura -n '__obscura_needs_second \(first.word)' -a \(second.word)"
                    + " -d \(quoted(second.summary))")
        }
    }
    lines.append("complete -c obscura -n __obscura_needs_command -a help -d 'show how a command is used'")
    lines.append("complete -c obscura -n __obscura_needs_command -l help -d 'show all commands'")
    lines.append("complete -c obscura -n __obscura_needs_command -l version -d 'show the version'")
    let firsts = Command.firstWords.map(\.word).joined(separator: " ")
    lines.append("complete -c obscura -n '__obscura_is help' -a '\(firsts)'")
    for command in Command.all {
        for option in command.options { lines.append(line(option, of: command)) }
        lines += operandLines(command)
    }
    return """
        # Completes the words of obscura(1) for fish. Made by: obscura completion fish

        complete -c obscura -f

        # The words before the cursor that are no options and no values of options.
        function __obscura_words
            set -l value ''
            for word in (commandline -opc)[2..]
                if test -n "$value"
                    set value ''
                else if string match -q -- '-*' $word
                    if contains -- $word \(valued)
                        set value $word
                    end
                else
                    echo $word
                end
            end
        end

        function __obscura_needs_command
            test (count (__obscura_words)) -eq 0
        end

        function __obscura_needs_second
            set -l words (__obscura_words)
            test (count $words) -eq 1 -a "$words[1]" = "$argv[1]"
        end

        # Whether the command is this one; with a number, and so many operands are given.
        function __obscura_is
            set -l words (__obscura_words)
            set -l name (string split ' ' -- $argv[1])
            set -l count (count $name)
            test (count $words) -ge $count; or return 1
            test "$words[1..$count]" = "$argv[1]"; or return 1
            test (count $argv) -lt 2; or test (math (count $words) - $count) -eq $argv[2]
        end

        function __obscura_is_beyond
            set -l words (__obscura_words)
            set -l count (count (string split ' ' -- $argv[1]))
            __obscura_is $argv[1]; and test (math (count $words) - $count) -ge $argv[2]
        end

        function __obscura_vaults
            set -l text (commandline -ct)
            for header in $text*/obscura.vault
                printf '%s\\tvault\\n' (dirname -- $header)
            end
            __fish_complete_directories $text
        end

        function __obscura_mounts
            set -l found (awk '$3 == "fuse.obscura" { print $2 }' /proc/self/mounts)
            for mount in $found
                printf '%b\\tmounted space\\n' (string replace -a '\\\\' '\\\\0' -- $mount)
            end
            test (count $found) -gt 0; or __fish_complete_directories (commandline -ct)
        end

        function __obscura_sizes
            set -l text (commandline -ct | string replace -r '.*=' '')
            if string match -qr '^[0-9]+$' -- $text
                printf '%s\\n' {$text}M {$text}G {$text}T
            else
                printf '%s\\n' \(WordKind.sizes)
            end
        end

        function __obscura_mount_options
            set -l text (commandline -ct | string replace -r '^-o' '')
            set -l before (string match -r '.*,' -- $text)
            test -n "$before"; or set before ''
            printf '%s\\n' $before{\(mountWords)}
        end

        \(lines.joined(separator: "\n"))

        """
}

/// Options that take a value, as typed.
private var valued: String {
    var seen: Set<Option> = []
    return Command.all.flatMap(\.options).filter { $0.value != nil && seen.insert($0).inserted }
        .map(\.spelling).joined(separator: " ")
}

private var mountWords: String {
    MountOption.all.flatMap { option in
        option.values.isEmpty ? [option.given] : option.values.map { "\(option.name)=\($0)" }
    }.joined(separator: ",")
}

/// In single quotes, for the shell.
private func quoted(_ text: String) -> String {
    "'" + text.replacing("\\", with: "\\\\").replacing("'", with: "\\'") + "'"
}

private func line(_ option: Option, of command: Command) -> String {
    let dash = option.name.utf8.count == 1 ? "-s" : "-l"
    let value = option.value.map { ($0.kind == .file ? " -r" : " -x") + proposals($0.kind) } ?? ""
    return "complete -c obscura -n '__obscura_is \"\(command.name)\"' \(dash) \(option.name)\(value)"
        + " -d \(quoted(option.summary))"
}

private func operandLines(_ command: Command) -> [String] {
    var lines = command.operands.enumerated().map { index, operand in
        "complete -c obscura -n '__obscura_is \"\(command.name)\" \(index)'\(proposals(operand.kind))"
    }
    switch command.tail {
    case .none, .optional: break
    case .repeated:
        if command != .trash {
            lines.append("complete -c obscura -n '__obscura_is_beyond \"\(command.name)\" 2' -F")
        }
    case .command:
        lines.append(
            "complete -c obscura -n '__obscura_is_beyond \"\(command.name)\" 1'"
                + " -a '(__fish_complete_subcommand --fcs-skip=3)'")
    }
    return lines
}

/// The rest of a line that proposes values of this kind.
private func proposals(_ kind: WordKind) -> String {
    switch kind {
    case .text: ""
    case .words(let words): " -a \(quoted(words.joined(separator: " ")))"
    case .size: " -a '(__obscura_sizes)'"
    case .vault: " -a '(__obscura_vaults)'"
    case .mount: " -a '(__obscura_mounts)'"
    case .vaultOrMount: " -a '(__obscura_mounts; __obscura_vaults)'"
    case .directory: " -a '(__fish_complete_directories (commandline -ct))'"
    case .file: " -F"
    case .mountOptions: " -a '(__obscura_mount_options)'"
    }
}
