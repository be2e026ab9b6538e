import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Mounts by an ordinary user: the one who runs the tests, or nobody if that is root.
@Suite("Mount options: mounts of ordinary users", .serialized, .waiting) struct UserMountTests {
    /// nobody, in every Debian: fusermount3 refuses numbers that have no name.
    private static let user = 65_534

    /// A place whose vault and mount point are the user's, and a copy of the program that the user may run.
    private func makePlace() throws -> Place {
        let place = try Place()
        try place.shell(
            "mkdir bin; cp '\(obscura)' '\(obscura)-worker' '\(obscura)-guard' bin; "
                + "printf 'one\\n' >pw; chmod 600 pw; chmod 755 .")
        if geteuid() == 0 { try place.shell("chown -R \(Self.user):\(Self.user) .") }
        return place
    }

    /// Words that make a command the user's.
    private var asUser: [String] {
        geteuid() == 0
            ? ["setpriv", "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups"] : []
    }

    /// A command that keeps a copy of the mounts of this place, and of no other test's, in a mount namespace of its
    /// own.
    private var hold: String {
        "unshare \(geteuid() == 0 ? "" : "--user --map-root-user") --mount --propagation slave "
            + "sh -c 'mount --make-private $(findmnt -no TARGET -T .); echo >ready; exec sleep 600'"
    }

    private func run(_ place: Place, _ words: String...) throws -> Ended { try place.run(asUser + words) }

    /// Lines of a shell that is the user's and ends at the first failure.
    private func shell(_ place: Place, _ line: String) throws -> String {
        let ended = try place.run(asUser + ["/bin/bash", "-ec", line])
        #expect(ended.status == 0, "\(line): \(ended.errors)")
        return ended.output
    }

    /// Its guard took the hidden daemon for dead, and cut the mount off.
    @Test func `a user's mount lives where processes are hidden`() throws {
        guard geteuid() == 0 else { return }
        let place = try makePlace()
        let connections = "/sys/fs/fuse/connections"
        let line = """
            mount -t proc -o hidepid=2 none /proc
            mountpoint -q \(connections) || mount -t fusectl none \(connections)
            as() { \(asUser.joined(separator: " ")) "$@"; }
            as bin/obscura mount V D --password-file pw
            pgrep -P $(pgrep -o -f "^obscura --daemon .*$PWD/V ") obscura-guard >guard
            for n in {1..100}; do as ls D/albums; sleep 0.01; done
            as bin/obscura unmount D
            """
        let ended = try place.run(["unshare", "-m", "--propagation", "slave", "/bin/bash", "-ec", line])
        #expect(ended.status == 0, "\(ended.errors)")
    }

    @Test func `a user makes a vault, mounts, copies and unmounts`() throws {
        let place = try makePlace()
        try place.source("a.jpg", Photo(width: 300, height: 200).bytes, modified: 1_500_000_000)
        try place.source("sub/notes.txt", Array("hello".utf8))
        _ = try shell(
            place,
            "bin/obscura create V2 --spaces=1 --kdf-memory=8M --kdf-passes=1 --password-file pw 2>/dev/null")
        let wrong = try place.run(asUser + ["bin/obscura", "mount", "V2", "D", "--password-stdin"], "two\n")
        #expect(wrong.status == 4 && wrong.errors.split(separator: "\n").count == 1)

        _ = try shell(
            place, "bin/obscura mount V2 D -o dev,suid --password-file pw; rsync -a source/ D/albums/")
        #expect(try shell(place, "rsync -ai source/ D/albums/; diff -r source D/albums") == "")
        #expect(
            try shell(place, "stat -c %u D D/albums D/albums/a.jpg D/moments/2019-03-04/a.jpg | sort -u")
                == (geteuid() == 0 ? "\(Self.user)\n" : "\(getuid())\n"))
        // Neither is for users, also if they ask for it.
        let options = try shell(place, "findmnt -n -o OPTIONS D")
        #expect(options.contains("nosuid") && options.contains("nodev"))
        if geteuid() == 0 {
            // Not even root looks into another's mount.
            #expect(open(place.albums, O_RDONLY) < 0 && errno == EACCES)
            // For a user who has none, there is no mount.
            let stranger = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
            let status = try place.run(stranger + ["bin/obscura", "status"])
            #expect(status.status == 0 && status.output == "nothing is mounted\n", "\(status.errors)")
        }
        #expect(try run(place, "bin/obscura", "unmount", "D").status == 0)
        #expect(place.daemon == nil)
        _ = try shell(
            place, "bin/obscura mount V2 D --password-file pw; diff -r source D/albums; fusermount3 -u D")
        #expect(eventually { place.daemon == nil })
    }

    /// It would live on there, for as long as the container does, and the vault would be in use.
    @Test func `a copy of the mount in another namespace is named, and cut off if asked`() throws {
        let place = try makePlace()
        let line = """
            as() { \(asUser.joined(separator: " ")) "$@"; }
            as bin/obscura mount V D --password-file pw
            mkfifo ready
            \(hold) >&2 &
            trap "kill $!" EXIT
            cat ready
            held="held by sleep (process $!) in another mount namespace"
            as sh -c 'echo text > D/albums/notes.txt'
            ! as bin/obscura unmount D 2>errors
            grep -qF "$held" errors && grep -qF 'unmount --end D' errors
            grep -qF " $PWD/D " /proc/self/mountinfo
            as bin/obscura unmount --end D | grep -qF "$held"
            as bin/obscura mount V D --password-file pw
            as cat D/albums/notes.txt
            as bin/obscura unmount D
            """
        let ended = try place.run(["/bin/bash", "-ec", line])
        #expect(ended.status == 0 && ended.output == "\ntext\n", "\(ended.output)\(ended.errors)")
        #expect(place.daemon == nil)
    }

    /// No umount(8) can be refused, so the commands say afterwards what is left.
    @Test func `a copy is named when the mount is gone from its directory`() throws {
        let place = try makePlace()
        let line = """
            as() { \(asUser.joined(separator: " ")) "$@"; }
            as bin/obscura mount V D --password-file pw
            mkfifo ready
            \(hold) >&2 &
            trap "kill $!" EXIT
            cat ready
            held="unmounted from $PWD/D, but held by sleep (process $!) in another mount namespace"
            as sh -c 'echo text > D/albums/notes.txt'
            as fusermount3 -u D
            as bin/obscura mount V D --password-file pw 2>errors && exit 1 || test $? = 5
            grep -qF "$held" errors && grep -qF 'unmount --end V' errors
            as bin/obscura status V | grep -qF "$held"
            as bin/obscura status D --json | grep -qF '"was_mounted_at": "'$PWD/D
            as bin/obscura unmount D 2>errors && exit 1 || test $? = 1
            grep -qF "$held" errors && grep -qF 'unmount --end D' errors
            as bin/obscura unmount --end V | grep -qF 'in another mount namespace'
            as bin/obscura mount V D --password-file pw
            as cat D/albums/notes.txt
            as bin/obscura unmount D
            """
        let ended = try place.run(["/bin/bash", "-ec", line])
        #expect(ended.status == 0 && ended.output == "\ntext\n", "\(ended.output)\(ended.errors)")
        #expect(place.daemon == nil)
    }

    /// Programs would leave photos in it, in clear, while the vault is locked.
    @Test func `a mount point that was made with the vault is closed while it is locked`() throws {
        let place = try makePlace()
        let create = "--create --spaces=1 --kdf-memory=8M --kdf-passes=1 --password-file pw"
        _ = try shell(
            place,
            """
            bin/obscura mount V2 made \(create) 2>/dev/null
            for turn in 1 2; do
                echo text >made/albums/$turn
                bin/obscura unmount made
                test $(stat -c %a made) = 500
                if [ $UID != 0 ]; then ! mkdir made/albums 2>/dev/null; fi
                bin/obscura mount V2 made --password-file pw
                cat made/albums/* >/dev/null
            done
            fusermount3 -u made
            test $(stat -c %a made) = 500
            """)
        #expect(eventually { place.daemon == nil })
    }

    @Test func `without memory to lock no password is read`() throws {
        let place = try makePlace()
        let words = ["prlimit", "--memlock=65536:65536"] + asUser
        let ended = try place.run(words + ["bin/obscura", "mount", "V", "D", "--password-file", "pw"])
        #expect(ended.status == 1 && ended.errors.contains("ulimit -l"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1)
    }

    @Test func `refusals of fusermount3 are told in its words`() throws {
        let place = try makePlace()
        // Writable for everybody, but not the user's own.
        let directory = place.root + "/sticky"
        #expect(mkdir(directory, 0o777) == 0 && chmod(directory, 0o1777) == 0)
        if geteuid() != 0 {
            // A user owns a directory that they make, and may mount on it.
            _ = try shell(place, "bin/obscura mount V sticky --password-file pw; bin/obscura unmount sticky")
            return
        }
        let ended = try run(place, "bin/obscura", "mount", "V", "sticky", "--password-file", "pw")
        #expect(ended.status == 1 && ended.errors.contains("not owned by user"), "\(ended.errors)")
        #expect(ended.errors.split(separator: "\n").count == 1)
        #expect(eventually { place.daemon == nil })
    }

    @Test(arguments: ["", "#user_allow_other\n", "user_allow_other # ours\n"])
    func `allow_other is what fuse.conf says`(configuration: String) throws {
        let place = try makePlace()
        let mount = (asUser + ["bin/obscura mount V D -o allow_other --password-file pw"]).joined(
            separator: " ")
        let unmount = (asUser + ["bin/obscura unmount D"]).joined(separator: " ")
        let look = "if \(mount); then stat -c %u D/albums; \(unmount); else echo refused; fi"
        try configuration.write(toFile: place.root + "/fuse.conf", atomically: false, encoding: .utf8)
        let isPermitted: Bool
        let ended: Ended
        if geteuid() == 0 {
            isPermitted = configuration.hasPrefix("user")
            // In a namespace of its own, where the file is another.
            ended = try place.run(
                [
                    "unshare", "-m", "--propagation", "slave", "/bin/bash", "-ec",
                    "mount --bind fuse.conf /etc/fuse.conf; \(look)",
                ])
        } else {
            isPermitted =
                try place.run(["grep", "-Eqs", "^[[:space:]]*user_allow_other", "/etc/fuse.conf"]).status == 0
            ended = try place.run(["/bin/bash", "-ec", look])
        }
        // Where it is permitted, root and everybody else may look.
        let owner = geteuid() == 0 ? "\(Self.user)" : "\(getuid())"
        #expect(ended.lines == [isPermitted ? owner : "refused"], "\(ended.errors)")
        if !isPermitted { #expect(ended.errors.contains("user_allow_other to /etc/fuse.conf")) }
        #expect(eventually { place.daemon == nil })
    }

    @Test func `root mounts for a user, by mount(8)`() throws {
        guard geteuid() == 0 else {
            // For anyone else the helper itself says that uid= changes nothing but what is shown.
            let place = try makePlace()
            try place.shell("ln -s bin/obscura mount.obscura; ./mount.obscura V D -o uid=1,passfile=pw")
            #expect(try status(place.albums).st_uid == 1)
            return try place.unmount()
        }
        let place = try makePlace()
        try place.shell("chown root pw")
        let user = asUser.joined(separator: " ")
        // mount(8) looks for its helpers in /sbin, which has them in this namespace alone.
        try place.shell(
            """
            mkdir over
            unshare -m --propagation slave /bin/bash -e <<'END'
            mount -t tmpfs none over
            mkdir over/upper over/work
            sbin=$(readlink -f /sbin)
            mount -t overlay overlay -o lowerdir=$sbin,upperdir=over/upper,workdir=over/work $sbin
            ln -sf "$PWD/bin/obscura" /sbin/mount.obscura
            ln -sf "$PWD/bin/obscura" /sbin/mount.fuse.obscura
            trap 'umount D 2>/dev/null || true' EXIT
            for type in obscura fuse.obscura; do
                mount -t $type "$PWD/V" "$PWD/D" \
                    -o rw,nofail,allow_other,uid=\(Self.user),gid=\(Self.user),umask=027,passfile="$PWD/pw"
                \(user) sh -ec 'echo from the user > D/albums/note; cat D/albums/note >/dev/null'
                test "$(stat -c %u:%g:%a D/albums/note)" = \(Self.user):\(Self.user):640
                ! setpriv --reuid=54322 --regid=54322 --clear-groups cat D/albums/note 2>/dev/null
                umount D
                while pgrep -f -- "--daemon .*$PWD/D\\$" >/dev/null; do sleep 0.1; done
            done
            ! mount -t obscura "$PWD/V" "$PWD/D" -o uid=me,passfile="$PWD/pw" 2>errors
            grep -q 'id -u' errors
            END
            """)
        #expect(place.daemon == nil)
    }
}
