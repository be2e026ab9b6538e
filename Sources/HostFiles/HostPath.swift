import CShims
import Encodings
package import FileRequests
package import Glibc
package import LinuxIO

/// A path outside the vault: bytes of no particular encoding.
package struct HostPath: Hashable {
    /// As system calls take it, without the NUL at the end.
    package var bytes: [UInt8]

    /// Of bytes as a system call gives them.
    package init(_ bytes: [UInt8]) { self.bytes = bytes }
    /// Of a text from `pathText`.
    package init(_ text: String) { bytes = pathBytes(text) }

    /// The path of a name in this directory.
    package func appending(_ name: Name) -> HostPath {
        HostPath(
            bytes.last == UInt8(ascii: "/") ? bytes + name.bytes : bytes + [UInt8(ascii: "/")] + name.bytes)
    }

    /// As `appending` of a name, for a text from `pathText`.
    package func appending(_ text: String) -> HostPath { appending(Name(pathBytes(text))) }

    /// The last component.
    package var name: Name { Name(Array(bytes.split(separator: UInt8(ascii: "/")).last ?? [])) }

    /// The path without its last component.
    package var parent: HostPath {
        guard let slash = bytes.lastIndex(of: UInt8(ascii: "/")) else { return HostPath(".") }
        return slash == 0 ? HostPath("/") : HostPath(Array(bytes[..<slash]))
    }

    /// For display: control characters become `?`, and bytes that are not UTF-8 `\xNN`.
    package var shown: String { printable(text) }

    /// See `pathText`.
    package var text: String { pathText(bytes) }

    /// Runs `body` with the path as a C string.
    package func withCString<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        unsafe (bytes + [0]).withUnsafeBytes { raw in
            unsafe raw.withMemoryRebound(to: CChar.self) { unsafe body($0.baseAddress!) }
        }
    }

    // MARK: System calls

    /// lstat(2).
    package func status() throws(Errno) -> stat {
        var found = stat()
        guard unsafe withCString({ unsafe lstat($0, &found) }) == 0 else { throw .last }
        return found
    }

    /// openat(2) with O_CLOEXEC.
    package func open(_ flags: Int32, mode: UInt32 = 0) throws(Errno) -> Int32 {
        let descriptor = unsafe withCString { unsafe obscura_openat(AT_FDCWD, $0, flags | O_CLOEXEC, mode) }
        guard descriptor >= 0 else { throw .last }
        return descriptor
    }

    /// The names in the directory, `.` and `..` left out, sorted by their bytes.
    package func list() throws(Errno) -> [Name] {
        guard let stream = unsafe withCString({ unsafe opendir($0) }) else { throw .last }
        defer { unsafe closedir(stream) }
        var names: [Name] = []
        errno = 0
        while let entry = unsafe readdir(stream) {
            let name = unsafe withUnsafePointer(to: &entry.pointee.d_name) {
                unsafe $0.withMemoryRebound(to: CChar.self, capacity: 256) { unsafe Name($0) }
            }
            if name != "." && name != ".." { names.append(name) }
            errno = 0
        }
        guard errno == 0 else { throw .last }
        return names.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
    }

    /// readlink(2).
    package func linkTarget() throws(Errno) -> [UInt8] {
        var target = [CChar](repeating: 0, count: 4096)
        let count = unsafe withCString { unsafe readlink($0, &target, target.count) }
        guard count >= 0 else { throw .last }
        return target.prefix(count).map { UInt8(bitPattern: $0) }
    }
}

/// `text` with each control character replaced by `?`, so that any file name stays on its line, and with `\xNN` for
/// each byte of a path that is not UTF-8.
package func printable(_ text: String) -> String {
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
package func isControl(_ code: UInt32) -> Bool {
    switch code {
    case 0..<0x20, 0x7F..<0xA0, 0x61C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
    default: false
    }
}

extension stat {
    /// The bits of the mode that say which kind of file it is: S_IFREG and the like.
    package var type: mode_t { st_mode & mode_t(S_IFMT) }
    /// S_ISDIR, a macro in C.
    package var isDirectory: Bool { type == mode_t(S_IFDIR) }
    /// S_ISREG, a macro in C.
    package var isRegular: Bool { type == mode_t(S_IFREG) }
    /// S_ISLNK, a macro in C.
    package var isSymbolicLink: Bool { type == mode_t(S_IFLNK) }
    /// The size; 0 if the filesystem gives a negative one.
    package var byteCount: UInt64 { UInt64(max(0, st_size)) }
    /// The same for every name of a file.
    package var identity: FileIdentity { FileIdentity(device: UInt64(st_dev), inode: UInt64(st_ino)) }
}

/// Identifies a file of this machine.
package struct FileIdentity: Hashable {
    /// `st_dev`.
    package var device: UInt64
    /// `st_ino`.
    package var inode: UInt64
}
