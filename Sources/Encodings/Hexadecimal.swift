/// Two digits a byte, in lower case.
package func hexText(_ bytes: some Sequence<UInt8>) -> String {
    String(decoding: hexDigits(of: bytes), as: UTF8.self)
}

/// The ASCII digits of `hexText`.
package func hexDigits(of bytes: some Sequence<UInt8>) -> [UInt8] {
    bytes.flatMap { [lowerDigits[Int($0 >> 4)], lowerDigits[Int($0 & 15)]] }
}

/// The value of a digit in upper or lower case; nil for any other byte.
package func hexValue(_ digit: UInt8) -> UInt8? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
    case UInt8(ascii: "A")...UInt8(ascii: "F"): digit - UInt8(ascii: "A") + 10
    default: nil
    }
}

private let lowerDigits = Array("0123456789abcdef".utf8)
let upperDigits = Array("0123456789ABCDEF".utf8)
