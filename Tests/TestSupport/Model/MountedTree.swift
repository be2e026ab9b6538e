import Foundation
import Glibc

/// A directory of the system, worked in by the operations of a model.
struct MountedTree: Sendable {
    let root: String

    private func full(_ path: String) -> String { path.isEmpty ? root : root + "/" + path }

    private func error(_ result: some BinaryInteger) -> Int32 { result < 0 ? errno : 0 }

    // MARK: Operations

    /// Does it; returns the error number, 0 where it succeeded.
    func apply(_ operation: ModelOperation) -> Int32 {
        switch operation {
        case .write(let path, let bytes): put(path, O_CREAT | O_TRUNC, bytes)
        case .append(let path, let bytes): put(path, O_APPEND, bytes)
        case .truncate(let path, let size): cut(path, size)
        case .makeDirectory(let path): error(mkdir(full(path), 0o755))
        case .removeDirectory(let path): error(rmdir(full(path)))
        case .remove(let path): remove(path)
        case .replace(let path, let temporary): replace(path, by: temporary).error
        case .symbolicLink(let path, let target): error(symlink(target, full(path)))
        case .fifo(let path): error(mkfifo(full(path), 0o644))
        case .link(let from, let to): link(from, to)
        case .rename(let from, let to, let way):
            inNewThread { error(renameat2(AT_FDCWD, full(from), AT_FDCWD, full(to), way.rawValue)) }
        case .setMode(let path, let mode): error(chmod(full(path), mode))
        case .touch(let path, let seconds): touch(path, seconds)
        case .setAttribute(let path, let name, let value):
            error(lsetxattr(full(path), name, value, value.count, 0))
        case .removeAttribute(let path, let name): error(lremovexattr(full(path), name))
        }
    }

    private func put(_ path: String, _ flags: Int32, _ bytes: [UInt8]) -> Int32 {
        let descriptor = open(full(path), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags, 0o644)
        guard descriptor >= 0 else { return errno }
        var (done, failed) = (0, Int32(0))
        while done < bytes.count && failed == 0 {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 { failed = errno } else { done += count }
        }
        let closed = error(close(descriptor))
        return failed == 0 ? closed : failed
    }

    /// truncate(2), where that would not follow a link.
    private func cut(_ path: String, _ size: Int) -> Int32 {
        var status = stat()
        guard lstat(full(path), &status) == 0 else { return errno }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: return EISDIR
        case S_IFLNK: return ELOOP
        case S_IFIFO: return ENXIO
        default: return error(truncate(full(path), size))
        }
    }

    private func touch(_ path: String, _ seconds: Int64) -> Int32 {
        let times = [timespec](repeating: timespec(tv_sec: Int(seconds), tv_nsec: 7), count: 2)
        return error(utimensat(AT_FDCWD, full(path), times, AT_SYMLINK_NOFOLLOW))
    }

    /// By a thread of its own, as `ln` is a process of its own: by its thread the mount tells which name a link is
    /// made from.
    ///
    /// The kernel counts down a file's names where it saw one removed, though the file is in the trash now or its name
    /// another's. Told otherwise, it takes no count from answers that this crosses, and links nothing that has none: so
    /// that is tried again.
    private func link(_ from: String, _ to: String) -> Int32 {
        inNewThread {
            let failed = error(Glibc.link(full(from), full(to)))
            return failed == ENOENT && exists(from) ? error(Glibc.link(full(from), full(to))) : failed
        }
    }

    /// By a thread of its own, as `rm` and `mv` are processes of their own: one may rename what it removed before.
    private func remove(_ path: String) -> Int32 { inNewThread { error(unlink(full(path))) } }

    /// Removes a file and renames another onto its name. If this thread was stopped meanwhile, another one renames, so
    /// that time has no part in what follows.
    func replace(_ path: String, by temporary: String) -> (error: Int32, isAtOnce: Bool) {
        let start = ContinuousClock.now
        let failed = error(unlink(full(path)))
        if failed != 0 { return (failed, true) }
        let rename = { @Sendable in error(Glibc.rename(full(temporary), full(path))) }
        let isAtOnce = ContinuousClock.now - start < .seconds(1)
        return (isAtOnce ? rename() : inNewThread(rename), isAtOnce)
    }

    // MARK: Showing

    /// The visible state, read by a thread of its own; see `link`.
    func shown(isAlone: Bool, _ isMine: @escaping @Sendable (String) -> Bool) -> ShownTree {
        inNewThread {
            var found: [(path: String, status: stat)] = []
            walk("", isMine, &found)
            var first: [ino_t: String] = [:]
            for (path, status) in found.sorted(by: { $0.path < $1.path }) where first[status.st_ino] == nil {
                first[status.st_ino] = path
            }
            var shown: ShownTree = [:]
            for (path, status) in found {
                shown[path] = line(path, status, first: first[status.st_ino] ?? "")
            }
            return shown
        }
    }

    /// Whether a path leads anywhere.
    func exists(_ path: String) -> Bool {
        var status = stat()
        return lstat(full(path), &status) == 0
    }

    /// All that was done is on the disk when this returns.
    func sync() -> Int32 {
        let descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return errno }
        defer { close(descriptor) }
        return error(fsync(descriptor))
    }

    private func walk(
        _ path: String, _ isMine: (String) -> Bool, _ found: inout [(path: String, status: stat)]
    ) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: full(path))) ?? []
        for name in names {
            let below = path.isEmpty ? name : path + "/" + name
            var status = stat()
            guard isMine(below) || isContainer(below), lstat(full(below), &status) == 0 else { continue }
            if isMine(below) { found.append((below, status)) }
            if status.st_mode & S_IFMT == S_IFDIR { walk(below, isMine, &found) }
        }
    }

    /// Whether somebody's files may lie in that directory, which all have in common.
    private func isContainer(_ path: String) -> Bool {
        let parts = path.split(separator: "/")
        return parts.count == 1 || parts.count == 2 && parts[0].hasPrefix(".Trash-")
    }

    private func line(_ path: String, _ status: stat, first: String) -> String {
        let mode = UInt32(status.st_mode & 0o7777)
        switch status.st_mode & S_IFMT {
        case S_IFDIR:
            return ShownLine.directory(links: Int(status.st_nlink), mode: mode, attributes: attributes(path))
        case S_IFLNK: return "link to \(target(path)), \(status.st_nlink) names"
        case S_IFIFO: return "fifo, \(status.st_nlink) names"
        default:
            let seconds = Int64(status.st_mtim.tv_sec)
            let date = attribute(path, "user.obscura.captured").map { String(decoding: $0, as: UTF8.self) }
            let source = attribute(path, "user.obscura.captured.source") ?? []
            let captured = date.map { "\($0), \(String(decoding: source, as: UTF8.self))" }
            let bytes = contents(path)
            let isWhole = bytes.map { $0.count == Int(status.st_size) } ?? false
            let name = path.split(separator: "/").last ?? ""
            let versions = String(path.dropLast(name.utf8.count)) + ".versions/" + name
            return ShownLine.file(
                bytes: path.hasSuffix(".trashinfo") ? Self.withoutDate(bytes ?? []) : bytes ?? [],
                links: Int(status.st_nlink), mode: mode,
                modified: seconds < ShownLine.settableSecondsMax ? seconds : nil, first: first,
                captured: captured ?? "plain",
                original: exists(versions) ? contents(versions + "/original") ?? [] : nil,
                attributes: attributes(path))
                + (isWhole ? "" : ", of which it says that it had \(status.st_size) bytes")
        }
    }

    /// The trashinfo of a photo, without its deletion date.
    private static func withoutDate(_ bytes: [UInt8]) -> [UInt8] {
        let lines = String(decoding: bytes, as: UTF8.self).split(
            separator: "\n", omittingEmptySubsequences: false)
        return Array(lines.filter { !$0.hasPrefix("DeletionDate=") }.joined(separator: "\n").utf8)
    }

    private func contents(_ path: String) -> [UInt8]? {
        let descriptor = open(full(path), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = Glibc.read(descriptor, &piece, piece.count)
            guard count > 0 else { return count == 0 ? bytes : nil }
            bytes += piece[..<count]
        }
    }

    private func target(_ path: String) -> String {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = bytes.withUnsafeMutableBytes {
            readlink(full(path), $0.baseAddress!.assumingMemoryBound(to: CChar.self), $0.count)
        }
        return String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
    }

    private func attribute(_ path: String, _ name: String) -> [UInt8]? {
        var value = [UInt8](repeating: 0, count: 65_536)
        let count = lgetxattr(full(path), name, &value, value.count)
        return count < 0 ? nil : Array(value.prefix(count))
    }

    private func attributes(_ path: String) -> [String: [UInt8]] {
        var list = [UInt8](repeating: 0, count: 65_536)
        let count = llistxattr(full(path), &list, list.count)
        let names = list.prefix(max(0, count)).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        return Dictionary(uniqueKeysWithValues: names.map { ($0, attribute(path, $0) ?? []) })
    }
}

/// Runs `body` on a thread that ends with it.
private func inNewThread<R: Sendable>(_ body: @escaping @Sendable () -> R) -> R {
    let result = ResultBox<R>()
    Thread.detachNewThread {
        result.value = body()
        result.done.signal()
    }
    result.done.wait()
    guard let value = result.value else { preconditionFailure("no result") }
    return value
}

/// Unchecked Sendable: the semaphore orders the one write and the one read.
private final class ResultBox<R: Sendable>: @unchecked Sendable {
    var value: R?
    let done = DispatchSemaphore(value: 0)
}
