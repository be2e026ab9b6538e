import Foundation
import FuseBridge
import Glibc
import PhotoLibrary
import Testing

@testable import obscura

@Suite("Mount options: words") struct MountOptionParserTests {
    private func applied(_ lists: String..., sloppy: Bool = false) throws -> MountOptionParser {
        var words = MountOptionParser()
        for list in lists { try words.apply(list, sloppy: sloppy) }
        return words
    }

    @Test func `understands every word`() throws {
        let words = try applied(
            "ro,allow_other,uid=1000,gid=100,umask=027,idle=10m,thumbs=off,subtype=gocryptfs,noexec,dev,suid",
            "nonempty,views",
            "passfile=/etc/obscura key,askpass=echo a\\,b\\\\c")
        #expect(words.readOnly && words.allowOther && words.noExec && words.allowDev && words.allowSuid)
        #expect(words.uid == 1000 && words.gid == 100 && words.umask == 0o27 && words.idleSeconds == 600)
        #expect(words.thumbnails == .off && words.allowsNonEmpty && words.daemonList.contains(",nonempty"))
        #expect(words.hasViews && words.daemonList.contains(",views,"))
        #expect(words.libraryOptions(workerPath: nil).views)
        #expect(words.subtype == "gocryptfs")
        #expect(words.passfile == "/etc/obscura key")
        #expect(words.askpass == "echo a,b\\c")
    }

    @Test func `the daemon reads each option as it was given`() throws {
        let given =
            "rw,allow_other,uid=7,gid=8,umask=77,idle=60s,suspend=keep,thumbs=listed,trash=3,versions=forever,"
            + "views,sweep=off,takeover,nonempty,noexec,subtype=x,fsname=y,dev,suid"
        let words = try applied(given)
        #expect(try applied(words.daemonList) == words)
        #expect(words.daemonList.split(separator: ",").count == given.split(separator: ",").count)
    }

    @Test func `a source's name may hold any character`() throws {
        let words = try applied("fsname=a\\,b\\\\=c d")
        #expect(words.fsname == "a,b\\=c d" && words.mountOptions.fsname == "a,b\\=c d")
        #expect(try applied(words.daemonList) == words)
        #expect(try applied("fsname=x,subtype=y").mountOptions.fsname == "obscura")
        #expect(MountOptionParser().mountOptions.fsname == "obscura")
    }

    @Test func `words of other programs that change nothing of the files are accepted`() throws {
        let words = """
            kernel_cache,auto_unmount,big_writes,max_read=131072,attr_timeout=1.0,quiet,nosyslog,sharedstorage,\
            reconnect,cache=yes,ServerAliveInterval=15,max_conns=4,fusedebug,openssl=auto,remember=10,\
            workaround=rename,loglevel=error,sshfs_debug
            """
        #expect(try applied(words) == MountOptionParser())
        // What would change who may enter, or what is shown, is not passed over.
        for word in ["allow_root", "quiet=1", "max_read", "follow_symlinks", "reverse", "password_stdin"] {
            #expect(throws: Failure.self, "\(word)") { try applied(word) }
        }
    }

    @Test func `the later word wins`() throws {
        #expect(try applied("ro,dev,suid,nodev,nosuid,noexec,exec").daemonList == "ro")
        #expect(try applied("rw", "ro").readOnly)
        #expect(try !applied("rw", "ro").mustWrite)
    }

    @Test func `rw is asked for by name, or where it can be had`() throws {
        let words = try applied("ro,rw")
        #expect(words.mustWrite && !words.readOnly && !words.libraryOptions(workerPath: nil).allowsReadOnly)
        #expect(
            !MountOptionParser().mustWrite
                && MountOptionParser().libraryOptions(workerPath: nil).allowsReadOnly)
        #expect(MountOptionParser().daemonList == "defaults")
    }

    @Test func `words that mount(8) sends along are accepted`() throws {
        let usual = """
            defaults,user,users,nouser,owner,group,nofail,_netdev,auto,noauto,x-gvfs-notrash,\
            x-systemd.automount,X-mount.mkdir,comment=x,user=me,noatime,relatime,default_permissions,async,,\
            uhelper=udisks2
            """
        #expect(try applied(usual) == MountOptionParser())
    }

    @Test(arguments: [
        ("alow_other", "obscura: -o alow_other: unknown mount option: the nearest is allow_other"),
        ("uidd=1", "obscura: -o uidd: unknown mount option: the nearest is uid="),
        ("uid", "obscura: -o uid: needs a value: uid=..."),
        ("ro=1", "obscura: -o ro: takes no value"),
        ("remount", "obscura: -o remount: cannot be done: unmount, then mount with the other options"),
        ("uid=-1", "obscura: -o uid=-1: must be a number, as id -u or id -g prints it"),
        ("gid=4294967295", "obscura: -o gid=4294967295: must be a number, as id -u or id -g prints it"),
        ("umask=888", "obscura: -o umask=888: must be an octal number up to 777"),
        ("umask=1777", "obscura: -o umask=1777: must be an octal number up to 777"),
        ("idle=soon", "obscura: -o idle=soon: must be a time, such as 90s, 10m, 2h or 1d, up to 36500d"),
        ("suspend=on", "obscura: -o suspend=on: must be unmount or keep"),
        ("trash=36501", "obscura: -o trash=36501: must be a number of days up to 36500"),
        ("trash=-1", "obscura: -o trash=-1: must be a number of days up to 36500"),
        ("trash", "obscura: -o trash: needs a value: trash=..."),
        ("thumbs=yes", "obscura: -o thumbs=yes: must be on, listed or off"),
        ("subtype=a/b", "obscura: -o subtype=a/b: must be a word of letters, digits, '.', '_' and '-'"),
        ("passfile=", "obscura: -o passfile=: must be a file"),
        ("fsname=", "obscura: -o fsname=: must be a name"),
    ])
    func `refuses the rest`(list: String, line: String) {
        let failure = #expect(throws: Failure.self) { try applied(list) }
        #expect(failure?.line == line)
        #expect(failure?.status == .usage)
    }

    @Test func `sloppy passes over unknown words only`() throws {
        #expect(try applied("frob,ro,x=1", sloppy: true).readOnly)
        #expect(throws: Failure.self) { try applied("uid=x", sloppy: true) }
    }

    @Test(arguments: [
        "", "rw", "ro,idle=90,thumbs=off", "thumbs=listed",
        "allow_other,uid=0,gid=5,umask=077,noexec,dev,suid,subtype=x",
        "trash=0", "suspend=keep,idle=90",
    ])
    func `the daemon reads what the command wrote`(list: String) throws {
        let words = try applied(list)
        #expect(try applied(words.daemonList) == words)
    }

    @Test func `the daemon is not told where the password came from`() throws {
        #expect(try applied("passfile=/secret,askpass=secret").daemonList == "defaults")
    }

    @Test func `splits at commas without a backslash`() {
        #expect(splitOptionList("a,b\\,c,\\\\,d\\e,\\") == ["a", "b,c", "\\", "d\\e", "\\"])
        #expect(splitOptionList("") == [""])
    }

    @Test func `devices and set-user-ID are for root`() throws {
        let options = try applied("dev,suid").mountOptions
        #expect(options.allowDev == (geteuid() == 0))
        #expect(options.allowSuid == (geteuid() == 0))
        let standard = MountOptionParser().mountOptions
        #expect(!standard.allowDev && !standard.allowSuid)
    }

    @Test func `the command line of the daemon ends with the directory`() throws {
        let daemon = Daemon(words: try applied("ro"), vault: "/a vault", directory: "/mnt/photos")
        for word in Daemon.words {
            let line = daemon.commandLine(word)
            #expect(line.last == "/mnt/photos")
            #expect(try Daemon(Array(line.dropFirst())) == daemon)
        }
        #expect(throws: Failure.self) { try Daemon(["--daemon"]) }
    }

    @Test func `reads the command line of mount(8)`() throws {
        let arguments = try HelperArguments([
            "/v", "/d", "-sfnv", "-t", "fuse.obscura", "-o", "ro,user", "-N", "12", "-onoexec",
        ])
        #expect(arguments.operands == ["/v", "/d"])
        #expect(arguments.optionLists == ["ro,user", "noexec"])
        #expect(arguments.isSloppy && arguments.isFake)
        #expect(arguments.namespace == "12")
        #expect(try HelperArguments(["--", "-v", "-d"]).operands == ["-v", "-d"])
    }

    @Test(arguments: [["/v"], ["/v", "/d", "/e"], ["/v", "/d", "-x"], ["/v", "/d", "-o"], ["/v", ""]])
    func `refuses other command lines`(words: [String]) {
        #expect(#expect(throws: Failure.self) { try HelperArguments(words) }?.status == .usage)
    }
}
