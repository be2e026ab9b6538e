import CShims
import Glibc
import LinuxIO

/// Information about a mount from the process that serves it, through virtual attributes of the root.
final class MountedSpace {
    private let directory: String
    private let descriptor: Int32

    /// XATTR_SIZE_MAX.
    static let answerBytesMax = 65_536

    /// Opens the mount's root. The mount cannot be unmounted as long as this object exists.
    init(_ directory: String) throws(Failure) {
        try requireAnswer(directory)
        self.directory = directory
        descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Self.refusal(.last, "entering it", directory) }
    }

    deinit { close(descriptor) }

    /// The `key=value` lines of `user.obscura.NAME`, in order.
    func ask(_ name: String, doing what: String) throws(Failure) -> [(key: String, value: String)] {
        var bytes = [UInt8](repeating: 0, count: Self.answerBytesMax)
        let count = Int(
            obscura_get_attribute(descriptor, "user.obscura.\(name)", &bytes, UInt(bytes.count)))
        guard count >= 0 else { throw Self.refusal(.last, what, directory) }
        return Self.parse(String(decoding: bytes[..<count], as: UTF8.self))
    }

    /// Parses the lines of an answer.
    static func parse(_ text: String) -> [(key: String, value: String)] {
        text.split(separator: "\n").map { line in
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
        }
    }

    private static func refusal(_ error: Errno, _ what: String, _ directory: String) -> Failure {
        switch error.rawValue {
        case EACCES, EPERM:
            Failure(.failed, directory, "only the user who mounted it, or root, may ask: use that account")
        case ENOTCONN:
            Failure(.failed, directory, "the mount is dead: mount the vault again")
        default: Failure(directory, what, error)
        }
    }
}

extension MountEntry {
    /// Whether root may enter it only as the user who mounted it.
    var isOfOther: Bool { geteuid() == 0 && onlyUser.map { $0.user != 0 } ?? false }

    /// Gives this process, if it is root, the rights of the user who mounted it, permanently. Without them the mount
    /// refuses it later.
    func becomeOwner() {
        guard isOfOther, let owner = onlyUser, setgroups(0, nil) == 0,
            setgid(owner.group) == 0
        else { return }
        _ = setuid(owner.user)
    }
}

/// A number in an answer of a mount, which need not be ours: 0 if it is not a number.
func answeredNumber(_ text: String?) -> UInt64 {
    text.flatMap { parseNumber($0, in: 0...Quantity.max.value) } ?? 0
}
