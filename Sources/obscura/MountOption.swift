import Glibc
import PhotoLibrary
import PhotoRules

/// A mount option. One row of `all` has its name, what help shows of it, how it is read, and how the daemon is told of
/// it: a new option is a row, and its use.
struct MountOption: Sendable {
    let name: String
    /// What the value must be, as an error says it; nil if the option takes none.
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

    /// In the order in which help shows them.
    static let all: [MountOption] = [
        flag("ro", word: { $0.readOnly }, set: { ($0.readOnly, $0.mustWrite) = (true, false) }),
        flag(
            "rw", word: { !$0.readOnly && $0.mustWrite }, set: { ($0.readOnly, $0.mustWrite) = (false, true) }
        ),
        flag("allow_other", word: { $0.allowOther }, set: { $0.allowOther = true }),
        value(
            "uid", form: ofIdentity, word: { $0.uid.map { "\($0)" } },
            set: { options, text in
                options.uid = identity(text)
                return options.uid != nil
            }),
        value(
            "gid", form: ofIdentity, word: { $0.gid.map { "\($0)" } },
            set: { options, text in
                options.gid = identity(text)
                return options.gid != nil
            }),
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
        value(
            "suspend", "unmount|keep", form: "unmount or keep",
            word: { $0.endsBeforeSleep ? nil : "keep" },
            set: { options, text in
                options.endsBeforeSleep = text == "unmount"
                return ["unmount", "keep"].contains(text)
            }),
        value(
            "passfile", form: "a file",
            set: { options, text in
                options.passfile = text
                return !text.isEmpty
            }),
        value(
            "askpass", form: "a shell command",
            set: { options, text in
                options.askpass = text
                return !text.isEmpty
            }),
        value(
            "keyfile", form: "a file",
            set: { options, text in
                options.keyfile = text
                return !text.isEmpty
            }),
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
        flag("views", word: { $0.hasViews }, set: { $0.hasViews = true }),
        value(
            "sweep", "on|off", form: "on or off", word: { $0.sweeps ? nil : "off" },
            set: { options, text in
                options.sweeps = text == "on"
                return ["on", "off"].contains(text)
            }),
        flag("takeover", word: { $0.takesOver }, set: { $0.takesOver = true }),
        flag("nonempty", word: { $0.allowsNonEmpty }, set: { $0.allowsNonEmpty = true }),
        flag("noexec", word: { $0.noExec }, set: { $0.noExec = true }),
        value(
            "subtype", form: "a word of letters, digits, '.', '_' and '-'",
            word: { $0.subtype == MountOptionParser().subtype ? nil : $0.subtype },
            set: { options, text in
                options.subtype = text
                return !text.isEmpty && text.utf8.allSatisfy(isSubtypeByte)
            }),
        flag("exec", isShown: false, set: { $0.noExec = false }),
        flag("dev", isShown: false, word: { $0.allowDev }, set: { $0.allowDev = true }),
        flag("nodev", isShown: false, set: { $0.allowDev = false }),
        flag("suid", isShown: false, word: { $0.allowSuid }, set: { $0.allowSuid = true }),
        flag("nosuid", isShown: false, set: { $0.allowSuid = false }),
    ]

    /// Those that help shows, in lines of at most so many characters, the first of which continues another.
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

    private static let ofIdentity = "a number, as id -u or id -g prints it"

    private static func identity(_ text: String) -> UInt32? {
        parseNumber(text, in: 0...UInt64(UInt32.max - 1)).map { UInt32($0) }
    }

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
