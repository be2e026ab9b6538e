internal import Glibc

/// A line of /proc/self/mountinfo, proc(5).
struct MountTableEntry: Equatable {
    /// "major:minor" of the mounted filesystem, which no other has at the same time.
    var device: String
    var directory: String
    var type: String

    /// Nil where the line is not of the documented form.
    init?(line: Substring) {
        let fields = line.split(separator: " ")
        guard let dash = fields.firstIndex(of: "-"), dash >= 6, fields.count > dash + 1 else { return nil }
        device = String(fields[2])
        directory = Self.unescape(fields[4])
        type = String(fields[dash + 1])
    }

    /// Space, tab, newline and backslash are written as a backslash and three octal digits.
    private static func unescape(_ field: Substring) -> String {
        var bytes: [UInt8] = []
        var rest = Array(field.utf8)[...]
        while let byte = rest.popFirst() {
            let digits = rest.prefix(3).map { $0 &- 48 }
            if byte == UInt8(ascii: "\\"), digits.count == 3, digits.allSatisfy({ $0 < 8 }) {
                bytes.append(digits[0] << 6 | digits[1] << 3 | digits[2])
                rest = rest.dropFirst(3)
            } else {
                bytes.append(byte)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}

/// What is mounted, as this process sees it, in the order of mounting. Empty where /proc is not there.
func mountTable() -> [MountTableEntry] {
    String(decoding: readSmallFile("/proc/self/mountinfo"), as: UTF8.self)
        .split(separator: "\n").compactMap { MountTableEntry(line: $0) }
}

/// All bytes of a file; none when it cannot be read.
func readSmallFile(_ path: String) -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return [] }
    defer { close(descriptor) }
    var (result, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
    while true {
        let count = read(descriptor, &piece, piece.count)
        guard count > 0 else { return result }
        result += piece[..<count]
    }
}
