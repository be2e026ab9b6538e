/// The script for zsh: a function of its completion system, for a file `_obscura` in a directory of `$fpath`.
func zshCompletion() -> String {
    let firsts = Command.firstWords.map { first in
        let seconds = Command.secondWords(of: first.word).map { "\(first.word) \($0.word)" }
        return "        \(quoted("\(first.word):\(first.summary ?? seconds.joined(separator: ", "))"))"
    }
    let pairs = Command.firstWords.filter { $0.summary == nil }.map { first in
        let words = Command.secondWords(of: first.word).map { quoted("\($0.word):\($0.summary)") }
        return """
                    \(first.word))
                        if (( CURRENT == 2 )); then
                            seconds=(\(words.joined(separator: " ")))
                            _describe 'command' seconds
                            return
                        fi
                        command="$command $words[2]"
                        shift words
                        (( CURRENT -= 1 )) ;;
            """
    }
    let cases = Command.all.map { command in
        "            \(quoted(command.name)))\n                _arguments -S \\\n"
            + (command.options.map(specification) + operandSpecifications(command)).map {
                "                    \(quoted($0))"
            }.joined(separator: " \\\n") + " ;;"
    }
    let options = MountOption.all.map { option in
        option.values.isEmpty
            ? quoted(option.form == nil ? option.name : "\(option.name): :")
            : quoted("\(option.name): :(\(option.values.joined(separator: " ")))")
    }
    return """
        #compdef obscura
        # Completes the words of obscura(1) for zsh. Made by: obscura completion zsh

        _obscura_sizes() {
            if [[ $PREFIX == <-> ]]; then
                compadd -- ${PREFIX}{M,G,T}
            else
                compadd -- \(WordKind.sizes)
            fi
        }

        _obscura_vaults() {
            local -a vaults
            # Vaults are whole words; other directories can be entered.
            vaults=( ${(Q)PREFIX}*/obscura.vault(N:h) )
            compadd -f -a vaults
            _path_files -/
        }

        _obscura_mounts() {
            local -a mounts lines
            local line
            lines=( ${(f)"$(</proc/self/mounts)"} )
            for line in $lines; do
                if [[ ${${(s: :)line}[3]} == fuse.obscura ]]; then mounts+=( ${(g::)${(s: :)line}[2]} ); fi
            done
            if (( $#mounts )); then compadd -f -a mounts; else _path_files -/; fi
        }

        _obscura_vaults_and_mounts() { _obscura_mounts; _obscura_vaults }

        _obscura_mount_options() {
            _values -s , 'mount option' \\
                \(options.joined(separator: " \\\n        "))
        }

        _obscura() {
            local command
            # Not `commands`: of that zsh takes the programs that may follow `private VAULT --`.
            local -a firsts seconds
            if (( CURRENT == 2 )); then
                firsts=(
        \(firsts.joined(separator: "\n"))
                    'help:show how a command is used'
                )
                _describe 'command' firsts
                compadd -- --help --version
                return
            fi
            shift words
            (( CURRENT -= 1 ))
            command=$words[1]
            case $command in
        \(pairs.joined(separator: "\n"))
            esac
            case $command in
        \(cases.joined(separator: "\n"))
            help) compadd -- \(Command.firstWords.map(\.word).joined(separator: " ")) ;;
            esac
        }

        if [[ $funcstack[1] == _obscura ]]; then _obscura "$@"; else compdef _obscura obscura; fi

        """
}

/// In single quotes, for the shell.
private func quoted(_ text: String) -> String { "'\(text.replacing("'", with: "'\\''"))'" }

/// As in a specification of `_arguments`, where colons and brackets separate.
private func escaped(_ text: String) -> String {
    text.reduce(into: "") { result, character in
        if ":[]\\".contains(character) { result += "\\" }
        result.append(character)
    }
}

private func specification(_ option: Option) -> String {
    let head = option == .help ? "(- *)--help" : "*" + option.spelling
    guard let value = option.value else { return "\(head)[\(escaped(option.summary))]" }
    let sign = option.spelling.hasPrefix("--") ? "=" : "+"
    return "\(head)\(sign)[\(escaped(option.summary))]:\(escaped(value.shown)):\(action(value.kind))"
}

private func operandSpecifications(_ command: Command) -> [String] {
    var specifications = command.operands.enumerated().map { index, operand in
        let colons = command.tail == .optional ? "::" : ":"
        return "\(index + 1)\(colons)\(escaped(operand.shown)):\(action(operand.kind))"
    }
    switch command.tail {
    case .none, .optional: break
    case .repeated: specifications.append("*:PATH:\(command == .trash ? " " : "_files")")
    case .command: specifications.append("*:::COMMAND:_normal")
    }
    return specifications
}

private func action(_ kind: WordKind) -> String {
    switch kind {
    case .text: " "
    case .words(let words): "(\(words.joined(separator: " ")))"
    case .size: "_obscura_sizes"
    case .vault: "_obscura_vaults"
    case .mount: "_obscura_mounts"
    case .vaultOrMount: "_obscura_vaults_and_mounts"
    case .directory: "_path_files -/"
    case .file: "_files"
    case .mountOptions: "_obscura_mount_options"
    }
}
