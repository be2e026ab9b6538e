import Glibc
import VaultCrypto

/// How many random bytes a session that writes adds to its own, and `create` to those of the spaces.
///
/// Some hosts count all bytes that were ever written to a disk (ext4 in its superblock, many drives). On a disk that
/// holds nothing but the vault, that count less what one space explains would tell how much was written to others. So
/// the amounts are drawn from a log-normal distribution: long-tailed, and nowhere dense. The threat model has the
/// calculation.
enum CoverAmount {
    /// Median of a session. With a smaller one than 13.3 MiB, half of all amounts would lie within some 13.3 MiB, and
    /// more than 30 % within some 8 MiB: then whoever knows the distribution tells a shift by 8 MiB in more than 65 %.
    static let sessionBytes: UInt64 = 18 << 20
    /// A session draws again above this.
    static let sessionBytesMax: UInt64 = 128 << 20
    /// Median of `create`, for vaults of any size: what it is to hide, the number of all later sessions, depends on
    /// none.
    static let creationBytes: UInt64 = 256 << 20
    /// `create` draws again above this.
    static let creationBytesMax: UInt64 = 1 << 30

    static func ofSession() -> UInt64 { draw(median: sessionBytes, most: sessionBytesMax) }

    /// In a debug build 0 with `OBSCURA_CREATION=plain` in the environment: tests make hundreds of vaults.
    static func ofCreation() -> UInt64 {
        #if DEBUG
            if let word = getenv("OBSCURA_CREATION"), String(cString: word) == "plain" { return 0 }
        #endif
        return draw(median: creationBytes, most: creationBytesMax)
    }

    /// Draws whole pages of 4096 bytes.
    private static func draw(median: UInt64, most: UInt64) -> UInt64 {
        while true {
            let bytes = Double(median) * exp(normal())
            if bytes <= Double(most) { return UInt64(bytes) / 4096 * 4096 }
        }
    }

    /// A number of the standard normal distribution (Box and Muller, 1958), from the kernel's random numbers.
    private static func normal() -> Double {
        // 53 bits, and never 0.
        func uniform() -> Double { (Double(randomNumber() >> 11) + 0.5) / Double(1 << 53) }
        return (-2 * log(uniform())).squareRoot() * cos(2 * Double.pi * uniform())
    }
}
