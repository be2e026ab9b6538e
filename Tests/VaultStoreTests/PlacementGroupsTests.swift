import Testing

@testable import ClusterIO

/// Names by which all placement groups of a pool are reached.
@Suite("Claims: placement groups of a cluster") struct PlacementGroupsTests {
    /// What `ceph osd map POOL NAME` says of a name, in a namespace.
    private static let hashes: [(namespace: String, name: String, hash: UInt32)] = [
        ("", "a", 0x29ee_c818), ("photos", "a", 0xfcc4_2d87), ("", "family/header", 0x93e4_b49f),
        ("photos", "family/header", 0x8916_0676), ("", "twelve-bytes", 0xd42b_1abb),
        ("photos", "twelve-bytes", 0x6bdc_d7c5), ("", "abcdefghijklmnopqrstuvwxyz", 0xc52f_cee8),
        ("photos", "abcdefghijklmnopqrstuvwxyz", 0xbe3d_411d), ("", "0123456789x", 0x60f7_e4ff),
        ("photos", "0123456789x", 0xdde1_d5ce), ("", "ü", 0x41b7_7cd5), ("photos", "ü", 0x1411_3782),
    ]

    @Test func `a name has the hash that Ceph gives it`() {
        for (namespace, name, hash) in Self.hashes {
            let head = namespace.isEmpty ? [] : Array(namespace.utf8) + [0o37]
            #expect(PlacementGroups.hash(head + Array(name.utf8)) == hash, "\(name)")
        }
    }

    @Test(arguments: [1, 2, 3, 8, 12, 100, 256])
    func `there is a name in each group, also once the pool has fewer or some that were split`(groups: Int)
        throws
    {
        let names = try #require(PlacementGroups.names("family/group-", namespace: "photos", groups: groups))
        #expect(Set(names).count == names.count && names.count < 2 * groups)
        for count in 1...names.count {
            let reached = names.map { PlacementGroups.group(of: $0, namespace: "photos", groups: count) }
            #expect(Set(reached) == Set(0..<count), "\(groups) groups that became \(count)")
        }
    }

    @Test func `groups that cannot be are not sought`() {
        for count in [0, -1, 1 << 30] {
            #expect(PlacementGroups.names("a", namespace: "", groups: count) == nil)
        }
    }

    @Test(
        arguments: [
            (2, "photos", 8), (3, "photos", nil), (2, "photo", nil), (3, "it's 'pool' 2", 100),
            (4, "cold", nil),
            (5, "hot", nil), (6, "old", nil), (7, "cut", nil),
        ] as [(Int64, String, Int?)])
    func `a pool has the number of groups that its line says`(number: Int64, name: String, count: Int?) {
        let text = """
            pool 2 'photos' replicated size 3 min_size 2 crush_rule 0 object_hash rjenkins pg_num 8 pgp_num 8 \
            pg_num_target 16 autoscale_mode on last_change 12 flags hashpspool stripe_width 0 application rbd

            pool 3 'it's 'pool' 2' erasure size 3 object_hash rjenkins pg_num 100 pgp_num 100 stripe_width 8192
            pool 4 'cold' replicated size 1 object_hash rjenkins pg_num 8 tiers 5 read_tier 5 write_tier 5
            pool 5 'hot' replicated size 1 object_hash rjenkins pg_num 8 tier_of 4 cache_mode writeback
            pool 6 'old' replicated size 1 object_hash linux pg_num 8 pgp_num 8
            pool 7 'cut' replicated size 1 object_hash rjenkins pg_num
            """
        #expect(PlacementGroups.count(ofPool: number, name, in: text) == count)
    }
}
