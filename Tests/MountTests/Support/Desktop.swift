import Glibc
import TestSupport
import Testing

/// Programs of a desktop, where its parts are at hand.
extension Place {
    /// Lines of a shell with a session bus, for GLib's trash: `trashed NAME` prints the trash's URI of what was called
    /// so in this mount, once it is listed. Other users' trashes are not touched.
    ///
    /// GLib looks into the trashes of all mounts, and would wait for those that other tests have stopped. So root has a
    /// mount namespace with this mount alone.
    func gio(_ lines: String) throws {
        try source(
            "gio.sh",
            Array(
                """
                export GVFS_DISABLE_FUSE=1
                if [ "$EUID" = 0 ]; then
                    findmnt -rn -t fuse.obscura -o TARGET | grep -vxF "$PWD/D" |
                        xargs -r -d '\\n' umount --no-canonicalize --internal-only --lazy
                fi
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
        let alone = getuid() == 0 ? "unshare --mount" : ""
        try shell("\(unblocked) \(alone) dbus-run-session -- bash -e source/gio.sh")
    }
}
