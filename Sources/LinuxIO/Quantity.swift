/// A count, or a number of bytes, from outside: an argument, a directory, the host.
///
/// It is parsed within bounds. Its arithmetic neither traps nor wraps: results saturate at `max` and at 0.
public struct Quantity: Sendable, Hashable, Comparable {
    /// At most `Quantity.max`.
    public let value: UInt64

    /// The largest quantity: 2^62, so that sums of three, and conversions to signed numbers, cannot overflow.
    public static let max = Quantity(UInt64(1) << 62)

    /// Clamps any integer to 0 … `max`.
    public init(_ number: some BinaryInteger) {
        value = Swift.min(UInt64(clamping: number), 1 << 62)
    }

    /// Parses ASCII digits only, within the bounds. Swift's integer initialisers would also accept signs.
    public init?(digits text: some StringProtocol, radix: Int = 10, in bounds: ClosedRange<UInt64>) {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
            let number = UInt64(text, radix: radix), bounds.contains(number), number <= Quantity.max.value
        else { return nil }
        value = number
    }

    /// As another integer type, clamped to its maximum.
    public func clamped<T: FixedWidthInteger>(to type: T.Type = T.self) -> T { T(clamping: value) }

    /// Always fits.
    public var int: Int { Int(value) }

    public static func + (a: Quantity, b: Quantity) -> Quantity { Quantity(a.value + b.value) }

    public static func - (a: Quantity, b: Quantity) -> Quantity {
        Quantity(a.value - Swift.min(a.value, b.value))
    }

    public static func * (a: Quantity, b: Quantity) -> Quantity {
        let (product, isTooMuch) = a.value.multipliedReportingOverflow(by: b.value)
        return isTooMuch ? max : Quantity(product)
    }

    public static func += (a: inout Quantity, b: Quantity) { a = a + b }

    /// The number of units that hold this quantity, rounded up; 0 if the unit is 0.
    public func units(of unit: Quantity) -> Quantity {
        guard unit.value > 0 else { return Quantity(0) }
        let (whole, rest) = value.quotientAndRemainder(dividingBy: unit.value)
        return Quantity(whole + (rest > 0 ? 1 : 0))
    }

    public static func < (a: Quantity, b: Quantity) -> Bool { a.value < b.value }
}

extension Sequence<Quantity> {
    /// The sum of all.
    public func total() -> Quantity { reduce(Quantity(0), +) }
}

/// `bytes` for display: one decimal below 10 units, in powers of 1024 ("6.2 GiB").
package func sizeText(_ bytes: UInt64) -> String {
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

/// A number of photos for display, rounded down to two digits that count: "1,000".
///
/// - Parameter separator: between groups of three digits.
package func photosText(_ count: Int, separator: String = ",") -> String {
    var power = 1
    while count / power >= 100 { power *= 10 }
    var digits = String(count / power * power)[...]
    var groups: [Substring] = []
    while digits.count > 3 {
        groups.insert(digits.suffix(3), at: 0)
        digits = digits.dropLast(3)
    }
    return ([digits] + groups).joined(separator: separator)
}

/// The sum of two sizes in bytes, at most `Quantity.max`: sparse files may claim more together.
package func sizeSum(_ a: UInt64, _ b: UInt64) -> UInt64 { (Quantity(a) + Quantity(b)).value }
