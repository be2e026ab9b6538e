/// The script for bash(1). It needs no package bash-completion.
func bashCompletion() -> String {
    let commands = Command.all
    let values = commands.flatMap(\.options).reduce(into: [Option]()) { list, option in
        if option.value != nil, !list.contains(option) { list.append(option) }
    }
    let options = commands.map { "        '\($0.name)') echo '\(spellings($0))' ;;" }
    let operands = commands.map { "        '\($0.name)') echo '\(operandKinds($0))' ;;" }
    let kinds = values.map { "        \($0.spelling)) echo '\(kindWord($0.value?.kind ?? .text))' ;;" }
    let pairs = Command.firstWords.filter { $0.summary == nil }.map { first in
        let seconds = Command.secondWords(of: first.word).map(\.word).joined(separator: " ")
        return "        \(first.word)) echo '\(seconds)' ;;"
    }
    let mountValues = MountOption.all.filter { !$0.values.isEmpty }.map { option in
        "        \(option.name)) echo '\(option.values.joined(separator: " "))' ;;"
    }
    return """
        # Completes the words of obscura(1) for bash. Made by: obscura completion bash

        _obscura_commands='\((Command.firstWords.map(\.word) + ["help"]).joined(separator: " "))'
        _obscura_sizes='\(WordKind.sizes)'
        _obscura_mount_options='\(MountOption.all.map(\.given).joined(separator: " "))'

        _obscura_second_words() {
            case $1 in
        \(pairs.joined(separator: "\n"))
            esac
        }

        _obscura_options() {
            case $1 in
        \(options.joined(separator: "\n"))
            esac
        }

        # The kinds of a command's operands; the last one again where more may follow.
        _obscura_operands() {
            case $1 in
        \(operands.joined(separator: "\n"))
            esac
        }

        _obscura_value() {
            case $1 in
        \(kinds.joined(separator: "\n"))
            esac
        }

        _obscura_mount_values() {
            case $1 in
        \(mountValues.joined(separator: "\n"))
            esac
        }

        """ + bashDriver
}

private func spellings(_ command: Command) -> String {
    command.options.map(\.spelling).joined(separator: " ")
}

private func operandKinds(_ command: Command) -> String {
    var kinds = command.operands.map { kindWord($0.kind) }
    switch command.tail {
    case .none, .optional: break
    case .repeated: kinds.append(command == .trash ? "text..." : "\(kinds.last ?? "text")...")
    case .command: kinds += ["command", "file..."]
    }
    return kinds.joined(separator: " ")
}

/// The kind as the script calls it. Words are joined by commas.
private func kindWord(_ kind: WordKind) -> String {
    switch kind {
    case .text: "text"
    case .words(let words): "=" + words.joined(separator: ",")
    case .size: "size"
    case .vault: "vault"
    case .mount: "mount"
    case .vaultOrMount: "vault_or_mount"
    case .directory: "directory"
    case .file: "file"
    case .mountOptions: "mount_options"
    }
}

private let bashDriver = #"""

    # Adds the words that begin with the typed text, each with a space after it.
    _obscura_add() {
        local text=$1 word
        shift
        for word; do
            if [[ $word == "$text"* ]]; then COMPREPLY+=("$word"); fi
        done
    }

    # Adds directories, vaults among them. Readline marks each with a slash, and it can be entered.
    _obscura_directories() {
        local path
        compopt -o filenames 2>/dev/null
        while IFS= read -r path; do COMPREPLY+=("$path"); done < <(compgen -d -- "$1")
    }

    _obscura_mounts() {
        local text=$1 path type
        compopt -o filenames 2>/dev/null
        while read -r _ path type _; do
            printf -v path '%b' "${path//\\/\\0}"
            if [[ $type == fuse.obscura ]]; then _obscura_add "$text" "$path"; fi
        done </proc/self/mounts
    }

    _obscura_size() {
        local text=$1
        if [[ -z $text ]]; then
            read -r -a COMPREPLY <<<"$_obscura_sizes"
        elif [[ $text =~ ^[0-9]+$ ]]; then
            COMPREPLY=("${text}M" "${text}G" "${text}T")
        fi
    }

    # The last of a list with commas.
    _obscura_mount_option() {
        local text=$1 before='' name word
        if [[ $text == *,* ]]; then before=${text%,*}, text=${text##*,}; fi
        compopt -o nospace 2>/dev/null
        if [[ $text == *=* ]]; then
            name=${text%%=*}
            for word in $(_obscura_mount_values "$name"); do
                _obscura_add "$before$text" "$before$name=$word"
            done
            # Readline replaces only the text after the sign.
            if [[ $COMP_WORDBREAKS == *=* ]]; then
                for word in "${!COMPREPLY[@]}"; do COMPREPLY[word]=${COMPREPLY[word]##*=}; done
            fi
        else
            for word in $_obscura_mount_options; do _obscura_add "$before$text" "$before$word"; done
        fi
    }

    _obscura_kind() {
        local kind=$1 text=$2
        case $kind in
            =*) IFS=, read -r -a words <<<"${kind#=}"; _obscura_add "$text" "${words[@]}" ;;
            size) _obscura_size "$text" ;;
            vault | directory) _obscura_directories "$text" ;;
            mount)
                _obscura_mounts "$text"
                if [[ ${#COMPREPLY[@]} -eq 0 ]]; then _obscura_directories "$text"; fi ;;
            vault_or_mount) _obscura_mounts "$text"; _obscura_directories "$text" ;;
            mount_options) _obscura_mount_option "$text" ;;
            command) mapfile -t COMPREPLY < <(compgen -c -- "$text") ;;
            file)
                compopt -o filenames 2>/dev/null
                mapfile -t COMPREPLY < <(compgen -f -- "$text") ;;
        esac
    }

    _obscura() {
        # bash splits --name=value at the sign; here it is one word.
        local -a typed=() words kinds
        local word text command='' option='' kind index count=0 ended='' glued=''
        for ((index = 1; index <= COMP_CWORD; index += 1)); do
            word=${COMP_WORDS[index]}
            if [[ $word == = && ${#typed[@]} -gt 0 ]]; then
                typed[-1]+='='
                glued=1
            elif [[ -n $glued ]]; then
                typed[-1]+=$word
                glued=''
            else
                typed+=("$word")
            fi
        done
        text=${typed[-1]-}
        COMPREPLY=()
        for word in "${typed[@]:0:${#typed[@]}-1}"; do
            if [[ -n $option ]]; then
                option=''
            elif [[ -z $command ]]; then
                command=$word
            elif [[ $word == -- ]]; then
                ended=1
            elif [[ -z $ended && $word == -* ]]; then
                if [[ $word != *=* && -n $(_obscura_value "$word") ]]; then option=$word; fi
            elif [[ $count -eq 0 && " $(_obscura_second_words "$command") " == *" $word "* ]]; then
                command+=" $word"
            else
                count=$((count + 1))
            fi
        done
        if [[ -n $option ]]; then
            _obscura_kind "$(_obscura_value "$option")" "$text"
        elif [[ -z $command ]]; then
            read -r -a words <<<"$_obscura_commands --help --version"
            _obscura_add "$text" "${words[@]}"
        elif [[ $command == help ]]; then
            read -r -a words <<<"$_obscura_commands"
            _obscura_add "$text" "${words[@]}"
        elif [[ -n $(_obscura_second_words "$command") ]]; then
            read -r -a words <<<"$(_obscura_second_words "$command")"
            _obscura_add "$text" "${words[@]}"
        elif [[ -z $ended && $text == --*=* ]]; then
            _obscura_kind "$(_obscura_value "${text%%=*}")" "${text#*=}"
            if [[ $COMP_WORDBREAKS != *=* ]]; then
                for word in "${!COMPREPLY[@]}"; do COMPREPLY[word]=${text%%=*}=${COMPREPLY[word]}; done
            fi
        elif [[ -z $ended && $text == -* ]]; then
            read -r -a words <<<"$(_obscura_options "$command")"
            _obscura_add "$text" "${words[@]}"
        else
            read -r -a kinds <<<"$(_obscura_operands "$command")"
            kind=${kinds[count]-}
            if [[ -z $kind && ${#kinds[@]} -gt 0 && ${kinds[-1]} == *... ]]; then kind=${kinds[-1]}; fi
            _obscura_kind "${kind%...}" "$text"
        fi
    }

    complete -F _obscura obscura

    """#
