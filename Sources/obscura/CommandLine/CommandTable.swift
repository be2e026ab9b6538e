extension Command {
    /// In the order of --help.
    static let all: [Command] = [
        .create, .mount, .unmount, .passwd, .spaceAdd, .spaceRemove, .grow, .headerExport, .headerRestore,
        .import, .export, .receive, .trash, .private, .check, .backup, .info, .status, .speed, .completion,
    ]

    static let create = Command(
        "create", [.vaultToMake],
        options: Option.createOptions + Option.passwordOptions,
        summary: "make a vault and give its first space a password",
        details: """
            All spaces are equally large and full of random bytes, used or not, so that nobody can tell how many are \
            in use; the disk cost is N x SIZE. A forgotten password means lost photos.
            """,
        alsoTyped: ["init", "new", "make", "mkfs", "format", "encrypt"], runCreate)

    static let mount = Command(
        "mount", [.vault, .directory],
        options: [.mountOptions, .foreground, .remember, .create] + Option.createOptions
            + Option.passwordOptions,
        summary: "show the photos of the space that the password opens at DIR",
        details: """
            Returns once the mount is live. A vault that cannot be written is mounted read-only, and a line says \
            why; with -o rw it is not mounted. Mount options: \(MountOption.helpList).
            """,
        alsoTyped: ["open", "unlock", "attach", "start", "decrypt", "login", "show", "view", "browse"],
        runMount)

    static let unmount = Command(
        "unmount", [.mount],
        options: [.discard, .end],
        summary: "end a mount, once everything is safe on disk",
        details: """
            What cannot be written is named, and the mount stays, unless --discard is given. So is what would keep \
            the mount alive: a bind mount, or a copy in a container or sandbox; --end cuts it off, after a last \
            commit, also if fusermount3 -u DIR has unmounted DIR already (DIR or VAULT names it then). fusermount3 \
            -u DIR works as well, but does not wait: what cannot be written for half a minute is lost then.
            """,
        alsoTyped: ["umount", "lock", "close", "eject", "detach", "stop", "quit", "exit", "logout", "end"],
        runUnmount
    )

    static let passwd = Command(
        "passwd", [.vault],
        options: Option.passwordOptions + [.newKeyFile],
        summary: "change the password of the space it opens",
        details: """
            From a file, command or descriptor: the old password on a line, then the new one. The new one takes the \
            key file of the old one, unless --new-key-file names another, or none.
            """,
        alsoTyped: [
            "password", "chpass", "changepassword", "change-password", "changepw", "passphrase", "rekey",
            "key",
        ],
        runPasswd)

    static let spaceAdd = Command(
        "space add", [.vault],
        options: Option.passwordOptions + [.newKeyFile],
        summary: "give an unused space a password",
        details: """
            From a file, command or descriptor: the new password on a line, then, one a line, the passwords of all \
            spaces that must survive. The vault cannot know which of its spaces are in use: a space whose password \
            is not given may be overwritten. Each password is tried without a key file and with every --key-file.
            """,
        alsoTyped: ["add", "adduser", "addkey", "add-space", "spaces", "user", "users"], runSpaceAdd)

    static let spaceRemove = Command(
        "space remove", [.vault],
        options: [.yes] + Option.passwordOptions,
        summary: "destroy the space this password opens",
        details: """
            After the password it says how many photos the space holds and how large it is, and destroys it only \
            when the word destroy is typed. Without a terminal it needs --yes. Its photos are then gone for good, \
            unless a copy of the header was made before. Other spaces are not touched.
            """,
        alsoTyped: ["destroy", "erase", "nuke", "remove-space", "removekey", "wipe"], runSpaceRemove)

    static let grow = Command(
        "grow", [.vault, .size],
        summary: "enlarge every space to SIZE, used or not (no password)",
        details: """
            Works on a mounted vault as well. A vault cannot be made smaller.
            """,
        alsoTyped: ["resize", "extend", "enlarge", "expand", "size"], runGrow)

    static let headerExport = Command(
        "header export", [.vault, .file],
        summary: "copy the header to F, to be kept elsewhere against its loss",
        details: """
            No password is needed. Anyone with F and the vault can open it with today's passwords, even after they \
            are changed or removed: keep F where only you can reach it.
            """,
        alsoTyped: ["header-export", "export-header"], runHeaderExport)

    static let headerRestore = Command(
        "header restore", [.vault, .file],
        summary: "restore the header from F",
        details: """
            For a vault whose header is damaged. The passwords of when F was made open again. Those set since do \
            not, and a space added since is lost. Asks first if standard input is a terminal.
            """,
        alsoTyped: ["restore", "header-restore", "import-header"], runHeaderRestore)

    static let `import` = Command(
        "import", [.vault, Operand("PATH", .file)], .repeated("..."),
        options: [.album, .takeout, .move, .dryRun, .quiet, .verbose, .json] + Option.passwordOptions,
        summary: "add photos without mounting",
        details: """
            PATH is a file or a folder with all below it. Photos go under their days. Those that the space has \
            already are skipped, so an interrupted import goes on when it is run again. Sidecars (.xmp) come along; \
            working files and files that are not photos are left out. What obscura export wrote is restored. With \
            --takeout, give all parts of the export at once: dates, places, descriptions, albums and favourites come \
            from its JSON files or tables, and what could not be matched is listed.
            """,
        alsoTyped: ["add", "copy", "cp", "put", "upload", "takeout"], runImport)

    static let export = Command(
        "export", [.vault, .directory],
        options: [.albums, .versions, .special, .quiet, .json] + Option.passwordOptions,
        summary: "write the whole tree out, in clear, without mounting",
        details: """
            DIR must be empty, not exist, or hold an export that was interrupted, which then goes on. Times, modes \
            and attributes are kept. Every user who can read DIR can see the photos. Device nodes and set-user-ID or \
            set-group-ID bits are left out and named: give --special only for a vault that nobody else has written \
            to.
            """,
        alsoTyped: ["extract", "get", "copy", "cp", "dump", "download", "restore"], runExport)

    static let receive = Command(
        "receive", [.mount],
        options: [.album, .listen, .qr, .idle, .webdav], needs: .album,
        summary: "a page for a phone on the same network, which sends its photos into an album",
        details: """
            DIR is a mounted space. Scan the code with the phone's camera; --album is needed. A code is for one \
            device: type n and Enter for another. ^C ends; so does the mount's end. Files that come twice are stored \
            once, and interrupted ones go on when they are sent again.
            """,
        alsoTyped: ["phone", "send", "share", "serve", "upload", "web", "webdav", "qr"], runReceive)

    static let trash = Command(
        "trash", [.mount, Operand("list|restore|empty", .words(TrashAction.words))], .repeated("[NAME...]"),
        options: [.all, .json],
        summary: "list, restore or destroy the contents of the trash",
        details: """
            DIR is a mounted space. list shows names, when each was removed and from where; restore NAME... brings \
            back those of that name, path or day, a photo to its day and albums, --all everything; empty destroys \
            all, and asks first on a terminal. In the list, bytes that are not UTF-8 are shown as \\xNN. Photos \
            removed from moments by any program are here, for as many days as -o trash= says.
            """,
        alsoTyped: [
            "restore", "undelete", "undo", "recover", "list", "rm", "remove", "delete", "bin", "empty",
            "clean",
            "purge",
        ], runTrash)

    static let `private` = Command(
        "private", [.vault], .command,
        options: Option.passwordOptions,
        summary: "a session that only its own programs can see, and no trace after",
        details: """
            Runs COMMAND, or a shell, with the photos at ~/Photos in a temporary, empty home directory. What else is \
            written there, or to /tmp, is gone when it ends, and all programs that it started end too; photos are \
            kept.
            """,
        alsoTyped: ["shell", "run", "exec", "session", "sandbox"], status: runPrivate)

    static let check = Command(
        "check", [Operand("VAULT|DIR", .vaultOrMount)],
        options: [.repair, .verbose, .json] + Option.passwordOptions,
        summary: "verify every stored byte; name what is damaged, by path",
        details: """
            VAULT is not mounted and nothing is written to it; DIR is a mounted space, which stays in use. Each line \
            gives all paths of a file, and what is wrong with it. The exit status is 6 if there is damage.
            """,
        alsoTyped: ["fsck", "verify", "scrub", "repair", "fix", "test", "scan"], runCheck)

    static let backup = Command(
        "backup", [.vault, Operand("DEST", .directory)],
        options: [.check, .quiet, .json] + Option.passwordOptions,
        summary: "copy the vault, or what has changed of it since the last copy, without a password",
        details: """
            VAULT may be mounted. DEST is a vault like any other, with the same passwords; until a new copy is whole \
            it stays the one before. Anyone with copies of different days sees what changed between them, and so \
            perhaps which spaces are in use.
            """,
        alsoTyped: ["copy", "sync", "clone", "mirror", "save", "snapshot"], runBackup)

    static let info = Command(
        "info", [.vault],
        options: [.json],
        summary: "show the properties that are visible without a password",
        details: """
            Nobody can see how many of the spaces are in use, with this command or otherwise.
            """,
        alsoTyped: ["show", "dump", "about"], runInfo)

    static let status = Command(
        "status", [.mount], .optional,
        options: [.json],
        summary: "a mounted space: size, photos, thumbnails, pending writes",
        details: """
            Without DIR: every mount of yours, with --json one object for each. Only the user who mounted a space, \
            or root, gets an answer.
            """,
        alsoTyped: ["ls", "list", "df", "stat", "mounts", "ps", "stats", "du", "state", "size", "usage"],
        runStatus)

    static let speed = Command(
        "speed", [],
        summary: "how fast this machine seals, opens, hashes and makes thumbnails",
        details: """
            Nothing is read from or written to any disk.
            """,
        alsoTyped: ["bench", "benchmark", "test"], runSpeed)

    static let completion = Command(
        "completion", [Operand("bash|zsh|fish", .words(Shell.names))],
        summary: "print a script that completes words of obscura in a shell",
        details: """
            For bash: source <(obscura completion bash), in ~/.bashrc. For zsh: obscura completion zsh > _obscura, in \
            a directory of $fpath. For fish: obscura completion fish > ~/.config/fish/completions/obscura.fish.
            """,
        alsoTyped: ["completions", "autocomplete", "complete"], runCompletion)
}
