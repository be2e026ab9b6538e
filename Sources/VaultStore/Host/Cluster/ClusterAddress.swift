import ClusterIO
import Glibc
import LinuxIO
import VaultFormat

/// The place of a vault on a Ceph cluster: `ceph:POOL/NAME` or `ceph:POOL/NAMESPACE/NAME`.
struct ClusterAddress: Sendable, Equatable {
    let pool: String
    let namespace: String
    let name: String
    /// The clusters of a test; nil for librados.
    private let clusters: (any ClusterCalls)?

    /// Nil if the path names files. A directory of such a name is `./ceph:…`.
    init?(_ path: String, on clusters: (any ClusterCalls)? = nil) throws(VaultError) {
        guard isClusterPath(path) else { return nil }
        let parts = path.dropFirst(clusterPrefix.utf8.count)
            .split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard (2...3).contains(parts.count), !parts.contains("") else { throw .notAVault(path) }
        (pool, name) = (parts[0], parts[parts.count - 1])
        namespace = parts.count == 3 ? parts[1] : ""
        self.clusters = clusters
    }

    static func == (a: ClusterAddress, b: ClusterAddress) -> Bool { a.path == b.path }

    /// As the user typed it.
    var path: String {
        clusterPrefix + [pool, namespace, name].filter { !$0.isEmpty }.joined(separator: "/")
    }

    func connected() throws(VaultError) -> ClusterPool {
        do throws(Errno) { return try ClusterPool(connection()) } catch {
            if error.rawValue == ELIBACC {
                throw .system(error, "a vault on a cluster takes librados2: install obscura-ceph")
            }
            throw .system(error, "cannot reach pool \(pool) of the Ceph cluster")
        }
    }

    private func connection() throws(Errno) -> any PoolConnection {
        if let clusters { return try clusters.connect(pool: pool, namespace: namespace) }
        return try RadosConnection(pool: pool, namespace: namespace)
    }

    // MARK: Objects

    /// Bytes of an object of a segment, except the last one.
    static let objectBytes: UInt64 = 4 << 20

    /// The parts of a range of a stripe, by object.
    ///
    /// - Parameter bytes: how many bytes of the stripe an object has.
    static func parts(
        _ range: Range<UInt64>, each bytes: UInt64 = objectBytes
    ) -> [(index: Int, range: Range<UInt64>)] {
        var parts: [(index: Int, range: Range<UInt64>)] = []
        var start = range.lowerBound
        while start < range.upperBound {
            let index = start / bytes
            let end = min(range.upperBound, (index + 1) * bytes)
            parts.append((Int(index), start - index * bytes..<end - index * bytes))
            start = end
        }
        return parts
    }

    /// The reads of parts of objects, one after another, into `bytes`.
    ///
    /// - Parameter object: the name of an object by its index.
    static func reads(
        _ bytes: UnsafeMutableRawBufferPointer, _ parts: [(index: Int, range: Range<UInt64>)],
        of object: (Int) -> String
    ) -> [ClusterPool.Read] {
        var done = 0
        return parts.map { index, range in
            defer { done += range.count }
            return ClusterPool.Read(object(index), at: range.lowerBound, into: bytes.slice(done, range.count))
        }
    }

    var header: String { "\(name)/header" }

    /// An object of a segment of a vault of one space. The first exists as long as the segment.
    func object(_ segment: Int, _ index: Int = 0) -> String {
        "\(name)/\(SegmentLayout.digits(segment)).\(index)"
    }

    /// An object of a row of segments, of a vault of several spaces.
    func object(ofRow row: Int, _ index: Int) -> String {
        "\(name)/\(Self.rowPrefix)\(SegmentLayout.digits(row)).\(index)"
    }

    private static let rowPrefix = SegmentLayout.sharedName + "-"

    /// The beginning of the names of all objects of logs of backups.
    var logPrefix: String { "\(name)/log-" }

    /// An object of the log of that name.
    func object(ofLog log: String, _ index: Int) -> String { "\(logPrefix)\(log).\(index)" }

    /// The place of an object among those of segments; nil for the header, a log, and objects of other vaults.
    func place(of object: String) -> ObjectPlace? {
        guard object.hasPrefix(name + "/") else { return nil }
        var rest = object.dropFirst(name.utf8.count + 1)
        let isShared = rest.hasPrefix(Self.rowPrefix)
        if isShared { rest = rest.dropFirst(Self.rowPrefix.utf8.count) }
        let parts = rest.split(separator: ".")
        guard parts.count == 2, let segment = Int(parts[0]), let index = Int(parts[1]),
            (0..<Geometry.segmentsMax).contains(segment),
            (isShared ? self.object(ofRow: segment, index) : self.object(segment, index)) == object
        else { return nil }
        return ObjectPlace(isShared: isShared, segment: segment, index: index)
    }
}

/// The place of an object among those of segments.
struct ObjectPlace: Equatable {
    /// Whether it is of a vault of several spaces: then `segment` is a row's number.
    var isShared: Bool
    var segment: Int
    var index: Int
}
