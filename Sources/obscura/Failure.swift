import FuseBridge
import HostFiles
import LinuxIO
import VaultFormat
import VaultStore

/// The exit statuses of obscura(1).
enum ExitStatus: Int32 {
    case done = 0
    case failed = 1
    case usage = 2
    case noVault = 3
    case noSpaceOpens = 4
    case inUse = 5
    case damaged = 6
    case noRoom = 7
    case interrupted = 130
}

/// The reason why a command stops: shown as the line `obscura: what: why`, and as the program's exit status.
///
/// `what` is the word, path or option at fault; `why` says what to do next. Neither ever holds a secret.
struct Failure: Error, Equatable {
    var status: ExitStatus
    var what: String
    var why: String

    init(_ status: ExitStatus, _ what: String, _ why: String) {
        self.status = status
        self.what = what
        self.why = why
    }

    /// A failed system call: `doing` names the attempt, in the form "opening it".
    init(_ what: String, _ doing: String, _ error: Errno) {
        self.init(error.meansNoRoom ? .noRoom : .failed, what, "\(doing): \(error)")
    }

    /// Without a newline. Control characters, which a path may contain, become `?`, so that it stays one line.
    var line: String { printable("obscura: \(what): \(why)") }
}

/// The message about a vault's error. The only place that gives vault errors their words and status.
///
/// A wrong password, an unused space and a damaged slot are all `noSpaceOpens`: they cannot be told apart here.
func failure(_ error: VaultError, vault: String) -> Failure {
    switch error {
    case .notAVault:
        Failure(
            .noVault, vault,
            Vault.lacksHeader(vault)
                ? "obscura.vault is missing there: restore a copy with obscura header restore"
                : "not a vault: check the path, or make one with obscura create")
    case .newer(let version):
        Failure(.noVault, vault, "\(version.words); this is \(programVersion)")
    case .headerDamaged:
        Failure(
            .damaged, vault,
            "both copies of the header in obscura.vault are damaged: restore a copy with obscura header restore"
        )
    case .noSpaceOpens:
        Failure(.noSpaceOpens, vault, "no space opens with this password: check it and try again")
    case .inUse:
        lostMount(ofVault: vault)?.failure(.inUse, vault, operand: vault)
            ?? Failure(.inUse, vault, "the vault is in use: unmount it first (one space at a time)")
    case .heldBy(let holder): Failure(.inUse, vault, "mounted by \(holder): unmount it there")
    case .claimed:
        Failure(
            .inUse, vault,
            "another computer has this space open, or did not unmount it: unmount it there; where that is impossible, "
                + "take it over: obscura mount -o takeover VAULT DIR")
    case .passwordTaken:
        Failure(.failed, vault, "the new password already opens a space: choose another one")
    case .noUnusedSpace:
        Failure(
            .noRoom, vault,
            "no unused space is left: remove one with obscura space remove, or give fewer passwords to keep")
    case .singleSpace:
        Failure(
            .failed, vault, "it was made for one space: make another vault with more (obscura create)")
    case .foreignHeader(let reason):
        Failure(.failed, vault, "this header cannot be restored: \(reason)")
    case .kdfMemory(let bytes):
        Failure(
            .failed, vault,
            "trying a password takes \(sizeText(bytes)) of memory, which is not available: use a machine with more"
        )
    case .noRoom:
        Failure(.noRoom, vault, "not enough room on the disk: free some, or choose a smaller size")
    case .fileTooLarge:
        Failure(
            .noRoom, vault,
            "all spaces are in one file, and this disk allows no file of that size (FAT: 4 GiB): format it as exFAT, "
                + "choose a smaller size, or make a vault of one space (--spaces 1)")
    case .notEmpty where Vault.hostTraits(of: vault).hasObjects:
        Failure(
            .failed, vault,
            "there are objects of this name, of a vault that lost its header or was not made to the end: name "
                + "another vault, or remove them with rados rm")
    case .notEmpty:
        Failure(.failed, vault, "the directory is not empty: name a new or an empty one for the vault")
    case .unfinishedCopy:
        Failure(
            .noVault, vault,
            "not a vault yet: a backup into it was interrupted, run the same command again")
    case .unsuitableHost:
        Failure(
            .failed, vault,
            "files cannot be changed in place there, so no vault can be: name a directory on a disk, NFS, SMB or "
                + "CephFS, and take obscura backup for a copy elsewhere")
    case .otherVault:
        Failure(.failed, vault, "another vault is there: name a new or an empty directory for the copy")
    case .damaged(let part):
        Failure(.damaged, vault, "damage found: \(part) (obscura check --repair recovers what can be read)")
    case .notWritable(let stop): failure(stop, vault: vault)
    case .invalidSize(let reason):
        Failure(.usage, vault, "invalid size: \(reason)")
    case .interrupted:
        Failure(.interrupted, vault, "interrupted: what was made of the vault has been removed again")
    case .system(let code, let doing):
        Failure(vault, doing, code)
    }
}

/// The message about a vault that cannot be written.
func failure(_ stop: WriteStop, vault: String) -> Failure {
    let status: ExitStatus
    switch stop {
    case .segmentMissing, .segmentShort, .segmentsExchanged, .olderState: status = .damaged
    case .newer: status = .noVault
    case .noRoomToUpdate: status = .noRoom
    case .claimLost: status = .inUse
    case .io, .notInPlace, .givenUp: status = .failed
    }
    let advice = stop.advice(vault: vault, isMounted: false).map { ": \($0)" } ?? ""
    return Failure(status, vault, "cannot be written: \(stop.reason)\(advice)")
}

/// The message about a failed mount.
func failure(_ error: MountError, directory: String) -> Failure {
    switch error {
    case .noDevice:
        Failure(
            .failed, "/dev/fuse",
            "missing: load the kernel module (modprobe fuse), or give the container the device")
    case .deviceRefused:
        Failure(.failed, "/dev/fuse", "it may not be opened: ask the administrator for read and write access")
    case .noHelper:
        Failure(.failed, "fusermount3", "not found: install the package fuse3")
    case .allowOtherRefused:
        Failure(
            .failed, "-o allow_other",
            "only root may use it, unless root adds user_allow_other to /etc/fuse.conf")
    case .noMountPoint:
        Failure(.failed, directory, "no such directory: make it first (mkdir)")
    case .notADirectory:
        Failure(.failed, directory, "not a directory: name a directory to mount on")
    case .alreadyMounted:
        Failure(.failed, directory, "another space is mounted here: unmount it first")
    case .notEmpty:
        Failure(
            .failed, directory, "not empty: -o nonempty mounts on it, and its files are hidden meanwhile")
    case .deadMount:
        Failure(
            .failed, directory, "a dead mount is here: unmount it with fusermount3 -u -z, then try again")
    case .mountPointRefused:
        Failure(.failed, directory, "you may not mount here: name a directory of your own")
    case .refused(let words):
        Failure(.failed, directory, "the mount was refused: \(words)")
    case .system(let code, let doing):
        Failure(directory, doing, code)
    }
}

/// Runs `body` and turns a vault's error into a `Failure`.
func onVault<R>(_ vault: String, _ body: () throws(VaultError) -> R) throws(Failure) -> R {
    do {
        return try body()
    } catch {
        throw failure(error, vault: vault)
    }
}

/// `makePipe`, with an error for the user that names the purpose.
func pipeEnds(for purpose: String) throws(Failure) -> (read: Int32, write: Int32) {
    do {
        return try makePipe()
    } catch {
        throw Failure(purpose, "making a pipe", error)
    }
}
