import DesktopTraces
import FuseBridge
import Glibc

/// The process of a sweep, which `obscura mount` runs.
extension DesktopSweep {
    init(_ words: [String]) throws(Failure) {
        guard let sweep = DesktopSweep(commandLine: words) else {
            throw Failure(.usage, Self.word, "not for users: obscura mount runs it")
        }
        self = sweep
    }

    func run() throws(Failure) {
        do throws(SweepError) { try sweep() } catch {
            throw Failure(Self.word, error.doing, error.error)
        }
    }
}

extension DesktopSweeps {
    /// The sweeps of a daemon's mount.
    convenience init(_ daemon: Daemon) {
        self.init(
            of: DesktopUser(geteuid() == 0 ? daemon.words.uid ?? 0 : geteuid()),
            directory: daemon.directory, vault: daemon.vault, isWanted: daemon.words.sweeps)
    }
}

extension DesktopSweeps.End {
    /// - Parameter end: nil after an error.
    init(_ end: MountEnd?) {
        self =
            switch end {
            case .signal(SIGPWR): .beforeSleep
            case .signal(SIGUSR1): .givenUp
            default: .usual
            }
    }
}

/// The message about deleted files that remain in the desktop's trash.
func leftOutsideText(_ count: Int) -> String {
    count == 1
        ? "1 deleted file is unencrypted in the desktop's trash: the vault is full, or has no record of it: "
            + "restore or delete it there"
        : "\(count) deleted files are unencrypted in the desktop's trash: the vault is full, or has no record of "
            + "them: restore or delete them there"
}
