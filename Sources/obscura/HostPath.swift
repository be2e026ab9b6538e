import CShims
import Encodings
import FileRequests
import Glibc
import LinuxIO
import PhotoLibrary

/// A path outside the vault: bytes of no particular encoding.
struct HostPath: Hashable {
    var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }
    /// Of a text from `pathText`.
    init(_ text: String) { bytes = pathBytes(text) }

    /// The path of a name in this directory.
    func appending(_ name: Name) -> HostPath {
        HostPath(
            bytes.last == UInt8(ascii: "/") ? bytes + name.bytes : bytes + [UInt8(ascii: "/")] + name.bytes)
    }

    func appending(_ text: String) -> HostPath { appending(Name(pathBytes(text))) }

    /// The last component.
    var name: Name { Name(Array(bytes.split(separator: UInt8(ascii: "/")).last ?? [])) }

    /// The path without its last component.
    var parent: HostPath {
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return HostPath(".") }
        return slash == 0 ? HostPath("/") : HostPath(Array(bytes[..<slash]))
    }

    /// For display: control characters become `?`, and bytes that are not UTF-8 `\xNN`.
    var shown: String { printable(text) }

    /// See `pathText`.
    var text: String { pathText(bytes) }

    /// Runs `body` with the path as a C string.
    func withCString<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        (bytes + [0]).withUnsafeBytes { raw in
            raw.withMemoryRebound(to: CChar.self) { body($0.baseAddress!) }
        }
    }

    // MARK: System calls

    /// lstat(2).
    func status() throws(Errno) -> stat {
        var found = stat()
        guard withCString({ lstat($0, &found) }) == 0 else { throw .last }
        return found
    }

    /// openat(2) with O_CLOEXEC.
    func open(_ flags: Int32, mode: UInt32 = 0) throws(Errno) -> Int32 {
        let descriptor = withCString { obscura_openat(AT_FDCWD, $0, flags | O_CLOEXEC, mode) }
        guard descriptor >= 0 else { throw .last }
        return descriptor
    }

    /// The names in the directory, `.` and `..` left out, sorted by their bytes.
    func list() throws(Errno) -> [Name] {
        guard let stream = withCString({ opendir($0) }) else { throw .last }
        defer { closedir(stream) }
        var names: [Name] = []
        errno = 0
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { Name($0) }
            }
            if name != "." && name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw .last }
        return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// readlink(2).
    func linkTarget() throws(Errno) -> [UInt8] {
        var target = [CChar](repeating: 0, count: 4096)
        let count = withCString { readlink($0, &target, target.count) }
        guard count >= 0 else { throw .last }
        return target.prefix(count).map { UInt8(bitPattern: $0) }
    }
}

/// `text` with each control character replaced by `?`, so that any file name stays on its line, and with `\xNN` for
/// each byte of a path that is not UTF-8.
func printable(_ text: String) -> String {
    var result = String.UnicodeScalarView()
    for scalar in text.unicodeScalars {
        if let byte = escapedByte(scalar) {
            result += "\\x\(hexText([byte]))".unicodeScalars
        } else {
            result.append(isControl(scalar.value) ? "?" : scalar)
        }
    }
    return String(result)
}

/// Whether a character controls a terminal, or the direction of the text after it.
func isControl(_ code: UInt32) -> Bool {
    switch code {
    case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
    default: false
    }
}

extension stat {
    var type: mode_t { st_mode & mode_t(S_IFMT) }
    var isDirectory: Bool { type == mode_t(S_IFDIR) }
    var isRegular: Bool { type == mode_t(S_IFREG) }
    var isSymbolicLink: Bool { type == mode_t(S_IFLNK) }
    var byteCount: UInt64 { UInt64(max(0, st_size)) }
    var identity: FileIdentity { FileIdentity(device: UInt64(st_dev), inode: UInt64(st_ino)) }
}

/// Identifies a file of this machine.
struct FileIdentity: Hashable {
    var device: UInt64
    var inode: UInt64
}
