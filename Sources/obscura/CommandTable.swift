/// The version that --version shows.
let programVersion = "0.1.0"

/// Every option of every command; the raw value is its name without dashes.
enum Option: String, CaseIterable {
    case spaces
    case size
    case kdfMemory = "kdf-memory"
    case kdfPasses = "kdf-passes"
    case create
    case passwordFD = "password-fd"
    case passwordFile = "password-file"
    case passwordCommand = "password-command"
    case passwordStdin = "password-stdin"
    case album
    case albums
    case dryRun = "dry-run"
    case move
    case quiet
    case mountOptions = "o"
    case foreground = "f"
    case help

    /// As typed: one dash before a single letter, two before a word.
    var spelling: String { (rawValue.utf8.count == 1 ? "-" : "--") + rawValue }

    /// What stands after it in a usage line; nil for an option without a value.
    var placeholder: String? {
        switch self {
        case .spaces, .kdfPasses, .passwordFD: "N"
        case .size, .kdfMemory: "SIZE"
        case .passwordFile: "F"
        case .passwordCommand: "CMD"
        case .mountOptions: "OPT,..."
        case .album: "NAME"
        case .albums: "link|copy|none"
        case .create, .passwordStdin, .foreground, .help, .dryRun, .move, .quiet: nil
        }
    }

    /// One line for --help.
    var summary: String {
        switch self {
        case .spaces: "how many spaces, 1 to 8 (default 2); 1 is an ordinary encrypted vault"
        case .size: "size of each space; not needed with --spaces 1"
        case .kdfMemory: "memory that trying one password takes (default 256M, at least 8M)"
        case .kdfPasses: "passes over that memory (default 3)"
        case .create: "make the vault first where there is none (takes the options of create)"
        case .passwordFD: "read the password from file descriptor N"
        case .passwordFile: "read it from file F, which only its owner may read"
        case .passwordCommand: "read it from the output of the shell command CMD"
        case .passwordStdin: "read it from standard input"
        case .album: "add the photos to album NAME too, as Trip/Day 2; made where it is missing"
        case .albums: "photos in albums: links to moments (default), copies, or left out with all of albums"
        case .dryRun: "only say what would be done; the vault is not changed"
        case .move: "remove each source once its bytes are on the disk and were read back equal"
        case .quiet: "show no progress"
        case .mountOptions: "mount options, as for mount(8)"
        case .foreground: "stay in the foreground"
        case .help: "show this help"
        }
    }

    static let passwordOptions: [Option] = [.passwordFD, .passwordFile, .passwordCommand, .passwordStdin]
    static let createOptions: [Option] = [.spaces, .size, .kdfMemory, .kdfPasses]
}

/// The commands; the raw value is what the user types.
enum Command: String, CaseIterable {
    case create
    case mount
    case unmount
    case passwd
    case spaceAdd = "space add"
    case spaceRemove = "space remove"
    case grow
    case `import`
    case export
    case backup
    case info

    /// Names of the operands; each must be given.
    var operands: [String] {
        switch self {
        case .import: ["VAULT", "PATH"]
        case .export: ["VAULT", "DIR"]
        case .backup: ["VAULT", "DEST"]
        case .create, .passwd, .spaceAdd, .spaceRemove, .info: ["VAULT"]
        case .mount: ["VAULT", "DIR"]
        case .unmount: ["DIR"]
        case .grow: ["VAULT", "SIZE"]
        }
    }

    /// Whether the last operand may be given several times.
    var takesMore: Bool { self == .import }

    /// In the order of --help.
    var options: [Option] {
        switch self {
        case .create: Option.createOptions + Option.passwordOptions + [.help]
        case .mount:
            [.mountOptions, .foreground, .create] + Option.createOptions + Option.passwordOptions + [.help]
        case .passwd, .spaceAdd, .spaceRemove: Option.passwordOptions + [.help]
        case .import: [.album, .move, .dryRun, .quiet] + Option.passwordOptions + [.help]
        case .export: [.albums, .quiet] + Option.passwordOptions + [.help]
        case .backup: [.quiet, .help]
        case .unmount, .grow, .info: [.help]
        }
    }

    /// One line for --help.
    var summary: String {
        switch self {
        case .create: "make a vault and give its first space a password"
        case .mount: "show the photos of the space that the password opens at DIR"
        case .unmount: "end a mount, once everything is safe on disk"
        case .passwd: "change the password of the space it opens"
        case .spaceAdd: "give an unused space a password"
        case .spaceRemove: "destroy the space this password opens"
        case .grow: "enlarge every space to SIZE, used or not (no password)"
        case .import: "add photos without mounting"
        case .export: "write the whole tree out, in clear, without mounting"
        case .backup: "copy the vault, or what has changed of it since the last copy, without a password"
        case .info: "what anyone can see without a password"
        }
    }

    /// A paragraph for the command's own --help.
    var details: String {
        switch self {
        case .create:
            """
            All spaces are equally large and full of random bytes, used or not, so that nobody can tell how many
            are in use; the disk cost is N x SIZE. A forgotten password means lost photos.
            """
        case .mount:
            """
            Returns once the mount is live. Mount options: \(MountWords.helpList).
            """
        case .unmount: "fusermount3 -u DIR works as well, but does not wait."
        case .passwd: "From a file, command or descriptor: the old password on a line, then the new one."
        case .spaceAdd:
            """
            From a file, command or descriptor: the new password on a line, then, one a line, the passwords of
            all spaces that must survive. The vault cannot know which of its spaces are in use: a space whose
            password is not given may be the one that is taken.
            """
        case .spaceRemove: "Its photos are gone for good. Other spaces are not touched."
        case .grow: "Works on a mounted vault as well. A vault can not be made smaller."
        case .import:
            """
            PATH is a file or a folder with all below it. Photos go under their days. Those that the space has
            already are skipped, so that an interrupted import goes on when it is run again. Sidecars (.xmp) come
            along; working files and what is no photo are left out. What obscura export wrote is restored.
            """
        case .export:
            """
            DIR must be empty or not exist. Times, modes and attributes are kept. Whoever can read DIR can see the
            photos.
            """
        case .backup:
            """
            VAULT may be mounted. DEST is a vault like any other, with the same passwords; until a new copy is
            whole it stays the one before. Who has copies of different days sees what changed between them,
            and so perhaps which spaces are in use.
            """
        case .info: "How many of the spaces are in use is not to be seen: not by this command, not by anyone."
        }
    }

    /// `mount VAULT DIR [-o OPT,...] [-f] [--create ...]`: without the options that many commands share.
    var synopsis: String {
        let shared = Option.passwordOptions + [.help] + (self == .create ? [] : Option.createOptions)
        let own = options.filter { !shared.contains($0) }.map { option in
            let value = option == .create ? "..." : option.placeholder
            return value.map { "[\(option.spelling) \($0)]" } ?? "[\(option.spelling)]"
        }
        return ([rawValue] + operands + (takesMore ? ["..."] : []) + own).joined(separator: " ")
    }
}

/// The text of `obscura COMMAND --help`.
func helpText(_ command: Command) -> String {
    let rows = command.options.map { option in
        (option.placeholder.map { "\(option.spelling) \($0)" } ?? option.spelling, option.summary)
    }
    return """
        usage: obscura \(command.synopsis)

        \(command.summary.prefix(1).uppercased() + command.summary.dropFirst()).
        \(command.details)

        \(columns(rows))

        SIZE takes K, M, G or T (powers of 1024). More in obscura(1).
        """
}

/// The text of `obscura --help`.
func helpText() -> String {
    let rows = Command.allCases.map { (([$0.rawValue] + $0.operands).joined(separator: " "), $0.summary) }
    return """
        usage: obscura COMMAND ... | COMMAND --help | --help | --version

        An encrypted photo filesystem: a vault holds spaces, each password opens one, and mounting
        shows its photos by day and by album.

        \(columns(rows))

        Passwords come from the first of these that is given: --password-fd N, --password-file F,
        --password-command CMD, --password-stdin; else they are asked for on the terminal.
        """
}

private func columns(_ rows: [(String, String)]) -> String {
    let width = rows.map(\.0.count).max() ?? 0
    return rows.map { left, right in
        "  " + left + String(repeating: " ", count: width - left.count + 2) + right
    }.joined(separator: "\n")
}
