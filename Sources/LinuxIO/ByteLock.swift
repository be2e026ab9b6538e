import CShims
import Glibc

/// Shared locks on single bytes of an open file, by which processes signal to each other: fcntl(2), *Open file
/// description locks*.
///
/// A byte need not exist, and no call waits. A lock ends with the last close of its open file. Hosts without such locks
/// return an error.
public enum ByteLock {
    /// Takes a shared lock on a byte.
    public static func hold(_ descriptor: Int32, _ byte: UInt64) throws(Errno) {
        _ = try retryingInterrupts { obscura_share_byte(descriptor, Int64(byte), 1) }
    }

    public static func letGo(_ descriptor: Int32, _ byte: UInt64) throws(Errno) {
        _ = try retryingInterrupts { obscura_share_byte(descriptor, Int64(byte), 0) }
    }

    /// The first byte of a range that another open file holds; nil if there is none. The range must not contain byte 0.
    public static func firstHeld(_ descriptor: Int32, in bytes: Range<UInt64>) throws(Errno) -> UInt64? {
        let (first, count) = (Int64(bytes.lowerBound), Int64(bytes.count))
        let byte = try retryingInterrupts { obscura_shared_byte(descriptor, first, count) }
        return byte == 0 ? nil : UInt64(byte)
    }
}
