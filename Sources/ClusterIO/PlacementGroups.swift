/// The placement groups of a pool: each has the objects whose names have certain hashes, and one server answers for it.
///
/// A server puts off a request until it has a map of the cluster that is as new as its sender's, and from then on it
/// refuses all clients that are blocked in that map. It does so group by group; so a request to a single object of a
/// group, even to a missing one, is as good as a request to each.
package enum PlacementGroups {
    /// The most that a pool has, with room to spare: `mon_max_pool_pg_num`.
    private static let countMax = 1 << 18
    /// Tries for each name: of random hashes some e^-64 of all sought ones are not found.
    private static let triesPerName = 64

    /// Names of objects, at least one in each group of a pool with so many groups. Nil if these cannot be found.
    ///
    /// Each value of the hash's lower bits has a name; so has each group of a pool that has fewer groups by then. A
    /// group that was split off meanwhile begins with the map that splits it, which is newer.
    package static func names(_ prefix: String, namespace: String, groups: Int) -> [String]? {
        guard (1...countMax).contains(groups) else { return nil }
        let count = hashCount(groups)
        var names = [String?](repeating: nil, count: count)
        var missing = count
        for number in 0..<count * triesPerName where missing > 0 {
            let name = prefix + String(number)
            let hash = hash(of: name, namespace) & (count - 1)
            guard names[hash] == nil else { continue }
            names[hash] = name
            missing -= 1
        }
        return missing == 0 ? names.compactMap { $0 } : nil
    }

    /// The group of an object: ceph_stable_mod of src/include/rados.h.
    package static func group(of name: String, namespace: String, groups: Int) -> Int {
        let (count, hash) = (hashCount(groups), hash(of: name, namespace))
        let group = hash & (count - 1)
        return group < groups ? group : hash & (count / 2 - 1)
    }

    /// The number of values of the hash's lower bits that tell groups apart: a power of two, not below their number.
    private static func hashCount(_ groups: Int) -> Int {
        var count = 1
        while count < groups { count *= 2 }
        return count
    }

    private static func hash(of name: String, _ namespace: String) -> Int {
        Int(hash((namespace.isEmpty ? [] : Array(namespace.utf8) + [0o37]) + Array(name.utf8)))
    }

    /// The hash of a name, after that of its namespace and a separator: ceph_str_hash_rjenkins of
    /// src/common/ceph_hash.cc, after <https://burtleburtle.net/bob/hash/evahash.html>.
    static func hash(_ bytes: [UInt8]) -> UInt32 {
        var (a, b, c): (UInt32, UInt32, UInt32) = (0x9e37_79b9, 0x9e37_79b9, 0)
        func word(_ start: Int, _ count: Int) -> UInt32 {
            (0..<max(0, count)).reduce(0) { $0 | UInt32(bytes[start + $1]) << UInt32($1 * 8) }
        }
        var start = 0
        while bytes.count - start >= 12 {
            a &+= word(start, 4)
            b &+= word(start + 4, 4)
            c &+= word(start + 8, 4)
            mix(&a, &b, &c)
            start += 12
        }
        let rest = bytes.count - start
        a &+= word(start, min(rest, 4))
        b &+= word(start + 4, min(rest - 4, 4))
        // Its lowest byte is for the length.
        c &+= word(start + 8, rest - 8) << 8 &+ UInt32(truncatingIfNeeded: bytes.count)
        mix(&a, &b, &c)
        return c
    }

    private static func mix(_ a: inout UInt32, _ b: inout UInt32, _ c: inout UInt32) {
        for (first, second, third) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] as [(UInt32, UInt32, UInt32)] {
            a = (a &- b &- c) ^ c >> first
            b = (b &- c &- a) ^ a << second
            c = (c &- a &- b) ^ b >> third
        }
    }

    /// The number of groups of a pool, from what `ceph osd pool ls detail` prints. Nil if names do not tell in which of
    /// these an object is: it may be in another pool, which is a cache of this one, or the hash is another one.
    package static func count(ofPool number: Int64, _ name: String, in text: String) -> Int? {
        let lines = text.split(separator: "\n").filter { $0.hasPrefix("pool \(number) '\(name)' ") }
        guard lines.count == 1, let line = lines.first else { return nil }
        let words = line.dropFirst("pool \(number) '\(name)' ".count).split(separator: " ")
        func value(_ key: String) -> Substring? {
            guard let index = words.firstIndex(of: Substring(key)), index + 1 < words.count else {
                return nil
            }
            return words[index + 1]
        }
        guard value("object_hash") == "rjenkins",
            !words.contains(where: { ["tiers", "tier_of", "read_tier", "write_tier"].contains($0) })
        else { return nil }
        return value("pg_num").flatMap { Int($0) }
    }
}
