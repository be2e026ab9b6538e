package import FileRequests
import LinuxIO

/// Checks a caller's right to read files as the kernel does: by owner, group and mode. Needed only where one file shows
/// the contents of several.
package struct ReadPermission {
    private let caller: Caller?
    /// `nil` if the caller's groups cannot be seen (hidepid, another pid namespace).
    private let groups: Set<UInt32>?

    /// - Parameter caller: `nil` is this program itself, which reads everything.
    package init(_ caller: Caller?) {
        self.caller = caller
        groups = caller.flatMap { $0.uid == 0 ? [] : Self.groups(of: $0) }
    }

    package func mayRead(_ attributes: Attributes) -> Bool {
        guard let caller, caller.uid != 0 else { return true }
        if attributes.uid == caller.uid { return attributes.mode & ownerRead != 0 }
        let (group, others) = (attributes.mode & groupRead != 0, attributes.mode & othersRead != 0)
        if attributes.gid == caller.gid { return group }
        guard let groups else { return group && others }
        return groups.contains(attributes.gid) ? group : others
    }

    /// The supplementary groups of the thread that waits for the answer, credentials(7).
    private static func groups(of caller: Caller) -> Set<UInt32>? {
        guard caller.pid > 0, let text = contents(ofFile: "/proc/\(caller.pid)/status") else { return nil }
        for line in text.split(separator: UInt8(ascii: "\n")) where line.starts(with: "Groups:".utf8) {
            let numbers = String(decoding: line.dropFirst("Groups:".utf8.count), as: UTF8.self)
            return Set(numbers.split(whereSeparator: \.isWhitespace).compactMap { UInt32($0) })
        }
        return nil
    }
}

private let ownerRead: UInt32 = 0o400
private let groupRead: UInt32 = 0o040
private let othersRead: UInt32 = 0o004
