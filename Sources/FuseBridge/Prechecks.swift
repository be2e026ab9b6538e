internal import CFuse3
internal import Glibc
internal import LinuxIO

/// Checks for every common obstacle to a mount, so that the error can give advice. Returns the directory's resolved
/// path.
public func checkMountable(_ directory: String, options: MountOptions) throws(MountError) -> String {
    try checkDevice()
    if geteuid() != 0 { try checkHelper(options) }
    try clearDeadMount(directory, subtype: options.subtype)
    var status = stat()
    guard directory.withPath({ stat($0, &status) }) == 0 else { throw directoryError(directory) }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw .notADirectory(directory) }
    guard let path = resolvedPath(directory) else { throw directoryError(directory) }
    guard MountPoint(at: path, subtype: options.subtype) == nil else { throw .alreadyMounted(directory) }
    guard geteuid() == 0 || access(path, W_OK) == 0 || status.st_uid == geteuid() else {
        throw .mountPointRefused(directory)
    }
    guard options.allowsNonEmpty || !hasFiles(path) else { throw .notEmpty(directory) }
    return path
}

/// Whether something but directories lies in the directory or below it: directories alone lose nothing when they are
/// hidden. One that cannot be read counts as empty, and so does an automount's. Other filesystems below count, and so
/// does a tree that is too large to look through.
private func hasFiles(_ path: String) -> Bool {
    if isAutomountPoint(path) { return false }
    var top = stat()
    guard path.withPath({ stat($0, &top) }) == 0 else { return false }
    var waiting = [path]
    var count = 0
    while let next = waiting.popLast() {
        guard let directory = opendir(next) else { continue }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { pathText($0) }
            }
            if name == "." || name == ".." { continue }
            var found = stat()
            count += 1
            let isFound = name.withPath { fstatat(dirfd(directory), $0, &found, AT_SYMLINK_NOFOLLOW) } == 0
            guard count <= directoriesMax, isFound,
                found.st_mode & S_IFMT == S_IFDIR, found.st_dev == top.st_dev
            else { return true }
            waiting.append(next + "/" + name)
        }
    }
    return false
}

private let directoriesMax = 1000

private func checkDevice() throws(MountError) {
    let descriptor = open("/dev/fuse", O_RDWR | O_CLOEXEC)
    if descriptor >= 0 {
        close(descriptor)
        return
    }
    let error = Errno.last
    switch error.rawValue {
    case ENOENT, ENODEV, ENXIO: throw .noDevice
    case EACCES, EPERM: throw .deviceRefused
    default: throw .system(error, "opening /dev/fuse")
    }
}

private func checkHelper(_ options: MountOptions) throws(MountError) {
    guard programInPath("fusermount3") != nil else { throw .noHelper }
    guard options.allowOther else { return }
    guard permitsAllowOther(contents(ofFile: "/etc/fuse.conf") ?? []) else { throw .allowOtherRefused }
}

/// Whether fuse.conf(5) lets users pass `allow_other`. Parsed as fusermount3 does: `#` begins a comment anywhere.
func permitsAllowOther(_ configuration: [UInt8]) -> Bool {
    configuration.split(separator: UInt8(ascii: "\n")).contains { line in
        let words = line.prefix { $0 != UInt8(ascii: "#") }
            .split { $0 == UInt8(ascii: " ") || (9...13).contains($0) }
        return words.count == 1 && words[0].elementsEqual("user_allow_other".utf8)
    }
}

/// Unmounts a mount of ours whose process was killed: its directory answers ENOTCONN until then.
private func clearDeadMount(_ directory: String, subtype: String) throws(MountError) {
    guard isDeadMount(directory) else { return }
    let path = absolutePath(directory)
    let isOurs = MountPoint(at: path, subtype: subtype) != nil
    guard isOurs, detach(path, lazily: true) else { throw .deadMount(directory) }
}

/// The path of a directory that cannot be entered: only its parent can be resolved.
private func absolutePath(_ directory: String) -> String {
    var trimmed = Substring(directory)
    while trimmed.count > 1 && trimmed.hasSuffix("/") { trimmed.removeLast() }
    let slash = trimmed.lastIndex(of: "/")
    let parent = slash.map { trimmed[..<$0] } ?? "."
    guard let prefix = resolvedPath(parent.isEmpty ? "/" : String(parent)) else { return String(trimmed) }
    let name = slash.map { trimmed[trimmed.index(after: $0)...] } ?? trimmed
    return prefix == "/" ? "/\(name)" : "\(prefix)/\(name)"
}

private func directoryError(_ directory: String) -> MountError {
    let error = Errno.last
    return switch error.rawValue {
    case ENOENT: .noMountPoint(directory)
    case ENOTDIR: .notADirectory(directory)
    case EACCES, EPERM: .mountPointRefused(directory)
    default: .system(error, directory)
    }
}
