/// Bytes with a few random changes, such as a fuzzer makes: bits, values at an edge, and pieces that are taken away,
/// repeated or cut.
package func mutated(_ bytes: [UInt8], _ random: inout some RandomNumberGenerator) -> [UInt8] {
    var bytes = bytes
    for _ in 0..<Int.random(in: 1...6, using: &random) {
        guard !bytes.isEmpty else { return bytes }
        let at = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<7, using: &random) {
        case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[at] = [0, 1, 0x7F, 0x80, 0xFF].randomElement(using: &random) ?? 0
        case 2:
            let value: UInt8 = Bool.random(using: &random) ? 0xFF : 0
            for index in at..<min(at + 4, bytes.count) { bytes[index] = value }
        case 3: bytes.removeSubrange(at..<min(at + Int.random(in: 1...64, using: &random), bytes.count))
        case 4:
            let from = Int.random(in: 0..<bytes.count, using: &random)
            let length = min(Int.random(in: 1...64, using: &random), bytes.count - max(at, from))
            for index in 0..<length { bytes[at + index] = bytes[from + index] }
        case 5: bytes.removeLast(Int.random(in: 0..<bytes.count, using: &random) / 2)
        default: bytes[at] = UInt8.random(in: .min ... .max, using: &random)
        }
    }
    return bytes
}
