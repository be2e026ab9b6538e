import LinuxIO
import Testing

/// Numbers from outside: none of them traps.
@Suite("System calls: bounded numbers") struct QuantityTests {
    private let max = Quantity.max

    @Test func `any number becomes a value within the bounds`() {
        #expect(Quantity(-1).value == 0 && Quantity(Int64.min).value == 0)
        #expect(
            Quantity(UInt64.max) == max && Quantity(Int.max) == max
                && Quantity(Int32.max).value == 0x7FFF_FFFF)
        #expect(
            max.int == 1 << 62 && max.clamped(to: Int32.self) == .max
                && Quantity(300).clamped(to: UInt8.self) == 255)
    }

    @Test func `sums, products and differences end at the bounds`() {
        let edges = [0, 1, 2, 3, 511, 1 << 31, 1 << 32, 1 << 61, 1 << 62, .max].map { Quantity($0 as UInt64) }
        for a in edges {
            for b in edges {
                #expect((a + b).value == min(a.value + b.value, 1 << 62))
                #expect((a - b).value == (a.value > b.value ? a.value - b.value : 0))
                let (high, low) = a.value.multipliedFullWidth(by: b.value)
                #expect((a * b).value == (high > 0 ? 1 << 62 : min(low, 1 << 62)))
                let units = b.value == 0 ? 0 : a.value / b.value + (a.value % b.value > 0 ? 1 : 0)
                #expect(a.units(of: b).value == units)
            }
        }
        #expect(edges.total() == max)
        #expect([Quantity(1), Quantity(2)].total().value == 3)
    }

    @Test func `only digits within the bounds are read`() {
        #expect(Quantity(digits: "042", in: 0...42)?.value == 42)
        #expect(Quantity(digits: "777", radix: 8, in: 0...511)?.value == 511)
        #expect(Quantity(digits: "8", radix: 8, in: 0...511) == nil)
        #expect(Quantity(digits: String(repeating: "0", count: 99) + "7", in: 0...9)?.value == 7)
        for text in [
            "", "-1", "+1", " 1", "1 ", "1.0", "0x10", "٣", "1\u{301}", "43", "18446744073709551616",
        ] {
            #expect(Quantity(digits: text, in: 0...42) == nil, "\(text)")
        }
        #expect(Quantity(digits: "\(UInt64.max)", in: 0...UInt64.max) == nil)
        #expect(Quantity(digits: "\(UInt64(1) << 62)", in: 0...UInt64.max) == max)
    }
}
