import Foundation
import TestSupport
import TestThreads
import Testing

@testable import obscura

/// The scripts run in the shells themselves, as after Tab.
@Suite("Commands: completion by shells", .serialized, .waiting) struct CompletionTests {
    private let place: CommandPlace

    init() throws {
        place = try CommandPlace()
        for path in ["My vault", "other"] {
            try FileManager.default.createDirectory(
                atPath: "\(place.path)/\(path)", withIntermediateDirectories: true)
        }
        for path in ["My vault/obscura.vault", "photo.jpg"] {
            try Data().write(to: URL(fileURLWithPath: "\(place.path)/\(path)"))
        }
        for shell in Shell.allCases {
            let printed = try place.run(["completion", "\(shell)"])
            #expect(printed.status == 0, "\(printed.errors)")
            try printed.output.write(
                toFile: "\(place.path)/_obscura.\(shell)", atomically: false, encoding: .utf8)
        }
    }

    /// A line, a word that is proposed after it, and one that is not.
    private static let lines: [(line: String, proposed: String, other: String)] = [
        ("obscura mo", "mount", "move"),
        ("obscura space ", "remove", "export"),
        ("obscura space add --new", "--new-key-file", "--album"),
        ("obscura mount --cr", "--create", "--repair"),
        ("obscura mount ", "My vault", "photo.jpg"),
        ("obscura mount ", "other/", "photo.jpg"),
        ("obscura grow V 4", "4G", "8G"),
        ("obscura create V --size ", "8G", "photo.jpg"),
        ("obscura mount -o thumbs=li", "listed", "off"),
        ("obscura mount -o ro,vi", "ro,views", "ro,rw"),
        ("obscura export V D --albums ", "copy", "photo.jpg"),
        ("obscura import V ", "photo.jpg", "link"),
        ("obscura check --re", "--repair", "--discard"),
        ("obscura trash D ", "restore", "photo.jpg"),
        ("obscura private V -- mkfif", "mkfifo", "photo.jpg"),
        ("obscura private V -- mkfifo ph", "photo.jpg", "mkfifo"),
    ]

    @Test(arguments: Shell.allCases) func `a shell proposes what the tables have`(shell: Shell) throws {
        for (line, proposed, other) in Self.lines {
            let words = try completions(of: line, by: shell)
            // A shell may show only the part that it adds to the typed text, and no slash.
            let forms = ["", "thumbs=", "ro,"].map { prefix in words.map { prefix + $0 } }.joined()
            let found = forms.contains {
                $0 == proposed || $0 + "/" == proposed || $0 == "thumbs=" + proposed
            }
            #expect(found, "\(shell): \(line): \(words)")
            #expect(!words.contains(other), "\(shell): \(line): \(words)")
            // Readline adds one.
            if shell == .bash { #expect(!words.contains { $0.hasSuffix("/") }, "\(line): \(words)") }
        }
    }

    @Test func `a shell proposes mounts where one is wanted`() throws {
        let made = try place.run(
            [
                "mount", "--create", "--spaces=1", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin",
                "V", "D",
            ],
            input: "one\n")
        #expect(made.status == 0, "\(made.errors)")
        for shell in Shell.allCases {
            let words = try completions(of: "obscura unmount \(place.path)/", by: shell)
            #expect(words.contains(place.path + "/D"), "\(shell): \(words)")
        }
        #expect(try place.run(["unmount", "D"]).status == 0)
    }

    /// The words that a shell proposes at the end of a line.
    private func completions(of line: String, by shell: Shell) throws -> [String] {
        let script =
            switch shell {
            case .bash: Self.bash
            case .zsh: Self.zsh
            case .fish: "source _obscura.fish; complete -C $argv[1]"
            }
        let ended = try Child(
            ["/usr/bin/\(shell)"] + (shell == .zsh ? ["-f"] : []) + ["-c", script]
                + (shell == .fish ? [] : ["-"])
                + [line], directory: place.path, output: .collected, errors: .collected
        ).finish()
        #expect(ended.errors == "", "\(shell): \(line)")
        return ended.output.split(whereSeparator: \.isNewline).map { word in
            // fish shows a description after a tab.
            String(word.prefix { $0 != "\t" }).trimmingCharacters(in: .whitespaces)
                .replacing("\\ ", with: " ")
        }
    }

    /// Calls the function as readline does, which splits words at the sign of equality, too.
    private static let bash = #"""
        compopt() { :; }
        source ./_obscura.bash
        read -r -a COMP_WORDS <<<"${1//=/ = }"
        if [[ $1 == *' ' || $1 == *= ]]; then COMP_WORDS+=(''); fi
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _obscura
        printf '%s\n' "${COMPREPLY[@]}"
        """#

    /// Types the line and Tab in an interactive shell; there, the proposals are printed.
    private static let zsh = #"""
        zmodload zsh/zpty
        zpty shell zsh -f -i
        zpty -w shell "PS1= PS2=; unsetopt zle_bracketed_paste; stty -echo columns 200
        autoload -Uz compinit; compinit -u -D
        source ./_obscura.zsh
        compadd() {
            local -a found
            if [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd \"\$@\"; return; fi
            builtin compadd -A found \"\$@\"
            print -rl -- '' \$found
            builtin compadd \"\$@\"
        }
        finish() { print -r -- the-end; exit }
        comppostfuncs=( finish )
        bindkey '^I' complete-word
        print -r -- the-beginning"
        zpty -r shell begun '*the-beginning*'
        zpty -n -w shell "$1"$'\t'
        zpty -r shell answer '*the-end*'
        print -r -- "${answer//$'\r'/}"
        """#
}
