import Glibc
import PhotoLibrary
import PhotoRules

/// A mount option. One row of `all` has its name, what help shows of it, how it is read, and how the daemon is told of
/// it: a new option is a row, and its use.
struct MountOption: Sendable {
    let name: String
    /// The form of the value, in the words of an error; nil if the option takes none.
    let form: String?
    /// As help shows it; nil for a word that only undoes another.
    let shown: String?
    /// Sets the option; false if the value has another form.
    let set: @Sendable (inout MountOptionParser, String) -> Bool
    /// The word from which the daemon reads an equal setting; nil for the default, and for what is not the daemon's.
    let word: @Sendable (MountOptionParser) -> String?

    /// As in the list of options: with `=` if it takes a value.
    var given: String { form == nil ? name : name + "=" }

    /// An option without a value.
    private static func flag(
        _ name: String, isShown: Bool = true,
        word: @escaping @Sendable (MountOptionParser) -> Bool = { _ in false },
        set: @escaping @Sendable (inout MountOptionParser) -> Void
    ) -> MountOption {
        MountOption(
            name: name, form: nil, shown: isShown ? name : nil,
            set: { options, _ in
                set(&options)
                return true
            },
            word: { word($0) ? name : nil })
    }

    /// An option with a value.
    private static func value(
        _ name: String, _ shown: String = "", form: String,
        word: @escaping @Sendable (MountOptionParser) -> String? = { _ in nil },
        set: @escaping @Sendable (inout MountOptionParser, String) -> Bool
    ) -> MountOption {
        MountOption(
            name: name, form: form, shown: "\(name)=\(shown)", set: set,
            word: { word($0).map { "\(name)=\($0)" } })
    }

    /// An option without a value that sets a property to `sets`; the daemon is told if it is true.
    private static func flag(
        _ name: String, _ property: any WritableKeyPath<MountOptionParser, Bool> & Sendable,
        sets: Bool = true,
        isShown: Bool = true
    ) -> MountOption {
        flag(
            name, isShown: isShown, word: { sets && $0[keyPath: property] },
            set: { $0[keyPath: property] = sets })
    }

    /// An option whose value is any text but the empty one. It is not the daemon's.
    private static func text(
        _ name: String, form: String, _ property: any WritableKeyPath<MountOptionParser, String?> & Sendable
    ) -> MountOption {
        value(
            name, form: form,
            set: { options, text in
                options[keyPath: property] = text
                return !text.isEmpty
            })
    }

    /// The number of a user or a group.
    private static func identity(
        _ name: String, _ property: any WritableKeyPath<MountOptionParser, UInt32?> & Sendable
    ) -> MountOption {
        value(
            name, form: "a number, as id -u or id -g prints it",
            word: { $0[keyPath: property].map { "\($0)" } },
            set: { options, text in
                let number = parseNumber(text, in: 0...UInt64(UInt32.max - 1)).map { UInt32($0) }
                options[keyPath: property] = number
                return number != nil
            })
    }

    /// A property that is true by the first word and false by the second; true if neither is given.
    private static func choice(
        _ name: String, _ yes: String, _ no: String,
        _ property: any WritableKeyPath<MountOptionParser, Bool> & Sendable
    ) -> MountOption {
        value(
            name, "\(yes)|\(no)", form: "\(yes) or \(no)",
            word: { $0[keyPath: property] ? nil : no },
            set: { options, text in
                options[keyPath: property] = text == yes
                return [yes, no].contains(text)
            })
    }

    /// In the order in which help shows them.
    static let all: [MountOption] = [
        flag("ro", word: { $0.readOnly }, set: { ($0.readOnly, $0.mustWrite) = (true, false) }),
        flag(
            "rw", word: { !$0.readOnly && $0.mustWrite }, set: { ($0.readOnly, $0.mustWrite) = (false, true) }
        ),
        flag("allow_other", \.allowOther),
        identity("uid", \.uid),
        identity("gid", \.gid),
        value(
            "umask", form: "an octal number up to 777", word: { $0.umask.map { String($0, radix: 8) } },
            set: { options, text in
                options.umask = parseNumber(text, in: 0...0o777, radix: 8).map { UInt32($0) }
                return options.umask != nil
            }),
        value(
            "idle", "10m", form: "a time, such as 90s, 10m, 2h or 1d, up to \(durationDaysMax)d",
            word: { $0.idleSeconds.map { "\($0)" } },
            set: { options, text in
                options.idleSeconds = parseDuration(text).map { Int($0) }
                return options.idleSeconds != nil
            }),
        choice("suspend", "unmount", "keep", \.endsBeforeSleep),
        text("passfile", form: "a file", \.passfile),
        text("askpass", form: "a shell command", \.askpass),
        text("keyfile", form: "a file", \.keyfile),
        value(
            "thumbs", "on|listed|off", form: "on, listed or off",
            word: { $0.thumbnails == .on ? nil : $0.thumbnails.rawValue },
            set: { options, text in
                guard let chosen = ThumbnailOption(rawValue: text) else { return false }
                options.thumbnails = chosen
                return true
            }),
        value(
            "trash", "30", form: "a number of days up to \(durationDaysMax)",
            word: { $0.trashDays == MountOptionParser().trashDays ? nil : "\($0.trashDays)" },
            set: { options, text in
                guard let days = parseNumber(text, in: 0...durationDaysMax) else { return false }
                options.trashDays = Int(days)
                return true
            }),
        value(
            "versions", "30|off|forever", form: "a number of days up to \(durationDaysMax), off or forever",
            word: { $0.versions == MountOptionParser().versions ? nil : $0.versions.text },
            set: { options, text in
                guard let policy = VersionPolicy(text) else { return false }
                options.versions = policy
                return true
            }),
        flag("views", \.hasViews),
        choice("sweep", "on", "off", \.sweeps),
        flag("takeover", \.takesOver),
        flag("nonempty", \.allowsNonEmpty),
        flag("noexec", \.noExec),
        value(
            "subtype", form: "a word of letters, digits, '.', '_' and '-'",
            word: { $0.subtype == MountOptionParser().subtype ? nil : $0.subtype },
            set: { options, text in
                options.subtype = text
                return !text.isEmpty && text.utf8.allSatisfy(isSubtypeByte)
            }),
        flag("exec", \.noExec, sets: false, isShown: false),
        flag("dev", \.allowDev, isShown: false),
        flag("nodev", \.allowDev, sets: false, isShown: false),
        flag("suid", \.allowSuid, isShown: false),
        flag("nosuid", \.allowSuid, sets: false, isShown: false),
    ]

    /// The options in --help: lines of at most 76 characters, the first of 40, because it stands behind other text.
    static let helpList: String = {
        var lines = [""]
        for option in all {
            guard let shown = option.shown else { continue }
            let limit = lines.count == 1 ? 40 : 76
            let line = lines[lines.count - 1]
            if line.count + shown.count + 2 > limit, !line.isEmpty {
                lines.append(shown + ",")
            } else {
                lines[lines.count - 1] += (line.isEmpty ? "" : " ") + shown + ","
            }
        }
        return String(lines.joined(separator: "\n").dropLast())
    }()

    private static func isSubtypeByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }
}

extension VersionPolicy {
    fileprivate init?(_ word: String) {
        switch word {
        case "off": self = .off
        case "forever": self = .forever
        default:
            guard let days = parseNumber(word, in: 1...durationDaysMax) else { return nil }
            self = .days(Int(days))
        }
    }

    fileprivate var text: String {
        switch self {
        case .off: "off"
        case .forever: "forever"
        case .days(let days): "\(days)"
        }
    }
}
