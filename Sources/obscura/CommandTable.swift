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
    case keyFile = "key-file"
    case newKeyFile = "new-key-file"
    case album
    case albums
    case special
    case versions
    case takeout
    case all
    case listen
    case qr
    case idle
    case webdav
    case dryRun = "dry-run"
    case move
    case quiet
    case check
    case repair
    case verbose
    case discard
    case end
    case yes
    case json
    case mountOptions = "o"
    case foreground = "f"
    case help

    /// As typed: one dash before a single letter, two before a word.
    var spelling: String { (rawValue.utf8.count == 1 ? "-" : "--") + rawValue }

    /// The name of its value in a usage line; nil for an option without a value.
    var placeholder: String? {
        switch self {
        case .spaces, .kdfPasses, .passwordFD: "N"
        case .size, .kdfMemory: "SIZE"
        case .passwordFile, .keyFile: "F"
        case .newKeyFile: "F|none"
        case .passwordCommand: "CMD"
        case .mountOptions: "OPT,..."
        case .album: "NAME"
        case .listen: "ADDR[:PORT]"
        case .qr: "FILE"
        case .idle: "TIME|off"
        case .albums: "link|copy|none"
        case .create, .passwordStdin, .foreground, .help, .takeout, .dryRun, .move, .quiet, .check, .repair,
            .verbose, .discard, .end, .yes, .json, .special, .versions, .webdav, .all:
            nil
        }
    }

    /// One line for --help.
    var summary: String {
        switch self {
        case .spaces: "how many spaces, 1 to 8 (default 2); 1 is an ordinary encrypted vault"
        case .size: "size of each space; not needed with --spaces 1"
        case .kdfMemory: "memory that trying one password takes (default 256M; 8M to 448M)"
        case .kdfPasses: "passes over that memory (default 3; 1 to 64)"
        case .create: "make the vault first where there is none (takes the options of create)"
        case .passwordFD: "read the password from file descriptor N"
        case .passwordFile: "read it from file F, which only its owner may read"
        case .passwordCommand: "read it from the output of the shell command CMD"
        case .passwordStdin: "read it from standard input"
        case .keyFile: "any file; the password opens nothing without it"
        case .newKeyFile: "the key file of the new password (default: that of --key-file)"
        case .album: "add the photos to album NAME too, such as Trip/Day 2; made if missing"
        case .all: "restore everything in the trash"
        case .listen: "the address to listen on (default: that of the default route, port 8443)"
        case .qr: "keep the QR code in FILE, a PNG picture, as long as the session lasts"
        case .idle: "end after this long without activity (default 10m)"
        case .webdav: "also serve WebDAV, for apps, with a password for this session"
        case .albums: "photos in albums: links to moments (default), copies, or left out with all of albums"
        case .special: "make device nodes, as root, and keep set-user-ID and set-group-ID"
        case .versions:
            "also export the versions of edited photos: .versions/NAME beside each in moments"
        case .takeout: "PATH is an export of Google Photos or iCloud Photos: its folder, or its zip files"
        case .dryRun: "only say what would be done; the vault is not changed"
        case .move: "remove each source once its bytes are on the disk and were read back and compared"
        case .quiet: "show no progress"
        case .check: "with a password: check the space that it opens, and copy no damage over a good copy"
        case .repair: "list the possible repairs, and carry them out; no readable data is lost"
        case .verbose: "name all files that cannot be shown, not only the first ten"
        case .discard: "discard changes that cannot be written; all others are written first"
        case .end: "cut off what still holds the mount: bind mounts, containers and sandboxes"
        case .yes: "do not ask; needed where there is no terminal"
        case .json: "print JSON, one object on a line, instead of text; its members are in obscura(1)"
        case .mountOptions: "mount options, as for mount(8)"
        case .foreground: "stay in the foreground"
        case .help: "show this help"
        }
    }

    static let passwordOptions: [Option] = [
        .passwordFD, .passwordFile, .passwordCommand, .passwordStdin, .keyFile,
    ]
    static let createOptions: [Option] = [.spaces, .size, .kdfMemory, .kdfPasses]
}

/// The commands; the raw value is the typed word.
enum Command: String, CaseIterable {
    case create
    case mount
    case unmount
    case passwd
    case spaceAdd = "space add"
    case spaceRemove = "space remove"
    case grow
    case headerExport = "header export"
    case headerRestore = "header restore"
    case `import`
    case export
    case receive
    case trash
    case `private`
    case check
    case backup
    case info
    case status
    case speed

    /// Names of the operands; each must be given, unless `mayTakeNone`.
    var operands: [String] {
        switch self {
        case .import: ["VAULT", "PATH"]
        case .export: ["VAULT", "DIR"]
        case .trash: ["DIR", "list|restore|empty"]
        case .backup: ["VAULT", "DEST"]
        case .create, .passwd, .spaceAdd, .spaceRemove, .private, .info: ["VAULT"]
        case .mount: ["VAULT", "DIR"]
        case .unmount, .receive: ["DIR"]
        case .check: ["VAULT|DIR"]
        case .status: ["DIR"]
        case .speed: []
        case .grow: ["VAULT", "SIZE"]
        case .headerExport, .headerRestore: ["VAULT", "F"]
        }
    }

    /// Whether the last operand may be given several times.
    var takesMore: Bool { self == .import || self == .trash }

    /// Whether the words of another command may follow.
    var takesCommand: Bool { self == .private }

    /// Whether the operand may be left out.
    var mayTakeNone: Bool { self == .status }

    /// In the order of --help.
    var options: [Option] {
        switch self {
        case .create: Option.createOptions + Option.passwordOptions + [.help]
        case .mount:
            [.mountOptions, .foreground, .create] + Option.createOptions + Option.passwordOptions + [.help]
        case .passwd, .spaceAdd: Option.passwordOptions + [.newKeyFile, .help]
        case .spaceRemove: [.yes] + Option.passwordOptions + [.help]
        case .private: Option.passwordOptions + [.help]
        case .import: [.album, .takeout, .move, .dryRun, .quiet, .json] + Option.passwordOptions + [.help]
        case .export: [.albums, .versions, .special, .quiet, .json] + Option.passwordOptions + [.help]
        case .receive: [.album, .listen, .qr, .idle, .webdav, .help]
        case .backup: [.check, .quiet, .json] + Option.passwordOptions + [.help]
        case .check: [.repair, .verbose, .json] + Option.passwordOptions + [.help]
        case .unmount: [.discard, .end, .help]
        case .status, .info: [.json, .help]
        case .trash: [.all, .help]
        case .grow, .headerExport, .headerRestore, .speed: [.help]
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
        case .headerExport: "copy the header to F, to be kept elsewhere against its loss"
        case .headerRestore: "restore the header from F"
        case .import: "add photos without mounting"
        case .export: "write the whole tree out, in clear, without mounting"
        case .receive: "a page for a phone on the same network, which sends its photos into an album"
        case .trash: "list, restore or destroy the contents of the trash"
        case .private: "a session that only its own programs can see, and no trace after"
        case .check: "verify every stored byte; name what is damaged, by path"
        case .backup: "copy the vault, or what has changed of it since the last copy, without a password"
        case .info: "show the properties that are visible without a password"
        case .status: "a mounted space: size, photos, thumbnails, pending writes"
        case .speed: "how fast this machine seals, opens, hashes and makes thumbnails"
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
            Returns once the mount is live. A vault that cannot be written is mounted read-only, and a line says why;
            with -o rw it is not mounted. Mount options: \(MountOption.helpList).
            """
        case .unmount:
            """
            What cannot be written is named, and the mount stays, unless --discard is given. So is what would keep the
            mount alive: a bind mount, or a copy in a container or sandbox; --end cuts it off, after a last commit, also
            if fusermount3 -u DIR has unmounted DIR already (DIR or VAULT names it then). fusermount3 -u DIR works as
            well, but does not wait: what cannot be written for half a minute is lost then.
            """
        case .passwd:
            """
            From a file, command or descriptor: the old password on a line, then the new one. The new one takes the
            key file of the old one, unless --new-key-file names another, or none.
            """
        case .spaceAdd:
            """
            From a file, command or descriptor: the new password on a line, then, one a line, the passwords of
            all spaces that must survive. The vault cannot know which of its spaces are in use: a space whose
            password is not given may be overwritten. Each password is tried without a key file and with every
            --key-file.
            """
        case .spaceRemove:
            """
            After the password it says how many photos the space holds and how large it is, and destroys it only when
            the word destroy is typed. Without a terminal it needs --yes. Its photos are then gone for good, unless a
            copy of the header was made before. Other spaces are not touched.
            """
        case .grow: "Works on a mounted vault as well. A vault cannot be made smaller."
        case .headerExport:
            """
            No password is needed. Anyone with F and the vault can open it with today's passwords, even after they are
            changed or removed: keep F where only you can reach it.
            """
        case .headerRestore:
            """
            For a vault whose header is damaged. The passwords of when F was made open again. Those set since do not,
            and a space added since is lost. Asks first if standard input is a terminal.
            """
        case .import:
            """
            PATH is a file or a folder with all below it. Photos go under their days. Those that the space has
            already are skipped, so an interrupted import goes on when it is run again. Sidecars (.xmp) come along;
            working files and files that are not photos are left out. What obscura export wrote is restored.
            With --takeout, give all parts of the export at once: dates, places, descriptions, albums and favourites
            come from its JSON files or tables, and what could not be matched is listed.
            """
        case .export:
            """
            DIR must be empty, not exist, or hold an export that was interrupted, which then goes on. Times, modes and
            attributes are kept. Every user who can read DIR can see the photos. Device nodes and set-user-ID or
            set-group-ID bits are left out and named: give --special only for a vault that nobody else has written to.
            """
        case .receive:
            """
            DIR is a mounted space. Scan the code with the phone's camera; --album is needed. A code is for one device:
            type n and Enter for another. ^C ends; so does the mount's end. Files that come twice are stored once, and
            interrupted ones go on when they are sent again.
            """
        case .trash:
            """
            DIR is a mounted space. list shows names, when each was removed and from where; restore NAME... brings
            back those of that name, path or day, a photo to its day and albums, --all everything; empty destroys all,
            and asks first on a terminal. In the list, bytes that are not UTF-8 are shown as \\xNN. Photos removed
            from moments by any program are here, for as many days as -o trash= says.
            """
        case .private:
            """
            Runs COMMAND, or a shell, with the photos at ~/Photos in a temporary, empty home directory. What else is
            written there, or to /tmp, is gone when it ends, and all programs that it started end too; photos are kept.
            """
        case .check:
            """
            VAULT is not mounted and nothing is written to it; DIR is a mounted space, which stays in use. Each line
            gives all paths of a file, and what is wrong with it. The exit status is 6 if there is damage.
            """
        case .status:
            """
            Without DIR: every mount of yours, with --json one object for each. Only the user who mounted a space, or
            root, gets an answer.
            """
        case .speed: "Nothing is read from or written to any disk."
        case .backup:
            """
            VAULT may be mounted. DEST is a vault like any other, with the same passwords; until a new copy is
            whole it stays the one before. Anyone with copies of different days sees what changed between
            them, and so perhaps which spaces are in use.
            """
        case .info: "Nobody can see how many of the spaces are in use, with this command or otherwise."
        }
    }

    /// `mount VAULT DIR [-o OPT,...] [-f] [--create ...]`: without the options that many commands share.
    var synopsis: String {
        let shared = Option.passwordOptions + [.help] + (self == .create ? [] : Option.createOptions)
        let own = options.filter { !shared.contains($0) }.map { option in
            let value = option == .create ? "..." : option.placeholder
            return value.map { "[\(option.spelling) \($0)]" } ?? "[\(option.spelling)]"
        }
        let operands = mayTakeNone ? operands.map { "[\($0)]" } : operands
        let more = takesMore ? [self == .trash ? "[NAME...]" : "..."] : []
        let other = takesCommand ? ["[-- COMMAND...]"] : []
        return ([rawValue] + operands + more + own + other).joined(separator: " ")
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
