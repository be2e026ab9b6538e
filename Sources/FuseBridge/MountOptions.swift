internal import Glibc

/// Options of a mount. `default_permissions` and `noatime` are always set.
public struct MountOptions: Sendable {
    public var readOnly = false
    /// Lets users other than the mounting one use the mount. Unless root mounts, this needs `user_allow_other` in
    /// /etc/fuse.conf.
    public var allowOther = false
    /// Mounts on a directory that has files, which it hides.
    public var allowsNonEmpty = false
    public var noExec = false
    /// Device nodes work. Only for root; ignored otherwise.
    public var allowDev = false
    /// Set-user-id programs work. Only for root; ignored otherwise.
    public var allowSuid = false
    /// The source that mount(8) shows. Any user can read it.
    public var fsname = "obscura"
    /// The filesystem type is shown as `fuse.` followed by this.
    public var subtype = "obscura"
    /// Whether the vault's host may not answer for a while: programs that are killed meanwhile need not wait for it.
    public var hostMayNotAnswer = false
    /// Unmounts after this many seconds without use and without open files. Nil: never.
    public var idleSeconds: Int?
    /// SIGTERM, SIGINT, SIGHUP, SIGPWR and SIGUSR1 unmount, from the session's creation on. One that comes before `run`
    /// takes effect when `run` is called. At most one such session per process at a time. Of a library that follows
    /// another mount, SIGHUP looks for a newer state instead, unless the process has a terminal.
    public var handlesSignals = true

    /// How long open files are still served after a lazy unmount. Then they fail with ENOTCONN.
    var graceMilliseconds: Int32 = 3000
    /// The same where another computer waits for the vault.
    var handoverGraceMilliseconds: Int32 = 1500

    public init() {}

    /// The options in libfuse's `-o` syntax.
    ///
    /// - Parameter transferBytesMax: the largest read.
    func libfuseWords(transferBytesMax: UInt32) -> String {
        var words = ["default_permissions", "noatime", "max_read=\(transferBytesMax)"]
        words += ["fsname=\(escaped(fsname))", "subtype=\(escaped(subtype))"]
        if readOnly { words.append("ro") }
        if allowOther { words.append("allow_other") }
        if noExec { words.append("noexec") }
        if allowDev && geteuid() == 0 { words.append("dev") }
        if allowSuid && geteuid() == 0 { words.append("suid") }
        return words.joined(separator: ",")
    }

    private func escaped(_ word: String) -> String {
        String(word.flatMap { $0 == "," || $0 == "\\" ? ["\\", $0] : [$0] })
    }
}
