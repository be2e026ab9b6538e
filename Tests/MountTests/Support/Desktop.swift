import TestSupport
import Testing

/// Programs of a desktop, where its parts are at hand.
extension Place {
    /// Lines of a shell with a session bus, for GLib's trash: `trashed NAME` prints the trash's URI of what was called
    /// so in this mount, once it is listed. Other users' trashes are not touched.
    func gio(_ lines: String) throws {
        try source(
            "gio.sh",
            Array(
                """
                export GVFS_DISABLE_FUSE=1
                trashed() {
                    for _ in {1..300}; do
                        gio list -u trash:/// | grep -F "${PWD##*/}" | grep "$1\\$" && return
                        sleep 0.1
                    done
                    return 1
                }
                \(lines)
                """.utf8))
        // The bus is ended by a signal, which this process's threads block and their children with them.
        let unblocked = "perl -MPOSIX -e 'sigprocmask(SIG_SETMASK, POSIX::SigSet->new); exec @ARGV'"
        try shell("\(unblocked) dbus-run-session -- bash -e source/gio.sh")
    }
}
