import CShims
import FileRequests
package import Glibc
import LinuxIO
import PhotoLibrary

/// The user whose desktop keeps traces of a mount: the one who mounted it, or that of uid= if root mounts.
package struct DesktopUser: Equatable, Sendable {
    let id: uid_t
    let group: gid_t
    /// From the system's list of users; nil if it has none.
    private let home: String?

    /// The user with this number.
    package init(_ id: uid_t) {
        self.id = id
        let entry = unsafe getpwuid(id)
        group = unsafe id == geteuid() ? getegid() : entry?.pointee.pw_gid ?? gid_t.max
        home = unsafe entry.flatMap { unsafe Self.rooted($0.pointee.pw_dir) }
    }

    /// Whether this process runs as root for another user.
    var isOther: Bool { id != geteuid() }

    var caller: Caller { Caller(uid: id, gid: group) }

    var cacheDirectory: String? { directory("XDG_CACHE_HOME", below: "/.cache") }
    var configDirectory: String? { directory("XDG_CONFIG_HOME", below: "/.config") }
    var dataDirectory: String? { directory("XDG_DATA_HOME", below: "/.local/share") }

    /// The message bus of the user's session; nil if there is none.
    var busAddress: String? {
        if !isOther, let address = unsafe getenv("DBUS_SESSION_BUS_ADDRESS") {
            return unsafe pathText(address)
        }
        let runtime = unsafe isOther ? nil : Self.rooted(getenv("XDG_RUNTIME_DIR"))
        let path = (runtime ?? "/run/user/\(id)") + "/bus"
        return access(path, F_OK) == 0 ? "unix:path=" + path : nil
    }

    var homeDirectory: String? { unsafe isOther ? home : Self.rooted(getenv("HOME")) ?? home }

    /// From the environment, unless that is another user's; nil for a user without a home.
    private func directory(_ variable: String, below path: String) -> String? {
        if isOther { return home.map { $0 + path } }
        return unsafe Self.rooted(getenv(variable)) ?? homeDirectory.map { $0 + path }
    }

    private static func rooted(_ text: UnsafePointer<CChar>?) -> String? {
        unsafe text.map { unsafe pathText($0) }.flatMap { $0.hasPrefix("/") ? $0 : nil }
    }

    /// Gives this process the rights of the user, permanently. Root itself keeps none of its capabilities, nor do the
    /// programs that it starts.
    func become() throws(SweepError) {
        guard isOther else {
            guard geteuid() == 0 else { return }
            guard shim_prctl(shim_PR_SET_NO_NEW_PRIVS, 1) == 0, shim_clear_capabilities() == 0 else {
                throw SweepError(doing: "dropping capabilities", error: .last)
            }
            return
        }
        guard home != nil, setgroups(0, nil) == 0, setgid(group) == 0, setuid(id) == 0 else {
            throw SweepError(doing: "becoming user \(id)", error: .last)
        }
    }

    /// Runs `body` on this thread with the user's rights to files; nil if it cannot get them. Root itself has those of
    /// an owner meanwhile, and no more.
    ///
    /// Root's groups stay, so the caller checks the owner of each file.
    func acting<R>(_ body: () -> R) -> R? {
        guard isOther else {
            guard geteuid() == 0 else { return body() }
            guard obscura_waive_file_rights(1) == 0 else { return nil }
            defer { _ = obscura_waive_file_rights(0) }
            return body()
        }
        defer { _ = obscura_act_as(geteuid(), getegid()) }
        guard home != nil, obscura_act_as(id, group) == 0 else { return nil }
        return body()
    }
}
