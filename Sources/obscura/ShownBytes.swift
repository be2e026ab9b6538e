import Encodings
import HostFiles

/// A name or path on a line, such that different ones look different: each byte that is not UTF-8, or is of a character
/// that controls a terminal, becomes `\xNN`, and a backslash `\\`, as in JSON.
func shownBytes(_ bytes: [UInt8]) -> String {
    var result = ""
    var index = 0
    var iterator = bytes.makeIterator()
    var parser = Unicode.UTF8.ForwardParser()
    func escape(_ count: Int) {
        for byte in bytes[index..<index + count] { result += "\\x" + hexText([byte]) }
        index += count
    }
    while true {
        switch parser.parseScalar(from: &iterator) {
        case .emptyInput: return result
        case .error(let count): escape(count)
        case .valid(let encoded):
            let scalar = Unicode.UTF8.decode(encoded)
            if isControl(scalar.value) {
                escape(encoded.count)
            } else {
                result += scalar == "\\" ? "\\\\" : String(scalar)
                index += encoded.count
            }
        }
    }
}

/// The bytes that `shownBytes` shows as this text; nil if it shows none so.
func bytes(shownAs text: [UInt8]) -> [UInt8]? {
    var result: [UInt8] = []
    var rest = text[...]
    while let byte = rest.popFirst() {
        guard byte == UInt8(ascii: "\\") else {
            result.append(byte)
            continue
        }
        switch rest.popFirst() {
        case UInt8(ascii: "\\"): result.append(byte)
        case UInt8(ascii: "x"):
            let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
            guard digits.count == 2 else { return nil }
            result.append(UInt8(digits[0] << 4 | digits[1]))
            rest = rest.dropFirst(2)
        default: return nil
        }
    }
    return result
}
