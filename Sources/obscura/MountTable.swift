import FuseBridge
import Glibc
import LinuxIO

/// A line of /proc/self/mountinfo (proc(5)).
struct MountEntry: Equatable {
    /// `major:minor`, the same for every place where one file system is mounted.
    var device: String
    var directory: String
    var type: String
    var source: String

    /// Whether this program mounted it, also under another `subtype=`.
    var isObscura: Bool { type == "fuse.obscura" || (type.hasPrefix("fuse.") && source == "obscura") }

    init?(line: String) {
        let fields = line.split(separator: " ").map(String.init)
        guard let dash = fields.dropFirst(6).firstIndex(of: "-"), dash + 2 < fields.count else { return nil }
        device = fields[2]
        directory = unescaped(fields[4])
        type = fields[dash + 1]
        source = unescaped(fields[dash + 2])
    }
}

/// Every mount this process sees, in the order they were made.
func mountTable() -> [MountEntry] {
    let text = String(decoding: contents(ofFile: "/proc/self/mountinfo") ?? [], as: UTF8.self)
    return text.split(separator: "\n").compactMap { MountEntry(line: String($0)) }
}

/// What is on top at `directory`, a real path; nil where nothing is mounted there.
func mountEntry(at directory: String) -> MountEntry? {
    mountTable().last { $0.directory == directory }
}

/// The kernel writes space, tab, newline, `#` and backslash as `\` and three octal digits.
private func unescaped(_ field: String) -> String {
    var result: [UInt8] = []
    var rest = ArraySlice(field.utf8)
    while let byte = rest.popFirst() {
        if byte == UInt8(ascii: "\\"), rest.count >= 3,
            let value = UInt8(String(decoding: rest.prefix(3), as: UTF8.self), radix: 8)
        {
            result.append(value)
            rest = rest.dropFirst(3)
        } else {
            result.append(byte)
        }
    }
    return String(decoding: result, as: UTF8.self)
}

/// Takes the mount at `directory` away.
///
/// Root asks the kernel; everyone else asks fusermount3, which may do so for the mounts of its caller.
/// - Parameter lazily: also when it is dead or busy; what is open there stays open.
func takeMountAway(_ directory: String, lazily: Bool) throws(Failure) {
    if geteuid() == 0 {
        let flags = Int32(UMOUNT_NOFOLLOW) | (lazily ? Int32(MNT_DETACH) : 0)
        guard umount2(directory, flags) != 0 else { return }
        throw unmountFailure(directory, isBusy: errno == EBUSY, reason: "\(Errno.last)")
    }
    let words = ["fusermount3", "-u"] + (lazily ? ["-z"] : []) + ["--", directory]
    let end: ProcessEnd
    let complaint: String
    do {
        (end, complaint) = try runQuietly(words)
    } catch {
        throw error == .noEntry
            ? failure(.noHelper, directory: directory) : Failure(words[0], "running it", error)
    }
    if end == .exited(0) { return }
    let reason = complaint.split(separator: "\n").last.map(String.init) ?? "fusermount3 failed"
    throw unmountFailure(directory, isBusy: complaint.contains(Errno(EBUSY).description), reason: reason)
}

private func unmountFailure(_ directory: String, isBusy: Bool, reason: String) -> Failure {
    isBusy
        ? Failure(.failed, directory, "a program is using it: close its files and leave the directory first")
        : Failure(.failed, directory, "unmounting it: \(reason)")
}
