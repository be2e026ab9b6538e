/// Bytes from a SIZE as users write it: digits, then nothing, K, M, G or T (powers of 1024, either case).
///
/// Nil for anything else, for 0, and for what does not fit 64 bits.
func parseSize(_ text: String) -> UInt64? {
    parseQuantity(text, units: ["k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40])
}

/// Seconds from a duration: digits, then nothing, s, m, h or d. Nil for anything else and for 0.
func parseDuration(_ text: String) -> UInt64? {
    parseQuantity(text, units: ["s": 1, "m": 60, "h": 3600, "d": 86_400])
}

private func parseQuantity(_ text: String, units: [Character: UInt64]) -> UInt64? {
    var digits = Substring(text)
    var factor: UInt64 = 1
    if let last = text.lowercased().last, let unit = units[last] {
        factor = unit
        digits = digits.dropLast()
    }
    guard let number = parseDigits(digits) else { return nil }
    let (bytes, overflow) = number.multipliedReportingOverflow(by: factor)
    return overflow || bytes == 0 ? nil : bytes
}

/// A number of ASCII digits only: the initialisers of Swift's integers also take signs.
func parseDigits(_ text: some StringProtocol, radix: Int = 10) -> UInt64? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
    return UInt64(text, radix: radix)
}

/// The SIZE, never more than `bytes`, that is shown and accepted as a proposal: whole G from 10G on, else whole M.
func proposalText(_ bytes: UInt64) -> String {
    bytes >= 10 << 30 ? "\(bytes >> 30)G" : "\(bytes >> 20)M"
}

/// `bytes` for people: one decimal below 10 units, in powers of 1024 ("6.2 GiB").
func sizeText(_ bytes: UInt64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    var unit = 0
    var whole = bytes
    var tenths: UInt64 = 0
    while whole >= 1024, unit < units.count - 1 {
        tenths = whole % 1024 * 10 / 1024
        whole /= 1024
        unit += 1
    }
    return whole < 10 && tenths > 0 ? "\(whole).\(tenths) \(units[unit])" : "\(whole) \(units[unit])"
}

/// The sum of two sizes in bytes; the most there is where sparse files say to be larger than that together.
func sizeSum(_ a: UInt64, _ b: UInt64) -> UInt64 {
    let (sum, isTooMuch) = a.addingReportingOverflow(b)
    return isTooMuch ? .max : sum
}
