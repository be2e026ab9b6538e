import CShims
import Glibc
import LinuxIO
import VaultStore

/// Time after which the user is told why it takes long.
private let patienceMilliseconds: Int32 = 3000

/// Ends the mount and returns when its process is gone: everything is on disk and the vault is free.
func runUnmount(_ arguments: Arguments) throws(Failure) {
    let directory = arguments.operands[0]
    let place = realPath(directory)
    guard let entry = mountEntry(at: place) else {
        if Vault.isVault(directory) {
            throw Failure(.failed, directory, "this is the vault: name the directory where it is mounted")
        }
        throw Failure(.failed, directory, "nothing is mounted here: findmnt -t fuse.obscura lists mounts")
    }
    guard entry.isObscura else {
        throw Failure(.failed, directory, "the mount here is not obscura's (\(entry.type)): use umount")
    }
    try freeHangingMount(place)
    let daemon = findDaemon(of: place)
    defer { if let daemon { close(daemon) } }
    try makeDurable(place, named: directory)
    // Mounted at a second place too (mount --bind), it goes on living. Asked before: the number may be another's at
    // once.
    let isMountedElsewhere = mountTable().count { $0.device == entry.device } > 1
    try takeMountAway(place, lazily: false)
    if let daemon, !isMountedElsewhere { waitForEnd(ofDaemon: daemon, directory: directory) }
}

/// What the disk refuses is said while the mount is still there and nothing is lost.
///
/// Whoever may not enter it (root, without allow_other), or a dead mount, unmounts without.
private func makeDurable(_ place: String, named directory: String) throws(Failure) {
    let descriptor = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    if descriptor < 0 { return }
    defer { close(descriptor) }
    if fsync(descriptor) == 0 { return }
    let error = Errno.last
    if error == .inputOutput || error.meansNoRoom {
        throw Failure(directory, "its last changes cannot be written, see to the disk and try again", error)
    }
}

private func waitForEnd(ofDaemon descriptor: Int32, directory: String) {
    var patience = patienceMilliseconds
    var wanted = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    while true {
        let count = poll(&wanted, 1, patience)
        if count < 0, errno == EINTR { continue }
        if count != 0 { return }
        note("obscura: \(directory): unmounted; waiting until everything is written")
        patience = -1
    }
}
