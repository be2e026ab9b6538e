import Glibc

// Most tests are not optimised, and the library's generic operators would go from byte to byte there. These are chosen
// for arrays of bytes, and are optimised.

public func == (first: [UInt8], second: [UInt8]) -> Bool {
    if first.count != second.count { return false }
    return first.withUnsafeBytes { first in
        second.withUnsafeBytes { second in
            first.isEmpty || memcmp(first.baseAddress!, second.baseAddress!, first.count) == 0
        }
    }
}

public func != (first: [UInt8], second: [UInt8]) -> Bool { !(first == second) }

public func + (first: [UInt8], second: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: first.count + second.count) { joined, count in
        _ = joined.update(fromContentsOf: first)
        _ = UnsafeMutableBufferPointer(rebasing: joined[first.count...]).update(fromContentsOf: second)
        count = first.count + second.count
    }
}

/// The bytes that many times, one after another.
public func repeated(_ bytes: [UInt8], _ count: Int) -> [UInt8] {
    var all: [UInt8] = []
    all.reserveCapacity(bytes.count * count)
    for _ in 0..<count { all.append(contentsOf: bytes) }
    return all
}
