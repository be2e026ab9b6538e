import PhotoLibrary
import PhotoRules

extension MountOption {
    /// In the order in which help and the manual show them.
    static let all: [MountOption] = [
        flag("ro", word: { $0.readOnly }, set: { ($0.readOnly, $0.mustWrite) = (true, false) }),
        flag(
            "rw",
            manual: """
                read-only; read and write, and no mount if that is not possible.
                Without either it is read and write if possible.
                On a Ceph cluster
                .Cm ro
                also works while another mount writes, and shows what that one has made durable, a minute later at most
                """,
            word: { !$0.readOnly && $0.mustWrite }, set: { ($0.readOnly, $0.mustWrite) = (false, true) }),
        flag(
            "allow_other", \.allowOther,
            manual: """
                other users may enter; unless mounted by root,
                .Pa /etc/fuse.conf
                must contain
                .Ql user_allow_other .
                Only the owner may enter
                .Pa moments
                and
                .Pa views :
                they show photos of albums that others perhaps may not enter.
                .Xr chmod 1
                opens
                .Pa moments ,
                and its days as well: each is made with the mode that
                .Pa moments
                has.
                In older vaults it may be open already.
                Thumbnails have the owner and the permissions, less write, of their photos, their directories those of
                the directories
                that they mirror; covers and contact sheets leave out photos that their reader may not read
                """),
        identity("uid", \.uid),
        identity("gid", \.gid),
        value(
            "umask", "OCTAL", form: "an octal number up to 777",
            manual: """
                shown owner, group and cleared permission bits; the trash that is there from the start is that of the
                shown owner if
                root mounts
                """,
            word: { $0.umask.map { String($0, radix: 8) } },
            set: { options, text in
                options.umask = parseNumber(text, in: 0...0o777, radix: 8).map { UInt32($0) }
                return options.umask != nil
            }),
        value(
            "idle", "TIME", form: "a time, such as 90s, 10m, 2h or 1d, up to \(durationDaysMax)d",
            manual: """
                unmounts when nothing was used for so long and no file is open; takes s, m, h and d, up to 36500d
                """,
            word: { $0.idleSeconds.map { "\($0)" } },
            set: { options, text in
                options.idleSeconds = parseDuration(text).map { Int($0) }
                return options.idleSeconds != nil
            }),
        choice(
            "suspend", "unmount", "keep", \.endsBeforeSleep,
            manual: """
                what happens when
                .Xr systemd-logind 8
                says that the machine is about to sleep:
                .Cm unmount
                (default) as for SIGPWR below, so that no key is in the memory of a sleeping machine;
                .Cm keep
                for work that is to go on afterwards; the keys stay in memory
                """),
        text("passfile", "F", form: "a file", \.passfile),
        text(
            "askpass", "CMD", form: "a shell command", \.askpass,
            manual: """
                as
                .Fl -password-file
                and
                .Fl -password-command ;
                a comma is written as
                .Ql \\e,
                """),
        text(
            "keyfile", "F", form: "a file", \.keyfile,
            manual: """
                as
                .Fl -key-file
                """),
        text("ceph-conf", "F", form: "a file", \.clusterConfiguration),
        text(
            "ceph-id", "NAME", form: "a name", \.clusterUser,
            manual: """
                for a vault on a Ceph cluster: the file that says where it is, as
                .Ev CEPH_CONF ,
                and the user to be there (default admin)
                """),
        value(
            "thumbs", "on|listed|off", form: "on, listed or off",
            manual: """
                thumbnails (default on).
                Those of 256 pixels are made in the background while the machine is idle, and kept in the vault as
                long as all that are
                kept take at most 1.5 % of the photos' bytes;
                .Cm listed
                shows
                .Pa .thumbs
                in listings, so that
                .Ic find , cp -r
                and
                .Ic rm -r
                walk into it;
                .Ic rm -r
                cannot remove it
                """,
            word: { $0.thumbnails == .on ? nil : $0.thumbnails.rawValue },
            set: { options, text in
                guard let chosen = ThumbnailOption(rawValue: text) else { return false }
                options.thumbnails = chosen
                return true
            }),
        value(
            "trash", "DAYS", form: "a number of days up to \(durationDaysMax)",
            manual: """
                how long removed photos are kept, and a day more (default 30), unless their room is needed before; 0:
                a photo removed
                from moments is gone at once, and destroyed three seconds later, because its program may be about to
                save it anew
                """,
            word: { $0.trashDays == MountOptionParser().trashDays ? nil : "\($0.trashDays)" },
            set: { options, text in
                guard let days = parseNumber(text, in: 0...durationDaysMax) else { return false }
                options.trashDays = Int(days)
                return true
            }),
        value(
            "versions", "DAYS|off|forever",
            form: "a number of days up to \(durationDaysMax), off or forever",
            manual: """
                how long versions of edited photos are kept (default 30); the original stays as long as its photo.
                With
                .Cm off
                none are made.
                See
                .Sx VERSIONS
                """,
            word: { $0.versions == MountOptionParser().versions ? nil : $0.versions.text },
            set: { options, text in
                guard let policy = VersionPolicy(text) else { return false }
                options.versions = policy
                return true
            }),
        flag(
            "views", \.hasViews,
            manual: """
                shows photos by camera, date, place, type, rating and likeness in
                .Pa views ,
                in the root (default: no). See
                .Sx VIEWS
                """),
        choice(
            "sweep", "on", "off", \.sweeps,
            manual: """
                whether traces that desktop programs keep outside the vault are removed in the end (default on); see
                .Cm unmount
                """),
        flag(
            "takeover", \.takesOver,
            manual: """
                takes the space over from another computer that has it open for writing, or had and did not unmount
                it; see
                .Sx SEVERAL COMPUTERS .
                Not for
                .Xr fstab 5
                """),
        value(
            "share", "handover|no", form: "handover or no",
            manual: """
                for a vault on a Ceph cluster:
                .Cm handover
                unmounts when a mount with the space's password asks for the vault, from any computer, unless a file is
                open for writing; files open for reading fail soon after that (default no: the other one is told where
                the vault is mounted)
                """,
            word: { $0.handsOver ? "handover" : nil },
            set: { options, text in
                options.handsOver = text == "handover"
                return ["handover", "no"].contains(text)
            }),
        flag(
            "nonempty", \.allowsNonEmpty,
            manual: """
                mounts also on a directory that has files, which are hidden until the unmount; a line says how many
                """),
        value(
            "subtype", "WORD", form: "a word of letters, digits, '.', '_' and '-'",
            manual: """
                the type is shown as fuse.WORD
                """,
            word: { $0.subtype == MountOptionParser.standardSubtype ? nil : $0.subtype },
            set: { options, text in
                options.subtype = text
                return !text.isEmpty && text.utf8.allSatisfy(isSubtypeByte)
            }),
        value(
            "fsname", "NAME", form: "a name",
            manual: """
                .Xr mount 8
                and
                .Xr findmnt 8
                show NAME as the source, to every user, instead of
                .Ql obscura ;
                front ends give it.
                Together with another
                .Cm subtype
                it is accepted and not shown
                """,
            word: { $0.fsname.map(escapedOptionValue) },
            set: { options, text in
                options.fsname = text
                return !text.isEmpty
            }),
        flag("noexec", \.noExec),
        flag(
            "exec", \.noExec, sets: false, isShown: false,
            manual: "programs in the space cannot be run, or can (default)"),
        flag("nodev", \.allowDev, sets: false, isShown: false),
        flag("dev", \.allowDev, isShown: false),
        flag("nosuid", \.allowSuid, sets: false, isShown: false),
        flag(
            "suid", \.allowSuid, isShown: false,
            manual: """
                .Cm nodev
                and
                .Cm nosuid
                always hold, unless root says otherwise
                """),
    ]

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
