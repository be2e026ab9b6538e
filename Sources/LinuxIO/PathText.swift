// A path is bytes to Linux, and text to most of this program. A byte that is not UTF-8 becomes a private character
// of its own in that text, U+10FE80 to U+10FEFF, and is that byte again in every system call. Such a character in a
// path is taken for four bytes, so different paths have different texts.

private let escapeBase: UInt32 = 0x10_FE00
private let escapes: ClosedRange<UInt32> = escapeBase + 0x80...escapeBase + 0xFF
/// The first byte of their UTF-8.
private let escapeLead: UInt8 = 0xF4

/// The text of a path of any bytes.
public func pathText(_ bytes: some Sequence<UInt8>) -> String {
    let bytes = Array(bytes)
    // Most paths are plain.
    if bytes.allSatisfy({ $0 < 0x80 }) { return String(decoding: bytes, as: UTF8.self) }
    var result = String.UnicodeScalarView()
    var index = 0
    var iterator = bytes.makeIterator()
    var parser = Unicode.UTF8.ForwardParser()
    func escape(_ count: Int) {
        for byte in bytes[index..<index + count] {
            // Bytes below 0x80 are UTF-8 wherever they stand.
            if let scalar = Unicode.Scalar(escapeBase + UInt32(byte)) { result.append(scalar) }
        }
        index += count
    }
    while true {
        switch parser.parseScalar(from: &iterator) {
        case .emptyInput: return String(result)
        case .error(let count): escape(count)
        case .valid(let encoded):
            let scalar = Unicode.UTF8.decode(encoded)
            if escapes.contains(scalar.value) {
                escape(encoded.count)
            } else {
                result.append(scalar)
                index += encoded.count
            }
        }
    }
}

/// The text of a path that ends with NUL.
public func pathText(_ path: UnsafePointer<CChar>) -> String {
    var end = path
    while end.pointee != 0 { end += 1 }
    return pathText(UnsafeRawBufferPointer(start: path, count: end - path))
}

/// The bytes of a path from `pathText`.
public func pathBytes(_ text: String) -> [UInt8] {
    guard text.utf8.contains(escapeLead) else { return Array(text.utf8) }
    return text.unicodeScalars.flatMap { scalar in
        escapedByte(scalar).map { [$0] } ?? Array(Unicode.UTF8.encode(scalar) ?? .init())
    }
}

/// The byte that a character of a path's text stands for; nil if it stands for itself.
public func escapedByte(_ scalar: Unicode.Scalar) -> UInt8? {
    escapes.contains(scalar.value) ? UInt8(scalar.value - escapeBase) : nil
}

extension String {
    /// Runs `body` with the path of this text as a C string.
    public func withPath<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        utf8.contains(escapeLead) ? withBytes(pathBytes(self), body) : withCString(body)
    }
}
