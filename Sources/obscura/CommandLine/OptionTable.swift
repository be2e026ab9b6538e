extension Option {
    static let spaces = Option(
        "spaces", "N", .words((1...CreateSettings.spacesMax).map { "\($0)" }),
        summary: "how many spaces, 1 to 8 (default 2); 1 is an ordinary encrypted vault")
    static let size = Option("size", "SIZE", .size, summary: "size of each space; not needed with --spaces 1")
    static let kdfMemory = Option(
        "kdf-memory", "SIZE", .size,
        summary: "memory that trying one password takes (default 256M; 8M to 448M)")
    static let kdfPasses = Option("kdf-passes", "N", summary: "passes over that memory (default 3; 1 to 64)")

    static let create = Option(
        "create", summary: "make the vault first where there is none (takes the options of create)",
        alsoTyped: ["--init", "--new"])
    static let mountOptions = Option(
        "o", "OPT,...", .mountOptions, summary: "mount options, as for mount(8)",
        manual: """
            mount options, as for
            .Xr mount 8 :
            see
            .Sx MOUNT OPTIONS
            """,
        alsoTyped: ["--option", "--options", "--ro", "--rw", "--read-only", "--allow-other", "--nonempty"])
    static let foreground = Option(
        "f", summary: "stay in the foreground", alsoTyped: ["--foreground", "--fg", "--no-daemon"])

    static let remember = Option(
        "remember",
        summary: "take the password from the desktop's keyring, and keep it there (one space only)",
        manual: """
            takes the password from the keyring of the desktop, by
            .Xr secret-tool 1 .
            If it has none, or one that opens no space any more, the password is asked for, or read, as without this
            option, and kept there once it has opened the vault.
            Whoever can use the keyring can open the vault.
            Refused for vaults of several spaces: a password in the keyring would show that its space is in use.
            A key file is not kept: give it each time
            """,
        alsoTyped: ["--save-password", "--keyring"])

    static let passwordFD = Option(
        "password-fd", "N", summary: "read the password from file descriptor N",
        manual: "an open file descriptor")
    static let passwordFile = Option(
        "password-file", "F", .file, summary: "read it from file F, which only its owner may read",
        manual: "a file, refused when its group or others may read it",
        alsoTyped: ["--passfile", "--passwordfile"])
    static let passwordCommand = Option(
        "password-command", "CMD", summary: "read it from the output of the shell command CMD",
        manual: "the output of a shell command", alsoTyped: ["--extpass", "--askpass"])
    static let passwordStdin = Option(
        "password-stdin", summary: "read it from standard input", manual: "standard input",
        alsoTyped: ["--password", "--pass", "-p", "--stdin", "-S"])
    static let keyFile = Option(
        "key-file", "F", .file, summary: "any file; the password opens nothing without it",
        manual: """
            in addition to one of these, or the terminal: any file of 1 byte to 16 MiB.
            Its bytes are combined with the password, which opens nothing without them: change or lose the file and the
            photos are lost.
            Nothing in the vault tells whether there is one.
            It applies to all passwords of a command, except that
            .Fl -new-key-file Ar F
            names the key file of the new password of
            .Cm passwd
            and
            .Cm space add ;
            with
            .Fl -new-key-file Cm none
            that password has none.
            .Cm space add
            takes several
            .Fl -key-file :
            every password that must survive is tried without one and with each.
            """,
        alsoTyped: ["-k", "--keyfile"])
    static let newKeyFile = Option(
        "new-key-file", "F|none", .file,
        summary: "the key file of the new password (default: that of --key-file)",
        manual: """
            the key file of the new password, or none; see
            .Sx PASSWORDS
            """)

    static let album = Option(
        "album", "NAME", summary: "add the photos to album NAME too, such as Trip/Day 2; made if missing",
        manual: """
            adds the photos to an album too, also photos that were there already; it is made if missing.
            .Ar NAME
            is such as
            .Ql Phone
            or
            .Ql Trip/Day 2
            """,
        alsoTyped: ["-a"])
    static let takeout = Option(
        "takeout",
        summary: "PATH is an export of Google Photos or iCloud Photos: its folder, or its zip files",
        manual: """
            each
            .Ar PATH
            is an export of Google Photos or iCloud Photos, as a folder or as the zip files it came in.
            Give all parts at once.
            Albums become albums, favourites names in
            .Pa albums/Favourites ,
            and dates, places and descriptions that only the export has are written to an XMP sidecar beside their
            photo.
            A photo in several folders is stored once.
            An edited photo becomes the present one of its original, which is kept in
            .Pa .versions ;
            if the original was edited in the space, it stays as it is.
            What could not be matched is listed at the end, and so are photos that lie in the trash of the space, where
            they stay.
            Repeated, it adds nothing twice, also if photos were edited, dated anew or renamed meanwhile.
            Not with
            .Fl -album
            or
            .Fl -move
            """,
        alsoTyped: ["--google", "--icloud"])
    static let move = Option(
        "move", summary: "remove each source once its bytes are on the disk and were read back and compared",
        manual: """
            removes each source, duplicates too, once its bytes are on the disk and were read back and compared; folders
            stay, and so do files that only a version of a photo has the bytes of.
            All files that stay are counted at the end, and the first ten named.
            A symbolic link to a file is refused
            """,
        alsoTyped: ["--delete", "--remove", "--remove-source-files"])
    static let dryRun = Option(
        "dry-run", summary: "only say what would be done; the vault is not changed",
        manual: "says what would be done and changes nothing", alsoTyped: ["-n", "--dryrun"])
    static let quiet = Option(
        "quiet", summary: "show no progress", manual: "shows no progress", alsoTyped: ["-q"])
    static let json = Option(
        "json", summary: "print JSON, one object on a line, instead of text; its members are in obscura(1)",
        manual: """
            prints one JSON object, or several, each on a line; see
            .Sx JSON
            """)

    static let albums = Option(
        "albums", "link|copy|none", .words(["link", "copy", "none"]),
        summary: "photos in albums: links to moments (default), copies, or left out with all of albums",
        manual: """
            .Cm link :
            photos in albums are links to those in moments (default);
            .Cm copy :
            files of their own;
            .Cm none :
            albums are left out
            """)
    static let versions = Option(
        "versions",
        summary: "also export the versions of edited photos: .versions/NAME beside each in moments",
        manual: """
            writes what photos were before they were edited too: a directory
            .Pa .versions/NAME
            beside each photo in
            .Pa moments ,
            and beside files in
            .Pa albums
            that are no photos any more, or copies of a photo;
            .Cm import
            reads them again
            """)
    static let special = Option(
        "special", summary: "make device nodes, as root, and keep set-user-ID and set-group-ID",
        manual: """
            makes device nodes too, as root, and keeps set-user-ID and set-group-ID bits.
            Without it both are left out, and each is named in the report: from a vault that somebody else has written
            to they could compromise the machine
            """)

    static let listen = Option(
        "listen", "ADDR[:PORT]",
        summary: "the address to listen on (default: that of the default route, port 8443)",
        manual: """
            listens there and nowhere else: an address of this machine in numbers, which a link can hold, so not
            .Ql 0.0.0.0
            or a link-local one.
            Default: the address of the default route, and port 8443, or a free one if that is taken
            """,
        alsoTyped: ["--port", "--address", "--bind"])
    static let qr = Option(
        "qr", "FILE", .file, summary: "keep the QR code in FILE, a PNG picture, as long as the session lasts",
        manual: """
            writes the code as a PNG picture to
            .Ar FILE ,
            which must not exist and is removed at the end, unless another file has taken its place
            """)
    static let idle = Option(
        "idle", "TIME|off", .words(["10m", "1h", "off"]),
        summary: "end after this long without activity (default 10m)",
        manual: """
            ends after this long without activity.
            Default: 10m
            """,
        alsoTyped: ["--timeout"])
    static let webdav = Option(
        "webdav", summary: "also serve WebDAV, for apps, with a password for this session",
        manual: """
            also serves WebDAV, for apps that send by it, with a user and a password for this session.
            They can add files and directories, and can not read, change or remove any; they are shown only what they
            have added
            """)

    static let check = Option(
        "check",
        summary: "with a password: check the space that it opens, and copy no damage over a good copy",
        manual: """
            asks for a password, reads all of the space that it opens, as
            .Cm check
            does, and copies no damaged extent or page over the copy's own bytes; the status is 6 then, and files are
            named.
            The vault must not be mounted.
            Spaces that this password does not open are copied as they are.
            If the newest state of the space cannot be read, nothing is copied
            """,
        alsoTyped: ["--verify"])
    static let repair = Option(
        "repair", summary: "list the possible repairs, and carry them out; no readable data is lost",
        manual: """
            says what can be repaired, asks on a terminal, and does it: pages with one damaged copy are rewritten,
            sectors that are not in use freed, counts and indexes corrected, damaged thumbnails dropped, files of
            segments that have each other's names (in a vault of one space) renamed, files of segments that are too long
            cut, and the file of all spaces filled up to its last whole segments.
            Invalid names and sizes are replaced by valid ones; files and directories that have lost their place go into
            .Pa albums/Recovered .
            If two files claim the same sectors, the one whose bytes can be authenticated keeps them; the other loses
            them, and reading them there stays an error.
            If the catalogue cannot be read completely, it is rebuilt from the photos and from their names, days and
            albums, which are also stored beside each of them.
            Nothing that can be read is lost: damaged files stay with their names and sizes, and their intact parts stay
            readable; reading the rest is an error, and a check names it.
            Files whose names are lost are in
            .Pa albums/Recovered
            as well, named by numbers; where the end of one may be lost, reading there is an error.
            So are other states of files, from before or after an edit, whose names may be away.
            While files are incomplete, segments that are away are not made anew: put back, they are taken up again, at
            once or by the next
            .Fl -repair .
            Before the catalogue is rebuilt without them, copy the vault: it may take the number of a last segment.
            The status is 0 when nothing is damaged any more
            """,
        alsoTyped: ["--fix", "-y", "-p"])
    static let verbose = Option(
        "verbose", summary: "name every file of a list, not only the first ones",
        manual: "names all of them", alsoTyped: ["-v"])

    static let discard = Option(
        "discard", summary: "discard changes that cannot be written; all others are written first",
        manual: """
            unmounts in any case: what cannot be written within half a minute is discarded, and programs that use the
            mount get errors
            """,
        alsoTyped: ["--force", "-f"])
    static let end = Option(
        "end", summary: "cut off what still holds the mount: bind mounts, containers and sandboxes",
        manual: """
            cuts off everything that holds the mount, in every mount namespace, after a last commit: programs there get
            errors.
            It also ends a mount that
            .Xr umount 8
            has taken away from
            .Ar DIR
            while something still holds it, which
            .Cm mount
            and
            .Cm status
            name: give
            .Ar DIR
            as before, or the vault
            """,
        alsoTyped: ["--lazy", "-l", "-z"])
    static let yes = Option(
        "yes", summary: "do not ask; needed where there is no terminal",
        manual: """
            does not ask.
            Without it, and without a terminal, the command is refused, wherever the password comes from
            """,
        alsoTyped: ["-y", "--force", "--assume-yes"])
    static let all = Option("all", summary: "restore everything in the trash", manual: "restores everything")
    static let help = Option("help", summary: "show this help", manual: "shows a command's help")

    /// Options that several commands take, each described once in the manual.
    static let passwordOptions: [Option] = [
        .passwordFD, .passwordFile, .passwordCommand, .passwordStdin, .keyFile,
    ]
    static let createOptions: [Option] = [.spaces, .size, .kdfMemory, .kdfPasses]
}
