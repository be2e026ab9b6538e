import Foundation
import Glibc

/// One POSIX call or a few of them, by paths below a directory, done in two file systems at a time.
enum TwinOperation: CustomStringConvertible {
    /// Opens a file and keeps it open as that slot.
    case open(slot: Int, String, Int32)
    case close(slot: Int)
    case write(slot: Int, offset: Int, [UInt8])
    /// write(2) where the descriptor stands, which with O_APPEND is the end.
    case writeOn(slot: Int, [UInt8])
    case read(slot: Int, offset: Int, count: Int)
    case resize(slot: Int, Int)
    case allocate(slot: Int, mode: Int32, offset: Int, count: Int)
    /// Writes through a shared mapping.
    case map(slot: Int, offset: Int, [UInt8])
    case copy(from: Int, to: Int, offset: Int, target: Int, count: Int)
    /// The answers of SEEK_HOLE and SEEK_DATA must be true: holes are zeros, and the end is a hole.
    case holes(slot: Int)
    case truncate(String, Int)
    case makeDirectory(String, UInt32)
    case removeDirectory(String)
    case unlink(String)
    case link(String, String)
    case symbolicLink(String, String)
    case node(String, UInt32)
    case rename(String, String, UInt32)
    case setMode(String, UInt32)
    case setOwner(String, UInt32, UInt32)
    case touch(String, Int, Int)
    case setAttribute(String, String, Int, Int32)
    case removeAttribute(String, String)

    /// The paths it names.
    var paths: [String] {
        switch self {
        case .open(_, let path, _), .truncate(let path, _), .makeDirectory(let path, _),
            .removeDirectory(let path), .unlink(let path), .symbolicLink(_, let path), .node(let path, _),
            .setMode(let path, _), .setOwner(let path, _, _), .touch(let path, _, _),
            .setAttribute(let path, _, _, _), .removeAttribute(let path, _):
            [path]
        case .link(let from, let to), .rename(let from, let to, _): [from, to]
        default: []
        }
    }

    /// The slots it uses.
    var slots: [Int] {
        switch self {
        case .open(let slot, _, _), .close(let slot), .write(let slot, _, _), .writeOn(let slot, _),
            .read(let slot, _, _), .resize(let slot, _), .allocate(let slot, _, _, _), .map(let slot, _, _),
            .holes(let slot):
            [slot]
        case .copy(let from, let to, _, _, _): [from, to]
        default: []
        }
    }

    var description: String {
        switch self {
        case .write(let slot, let offset, let bytes):
            "write(slot: \(slot), offset: \(offset), \(bytes.count) bytes)"
        case .writeOn(let slot, let bytes): "writeOn(slot: \(slot), \(bytes.count) bytes)"
        case .map(let slot, let offset, let bytes):
            "map(slot: \(slot), offset: \(offset), \(bytes.count) bytes)"
        default: Mirror(reflecting: self).children.first.map { "\($0.label ?? "") \($0.value)" } ?? "?"
        }
    }
}

/// A directory in which twin operations are done, and files open there.
struct TwinSide: Sendable {
    let root: String
    private var slots: [Int: Int32] = [:]

    init(root: String) { self.root = root }

    private func full(_ path: String) -> String { path.isEmpty ? root : root + "/" + path }

    /// "0", or the error's name.
    private func outcome(_ result: some BinaryInteger) -> String {
        result < 0 ? String(cString: strerror(errno)) : "\(result)"
    }

    /// The type of a path's target; 0 if there is none.
    private func kind(_ path: String) -> mode_t {
        var status = Glibc.stat()
        return fstatat(AT_FDCWD, full(path), &status, 0) == 0 ? status.st_mode & S_IFMT : 0
    }

    mutating func closeAll() {
        for descriptor in slots.values { Glibc.close(descriptor) }
        slots = [:]
    }

    /// Does it; the answer must be the same on both sides.
    mutating func apply(_ operation: TwinOperation) -> String {
        switch operation {
        case .open(let slot, let path, let flags):
            if let old = slots.removeValue(forKey: slot) { Glibc.close(old) }
            // Mounts of ours open no devices.
            if kind(path) == S_IFCHR { return "device" }
            let descriptor = Glibc.open(full(path), flags | O_CLOEXEC | O_NONBLOCK, 0o640)
            if descriptor >= 0 { slots[slot] = descriptor }
            return descriptor >= 0 ? "open" : outcome(descriptor)
        case .close(let slot): return slots.removeValue(forKey: slot).map { outcome(Glibc.close($0)) } ?? ""
        case .truncate(let path, let size): return truncate(path, size)
        case .makeDirectory(let path, let mode): return outcome(mkdir(full(path), mode))
        case .removeDirectory(let path): return outcome(rmdir(full(path)))
        case .unlink(let path): return outcome(Glibc.unlink(full(path)))
        case .link(let from, let to): return outcome(Glibc.link(full(from), full(to)))
        case .symbolicLink(let target, let path): return outcome(symlink(target, full(path)))
        case .node(let path, let mode):
            return outcome(mknod(full(path), mode, mode & S_IFMT == S_IFCHR ? 0x105 : 0))
        case .rename(let from, let to, let flags):
            return outcome(renameat2(AT_FDCWD, full(from), AT_FDCWD, full(to), flags))
        case .setMode(let path, let mode): return outcome(chmod(full(path), mode))
        case .setOwner(let path, let uid, let gid): return outcome(lchown(full(path), uid, gid))
        case .touch(let path, let seconds, let nanoseconds):
            let times = [timespec](repeating: timespec(tv_sec: seconds, tv_nsec: nanoseconds), count: 2)
            return outcome(utimensat(AT_FDCWD, full(path), times, AT_SYMLINK_NOFOLLOW))
        case .setAttribute(let path, let name, let count, let flags):
            return outcome(lsetxattr(full(path), name, noise(count, seed: count), count, flags))
        case .removeAttribute(let path, let name): return outcome(lremovexattr(full(path), name))
        default: return applyOpen(operation)
        }
    }

    /// An operation on an open file.
    private func applyOpen(_ operation: TwinOperation) -> String {
        switch operation {
        case .write(let slot, let offset, let bytes):
            return on(slot) { outcome(pwrite($0, bytes, bytes.count, offset)) }
        case .writeOn(let slot, let bytes): return on(slot) { writeOn($0, bytes) }
        case .read(let slot, let offset, let count): return on(slot) { read($0, offset, count) }
        case .resize(let slot, let size): return on(slot) { outcome(ftruncate($0, size)) }
        case .allocate(let slot, let mode, let offset, let count):
            return on(slot) { descriptor in
                let result = outcome(fallocate(descriptor, mode, offset, count))
                return result + still(descriptor)
            }
        case .map(let slot, let offset, let bytes): return on(slot) { map($0, offset, bytes) }
        case .copy(let from, let to, let offset, let target, let count):
            return on(from) { source in on(to) { copy(source, offset, $0, target, count) } }
        case .holes(let slot): return on(slot) { holes($0) }
        default: return ""
        }
    }

    private func on(_ slot: Int, _ body: (Int32) -> String) -> String { slots[slot].map(body) ?? "" }

    private func truncate(_ path: String, _ size: Int) -> String {
        var status = Glibc.stat()
        let isSame = stat(full(path), &status) == 0 && status.st_size == size && kind(path) == S_IFREG
        let result = outcome(Glibc.truncate(full(path), size))
        // Where the size stays, tmpfs leaves the time of change; ext4, for one, does not.
        return isSame ? result + outcome(utimensat(AT_FDCWD, full(path), Self.stillTimes, 0)) : result
    }

    private func writeOn(_ descriptor: Int32, _ bytes: [UInt8]) -> String {
        let result = outcome(Glibc.write(descriptor, bytes, bytes.count))
        var status = stat()
        // The kernel keeps a FIFO's bytes, and tells no FUSE daemon of writes.
        let isFIFO = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
        return isFIFO ? result + still(descriptor) : result
    }

    /// Sets a time of change, where file systems differ in whether a call sets it.
    private func still(_ descriptor: Int32) -> String {
        " " + outcome(futimens(descriptor, Self.stillTimes))
    }

    private static let stillTimes = [timespec](repeating: timespec(tv_sec: 500_000_000, tv_nsec: 5), count: 2)

    private func read(_ descriptor: Int32, _ offset: Int, _ count: Int) -> String {
        var bytes = [UInt8](repeating: 0, count: count)
        let done = pread(descriptor, &bytes, count, offset)
        return outcome(done) + " \(modelSum(Array(bytes.prefix(max(0, done)))))"
    }

    private func map(_ descriptor: Int32, _ offset: Int, _ bytes: [UInt8]) -> String {
        var status = stat()
        guard fstat(descriptor, &status) == 0, offset + bytes.count <= status.st_size else { return "" }
        let length = offset + bytes.count
        guard let start = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0),
            start != MAP_FAILED
        else { return outcome(-1) }
        bytes.withUnsafeBytes { (start + offset).copyMemory(from: $0.baseAddress!, byteCount: $0.count) }
        let result = outcome(msync(start, length, MS_SYNC))
        munmap(start, length)
        return result + still(descriptor)
    }

    private func copy(_ source: Int32, _ offset: Int, _ target: Int32, _ to: Int, _ count: Int) -> String {
        var (from, into) = (off_t(offset), off_t(to))
        var done = copyFileRange(source, &from, target, &into, count, 0)
        // The kernel may copy less at a time, by the pages that it happens to have: a program asks for the rest.
        while done > 0 && done < count {
            let more = copyFileRange(source, &from, target, &into, count - done, 0)
            if more <= 0 { break }
            done += more
        }
        return outcome(done) + (done >= 0 ? still(target) : "")
    }

    private func holes(_ descriptor: Int32) -> String {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return "" }
        let size = lseek(descriptor, 0, SEEK_END)
        defer { lseek(descriptor, 0, SEEK_END) }
        var position = off_t(0)
        while position < size {
            let hole = lseek(descriptor, position, seekHole)
            guard hole >= position else { return "no hole behind \(position)" }
            if hole >= size { break }
            let data = lseek(descriptor, hole, seekData)
            let end = data < 0 && errno == ENXIO ? size : data
            guard end > hole else { return "no data behind \(hole)" }
            var bytes = [UInt8](repeating: 0, count: end - hole)
            // By a descriptor that is for writing alone nothing can be read.
            let isRead = pread(descriptor, &bytes, bytes.count, hole) >= 0
            if isRead, let wrong = bytes.firstIndex(where: { $0 != 0 }) {
                return "no zero at \(hole + wrong)"
            }
            position = end
        }
        return outcome(lseek(descriptor, size, seekHole))
    }

    // MARK: Inodes

    /// The inodes that an operation may have to do with: those open in its slots, those that its paths lead to, and the
    /// directories of these.
    func inodes(of operation: TwinOperation) -> [ino_t] {
        var status = Glibc.stat()
        var inodes: [ino_t] = []
        for slot in operation.slots {
            if let descriptor = slots[slot], fstat(descriptor, &status) == 0 { inodes.append(status.st_ino) }
        }
        for path in operation.paths {
            let whole = full(path)
            let directory = whole.lastIndex(of: "/").map { String(whole[..<$0]) } ?? ""
            for (path, flags) in [(whole, 0), (whole, AT_SYMLINK_NOFOLLOW), (directory, 0)]
            where fstatat(AT_FDCWD, path, &status, flags) == 0 {
                inodes.append(status.st_ino)
            }
        }
        return inodes
    }

    /// That path's, and all below it.
    func inodes(below path: String) -> [ino_t] {
        let below = FileManager.default.subpathsInOrder(atPath: full(path)).map { path + "/" + $0 }
        return ([path] + below).compactMap { status($0)?.st_ino }
    }

    /// Those of all files that have more than one name.
    func linkedInodes() -> [ino_t] {
        FileManager.default.subpathsInOrder(atPath: root).compactMap { status($0) }
            .filter { $0.st_nlink > 1 && $0.st_mode & S_IFMT != S_IFDIR }.map(\.st_ino)
    }

    private func status(_ path: String) -> stat? {
        var status = Glibc.stat()
        return lstat(full(path), &status) == 0 ? status : nil
    }

    // MARK: Showing

    /// All that can be seen below, by path.
    func shown() -> ShownTree {
        var shown: ShownTree = [:]
        var first: [ino_t: String] = [:]
        let paths = [""] + (FileManager.default.subpathsInOrder(atPath: root))
        for path in paths {
            var status = stat()
            guard lstat(full(path), &status) == 0 else { continue }
            let same = first[status.st_ino] ?? path
            first[status.st_ino] = same
            shown[path] = line(path, status, same: same)
        }
        return shown
    }

    private func line(_ path: String, _ status: stat, same: String) -> String {
        var line = "mode \(String(status.st_mode, radix: 8)), \(status.st_nlink) links, same as \(same)"
        line += ", owner \(status.st_uid):\(status.st_gid)"
        // Times that were set are the same; those of writes are not.
        if status.st_mtim.tv_sec < ShownLine.settableSecondsMax {
            line += ", changed \(status.st_mtim.tv_sec).\(status.st_mtim.tv_nsec)"
        }
        switch status.st_mode & S_IFMT {
        case S_IFREG:
            let bytes = (try? Data(contentsOf: URL(fileURLWithPath: full(path)))) ?? Data()
            line += ", \(status.st_size) bytes (\(modelSum(Array(bytes))))"
        case S_IFLNK:
            line += ", to \((try? FileManager.default.destinationOfSymbolicLink(atPath: full(path))) ?? "")"
        case S_IFCHR: line += ", device \(status.st_rdev)"
        default: break
        }
        return line + attributes(path)
    }

    private func attributes(_ path: String) -> String {
        var list = [UInt8](repeating: 0, count: 65_536)
        let count = llistxattr(full(path), &list, list.count)
        let names = list.prefix(max(0, count)).split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
        return names.filter { $0.hasPrefix("user.") }.sorted().map { name in
            var value = [UInt8](repeating: 0, count: 65_536)
            let count = lgetxattr(full(path), name, &value, value.count)
            return ", \(name)=\(count) bytes (\(modelSum(Array(value.prefix(max(0, count))))))"
        }.joined()
    }
}

extension FileManager {
    /// Paths of everything below a directory, parents first, in the same order in every file system.
    fileprivate func subpathsInOrder(atPath path: String) -> [String] {
        (subpaths(atPath: path) ?? []).sorted()
    }
}

/// `SEEK_DATA` and `SEEK_HOLE` of lseek(2), which Swift does not import.
private let seekData: Int32 = 3
private let seekHole: Int32 = 4
