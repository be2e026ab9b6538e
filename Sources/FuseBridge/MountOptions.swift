internal import Glibc

/// How a library is mounted. `default_permissions` and `noatime` always hold.
public struct MountOptions: Sendable {
    public var readOnly = false
    /// Others than the mounting user may use the mount. Not root needs `user_allow_other` in /etc/fuse.conf.
    public var allowOther = false
    public var noExec = false
    /// Device nodes work; only as root, ignored otherwise.
    public var allowDev = false
    /// Set-user-id programs work; only as root, ignored otherwise.
    public var allowSuid = false
    /// What mount(8) shows as the source. Anyone can read it.
    public var fsname = "obscura"
    /// The type is shown as `fuse.` and this.
    public var subtype = "obscura"
    /// Unmount when nothing was used for so many seconds and no file is open. Nil: never.
    public var idleSeconds: Int?
    /// SIGTERM, SIGINT and SIGHUP unmount, from when the session is made; before `run`, as soon as that is
    /// called. A process can have one such session at a time.
    public var handlesSignals = true

    public init() {}

    /// The options as libfuse reads them.
    var libfuseWords: String {
        var words = ["default_permissions", "noatime", "max_read=\(Initialisation.transferBytesMax)"]
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
