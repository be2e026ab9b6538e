import FuseBridge
import Glibc
import HostFiles
import LinuxIO

/// Creates the mount point if nothing has that name. Returns true if it was created.
///
/// Nobody but root may write into it: while the vault is locked, no program leaves files there, which would lie on the
/// disk in clear.
func makeMountPoint(_ directory: String) throws(Failure) -> Bool {
    if mkdir(directory, 0o500) == 0 { return true }
    if errno == EEXIST { return false }
    throw Failure(directory, "making the directory", .last)
}

/// Unmounts a mount whose daemon died, and tells the user. Returns false if there was none.
func clearMountPoint(_ directory: String) throws(Failure) -> Bool {
    if isAutomountPoint(directory) { return false }
    try freeHangingMount(directory)
    // The kernel may answer stat(2) for a dead mount from its cache; statfs(2) always asks the daemon.
    var usage = statvfs()
    // ECONNABORTED: it died while it was asked.
    guard directory.withPath({ statvfs($0, &usage) }) != 0, errno == ENOTCONN || errno == ECONNABORTED else {
        return false
    }
    let place = realPath(directory)
    guard let entry = mountEntry(at: place), entry.isObscura else {
        throw Failure(.failed, directory, "a dead mount of another program is there: unmount it first")
    }
    try takeMountAway(place, lazily: true)
    note("obscura: \(directory): a dead mount was left here; it has been unmounted")
    return true
}

/// Refuses a vault inside its own mount, or a mount inside its vault: it would wait for itself, or be taken for
/// ciphertext.
func checkApart(vault: String, directory: String) throws(Failure) {
    let (vaultPath, directoryPath) = (realPath(vault), realPath(directory))
    if isInside(directoryPath, vaultPath) {
        throw Failure(.usage, directory, "it is the vault or inside it: mount somewhere else")
    }
    if isInside(vaultPath, directoryPath) {
        throw Failure(.usage, directory, "the vault is inside it: mount somewhere else")
    }
}

/// Fails if the mount would be refused later anyway, before a password is asked for or a vault is made. Tells the user
/// of files that lie in the directory, unencrypted.
///
/// An existing mount is not refused yet: a user who mounts one vault twice must hear that it is in use.
func checkMayMount(_ request: MountRequest) throws(Failure) {
    let directory = request.directory
    do throws(MountError) {
        _ = try checkMountable(directory, options: request.words.mountOptions)
    } catch {
        if case .alreadyMounted = error { return }
        if case .notEmpty = error, let files = UnencryptedFiles(in: directory) {
            let command = files.importCommand(request.vault)
            throw Failure(
                .failed, directory,
                "\(files.text): bring them in with \(command), or mount over them with -o nonempty, which hides "
                    + "them meanwhile")
        }
        throw failure(error, directory: directory)
    }
    guard request.words.mountOptions.allowsNonEmpty, !isAutomountPoint(directory),
        let files = UnencryptedFiles(in: directory)
    else {
        return
    }
    note(
        "obscura: \(directory): \(files.text), and this mount hides them: bring them in after unmounting it, with "
            + files.importCommand(request.vault))
}
