/// Numbers that can be had again: the seed is printed with every failure. xorshift64*.
public struct RandomSource: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(_ seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 | 1 }

    public mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state &* 0x2545_F491_4F6C_DD1D
    }
}
