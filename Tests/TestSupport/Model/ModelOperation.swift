import Glibc

/// One thing that a program asks of a file system, by paths below its top.
enum ModelOperation: CustomStringConvertible {
    /// Makes or empties a file, writes all of it and closes it.
    case write(String, [UInt8])
    /// Opens a file, adds to its end and closes it.
    case append(String, [UInt8])
    /// truncate(2).
    case truncate(String, Int)
    case makeDirectory(String)
    case removeDirectory(String)
    case remove(String)
    /// unlink(2) of a file, and rename(2) of another onto its name, by one thread.
    case replace(String, by: String)
    case symbolicLink(String, target: String)
    case fifo(String)
    case link(String, String)
    case rename(String, String, Way)
    case setMode(String, UInt32)
    /// Sets a time of change, in seconds since 1970.
    case touch(String, Int64)
    case setAttribute(String, String, [UInt8])
    case removeAttribute(String, String)

    /// The flags of renameat2(2).
    enum Way: UInt32 {
        case plain = 0
        case noReplace = 1
        case exchange = 2
    }

    var description: String {
        switch self {
        case .write(let path, let bytes): "write \(path) \(bytes.count) bytes, \(sum(bytes))"
        case .append(let path, let bytes): "append \(path) \(bytes.count) bytes"
        case .truncate(let path, let size): "truncate \(path) \(size)"
        case .makeDirectory(let path): "mkdir \(path)"
        case .removeDirectory(let path): "rmdir \(path)"
        case .remove(let path): "unlink \(path)"
        case .replace(let path, let temporary): "unlink \(path), rename \(temporary) -> \(path)"
        case .symbolicLink(let path, let target): "symlink \(target) \(path)"
        case .fifo(let path): "mkfifo \(path)"
        case .link(let from, let to): "link \(from) \(to)"
        case .rename(let from, let to, let way): "rename \(from) -> \(to) \(way)"
        case .setMode(let path, let mode): "chmod \(path) \(String(mode, radix: 8))"
        case .touch(let path, let seconds): "touch \(path) \(seconds)"
        case .setAttribute(let path, let name, let value): "setxattr \(path) \(name) \(value.count) bytes"
        case .removeAttribute(let path, let name): "removexattr \(path) \(name)"
        }
    }

    /// A number to tell contents apart by, FNV-1a.
    private func sum(_ bytes: [UInt8]) -> String { String(modelSum(bytes), radix: 16) }
}

/// A number to tell contents apart by, FNV-1a.
func modelSum(_ bytes: [UInt8]) -> UInt64 {
    bytes.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
}
