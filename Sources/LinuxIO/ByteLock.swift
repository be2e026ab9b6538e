import CShims
import Glibc

/// Locks of single bytes of an open file, by which processes tell each other something: fcntl(2), *Open file
/// description locks*.
///
/// A byte need not be there, and nothing is ever waited for. A lock goes with the last close of its open file. Hosts
/// that have no such locks answer with an error.
public enum ByteLock {
    /// Holds a byte, as others may at the same time.
    public static func hold(_ descriptor: Int32, _ byte: UInt64) throws(Errno) {
        _ = try retryingInterrupts { obscura_share_byte(descriptor, Int64(byte), 1) }
    }

    public static func letGo(_ descriptor: Int32, _ byte: UInt64) throws(Errno) {
        _ = try retryingInterrupts { obscura_share_byte(descriptor, Int64(byte), 0) }
    }

    /// The first of some bytes that another open file holds; nil where none does. Not for byte 0.
    public static func firstHeld(_ descriptor: Int32, in bytes: Range<UInt64>) throws(Errno) -> UInt64? {
        let (first, count) = (Int64(bytes.lowerBound), Int64(bytes.count))
        let byte = try retryingInterrupts { obscura_shared_byte(descriptor, first, count) }
        return byte == 0 ? nil : UInt64(byte)
    }
}
