/// Text of a 128-bit secret: letters and digits that cannot be mistaken for each other (Crockford's base32), in lower
/// case, grouped by hyphens for people.
package enum SecretText {
    private static let digits = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
    private static let groupDigits = 5

    /// 26 digits in groups of five.
    package static func text(_ secret: [UInt8]) -> String {
        var result: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        func add(_ value: UInt32, _ result: inout [UInt8]) {
            if !result.isEmpty, result.count % (groupDigits + 1) == groupDigits {
                result.append(UInt8(ascii: "-"))
            }
            result.append(digits[Int(value)])
        }
        for byte in secret {
            bits = (bits << 8 | UInt32(byte)) & 0xFFF
            count += 8
            while count >= 5 {
                count -= 5
                add(bits >> count & 31, &result)
            }
        }
        if count > 0 { add(bits << (5 - count) & 31, &result) }
        return String(decoding: result, as: UTF8.self)
    }

    /// The secret of such a text, whatever its hyphens, spaces and case. Nil for anything else.
    package static func secret(_ text: some Collection<UInt8>) -> [UInt8]? {
        var result: [UInt8] = []
        var (bits, count): (UInt32, UInt32) = (0, 0)
        var digitCount = 0
        for byte in text where byte != UInt8(ascii: "-") && byte != UInt8(ascii: " ") {
            let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            guard let value = digits.firstIndex(of: isCapital ? byte + 32 : byte), digitCount < 26 else {
                return nil
            }
            digitCount += 1
            bits = (bits << 5 | UInt32(value)) & 0xFFF
            count += 5
            if count >= 8 {
                count -= 8
                result.append(UInt8(truncatingIfNeeded: bits >> count))
            }
        }
        let isWhole = digitCount == 26 && bits & ((1 << count) - 1) == 0
        return isWhole && result.count == PacketLimits.secretBytes ? result : nil
    }
}
