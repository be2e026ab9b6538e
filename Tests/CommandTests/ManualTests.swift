import Foundation
import Testing

@testable import obscura

/// The manual has parts that follow from the tables of commands and options. `scripts/manual --write` renews them.
@Suite("Commands: the manual") struct ManualTests {
    private static let path = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Sources/obscura/obscura.1")

    @Test func `its lists are made from the tables`() throws {
        let manual = try String(contentsOf: Self.path, encoding: .utf8)
        let made = ManualParts.filled(manual)
        if ProcessInfo.processInfo.environment["OBSCURA_WRITES_MANUAL"] != nil {
            try made.write(to: Self.path, atomically: true, encoding: .utf8)
        }
        #expect(made == manual, "scripts/manual --write renews it")
    }

    @Test func `it has a place for every list`() throws {
        let manual = try String(contentsOf: Self.path, encoding: .utf8)
        for name in ManualParts.all.keys { #expect(manual.contains(ManualParts.begin(name)), "\(name)") }
    }

    @Test(arguments: [
        ("F|none", "Ar F Ns | Ns Cm none"), ("link|copy", "Cm link Ns | Ns Cm copy"),
        ("ADDR[:PORT]", "Ar ADDR Ns Oo : Ns Ar PORT Oc"), ("OPT,...", "Ar OPT Ns ,..."),
        ("umask=OCTAL", "Cm umask= Ns Ar OCTAL"), ("allow_other", "Cm allow_other"),
    ])
    func `values in mdoc`(shown: String, mdoc: String) { #expect(ManualParts.mdoc(shown) == mdoc) }
}

/// The lists of the manual, in mdoc(7).
private enum ManualParts {
    static func begin(_ name: String) -> String { ".\\\" begin \(name) (made by scripts/manual)\n" }

    /// By name.
    static let all: [String: String] = {
        var parts = [
            "synopsis": Command.all.map(synopsis).joined(),
            "options of passwords": list(Option.passwordOptions),
            "mount options": mountOptions,
        ]
        for command in Command.all {
            let own = command.ownOptions
            if !own.isEmpty { parts["options of \(command.name)"] = list(own) }
        }
        return parts
    }()

    /// The manual with these lists in the places of the present ones.
    static func filled(_ manual: String) -> String {
        var manual = manual
        for (name, text) in all {
            guard let start = manual.range(of: begin(name)),
                let end = manual.range(of: ".\\\" end\n", range: start.upperBound..<manual.endIndex)
            else { continue }
            manual.replaceSubrange(start.upperBound..<end.lowerBound, with: text)
        }
        return manual
    }

    private static func synopsis(_ command: Command) -> String {
        var lines = [".Nm", ".Cm \(command.name)"]
        for operand in command.operands {
            let word = mdoc(operand.shown)
            lines.append(command.tail == .optional ? ".Op \(word)" : ".\(word)")
        }
        switch command.tail {
        case .none, .optional: break
        case .repeated(let text): lines.append(text.hasPrefix("[") ? ".Op Ar NAME ..." : ".Ar ...")
        case .command: lines.append(".Op Fl - Ar COMMAND ...")
        }
        lines += command.ownOptions.map { option in
            let value = option == .create ? " Ar ..." : option.value.map { " " + mdoc($0.shown) } ?? ""
            let word = "Fl \(flag(option))\(value)"
            return command.needs == option ? ".\(word)" : ".Op \(word)"
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func list(_ options: [Option]) -> String {
        let items = options.map { option in
            let value = option.value.map { " " + mdoc($0.shown) } ?? ""
            return ".It Fl \(flag(option))\(value)\n\(option.manual ?? option.summary)\n"
        }
        return ".Bl -tag -width Ds\n" + items.joined() + ".El\n"
    }

    private static var mountOptions: String {
        var text = ".Bl -tag -width Ds\n"
        var words: [String] = []
        for option in MountOption.all {
            words.append(mdoc(option.shown ?? option.name))
            guard let manual = option.manual else { continue }
            text += ".It \(words.joined(separator: " , "))\n\(manual)\n"
            words = []
        }
        return text + ".El\n"
    }

    private static func flag(_ option: Option) -> String {
        option.name.utf8.count == 1 ? option.name : "-\(option.name)"
    }

    /// A value as in a usage line: words in capitals are arguments, others are typed as they are.
    static func mdoc(_ shown: String) -> String {
        var parts: [String] = []
        var word = ""
        func end() {
            guard let first = word.first else { return }
            parts.append((first.isUppercase ? "Ar " : "Cm ") + word)
            word = ""
        }
        for character in shown {
            if character == "=" {
                word.append(character)
                end()
            } else if character.isLetter || "_-".contains(character) {
                word.append(character)
            } else {
                end()
                switch character {
                case "[": parts.append("Oo")
                case "]": parts.append("Oc")
                default:
                    let isSign = parts.last.map { !$0.contains(" ") && $0 != "Oo" } ?? false
                    if isSign {
                        parts[parts.count - 1].append(character)
                    } else {
                        parts.append("\(character)")
                    }
                }
            }
        }
        end()
        return parts.joined(separator: " Ns ").replacing("Oo Ns", with: "Oo").replacing(" Ns Oc", with: " Oc")
    }
}
