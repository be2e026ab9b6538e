import LinuxIO

/// Parses a SIZE into bytes: digits, then nothing, K, M, G or T (powers of 1024, either case).
///
/// Nil for anything else, for 0, and for more than any disk holds.
func parseSize(_ text: String) -> UInt64? {
    parseQuantity(text, units: ["k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40], max: .max)
}

/// Parses a duration into seconds: digits, then nothing, s, m, h or d. Nil for anything else, for 0, and for more than
/// `durationDaysMax`.
func parseDuration(_ text: String) -> UInt64? {
    let day: UInt64 = 86_400
    return parseQuantity(
        text, units: ["s": 1, "m": 60, "h": 3600, "d": day], max: Quantity(durationDaysMax * day))
}

/// A hundred years: the longest time that an option accepts.
let durationDaysMax: UInt64 = 36_500

private func parseQuantity(_ text: String, units: [Character: UInt64], max: Quantity) -> UInt64? {
    var digits = Substring(text)
    var factor: UInt64 = 1
    if let last = text.lowercased().last, let unit = units[last] {
        factor = unit
        digits = digits.dropLast()
    }
    guard let number = Quantity(digits: digits, in: 1...Quantity.max.value / factor) else { return nil }
    let quantity = number * Quantity(factor)
    return quantity <= max ? quantity.value : nil
}

/// Parses a number of ASCII digits only, within bounds.
func parseNumber(_ text: String, in bounds: ClosedRange<UInt64>, radix: Int = 10) -> UInt64? {
    Quantity(digits: text, radix: radix, in: bounds)?.value
}

/// A SIZE, at most `bytes`, to show and accept as a proposal: whole G from 10G on, else whole M.
func proposalText(_ bytes: UInt64) -> String {
    bytes >= 10 << 30 ? "\(bytes >> 30)G" : "\(bytes >> 20)M"
}
