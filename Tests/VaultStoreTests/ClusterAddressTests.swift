import Testing

@testable import VaultStore

/// Names of vaults on a cluster, and of their objects.
@Suite("Space: names on a cluster") struct ClusterAddressTests {
    @Test func `a pool, a namespace and a name`() throws {
        let plain = try #require(try ClusterAddress("ceph:photos/family"))
        #expect((plain.pool, plain.namespace, plain.name) == ("photos", "", "family"))
        let inNamespace = try #require(try ClusterAddress("ceph:photos/club/2026"))
        #expect((inNamespace.pool, inNamespace.namespace, inNamespace.name) == ("photos", "club", "2026"))
    }

    @Test(arguments: ["/v/ceph:photos/family", "./ceph:photos", "ceph", "Vault"])
    func `every other path names files`(path: String) throws { #expect(try ClusterAddress(path) == nil) }

    @Test(arguments: ["ceph:", "ceph:photos", "ceph:photos/", "ceph:/family", "ceph:a//b", "ceph:a/b/c/d"])
    func `an address without a pool or a name is no vault`(path: String) {
        #expect(throws: VaultError.notAVault(path)) { try ClusterAddress(path) }
    }

    @Test func `an object tells its place`() throws {
        let address = try #require(try ClusterAddress("ceph:photos/family"))
        for (segment, index) in [(0, 0), (12, 3), (1_234_567, 15)] {
            #expect(
                address.place(of: address.object(segment, index))
                    == ObjectPlace(isShared: false, segment: segment, index: index))
            #expect(
                address.place(of: address.object(ofRow: segment, index))
                    == ObjectPlace(isShared: true, segment: segment, index: index))
        }
        for other in [
            "family/header", "family/0.0", "family/000000.00", "family2/000000.0", "family/000000.0.0",
            "family/spaces-0.0", "family/spaces-spaces-000000.0", "family/log-000000.0",
        ] {
            #expect(address.place(of: other) == nil, "\(other)")
        }
    }
}
