import Glibc
import LinuxIO
import Synchronization

/// The handles of a connection to a cluster and of a pool there.
///
/// Unchecked Sendable: librados guards the objects behind the handles.
final class RadosHandles: @unchecked Sendable {
    let cluster: Librados.Handle
    let pool: Librados.Handle

    /// A pool and a namespace of it, and the environment by which librados finds the cluster.
    struct Place: Equatable {
        let pool: String
        let namespace: String
        private let environment: [String?]

        init(pool: String, namespace: String) {
            (self.pool, self.namespace) = (pool, namespace)
            environment = ["CEPH_CONF", "CEPH_ARGS"].map { (name: String) -> String? in
                getenv(name).map { String(cString: $0) }
            }
        }
    }

    private static let settings = [
        ("client_mount_timeout", "15"), ("admin_socket", ""),
        // A write that is no longer waited for may happen later, beside newer ones.
        ("rados_osd_op_timeout", "0"),
    ]

    /// Connects. Throws ELIBACC if librados is not installed.
    init(_ place: Place) throws(Errno) {
        guard Librados.isInstalled else { throw Errno(ELIBACC) }
        var made: Librados.Handle?
        try check(Librados.create(&made, nil))
        guard let cluster = made else { throw .inputOutput }
        var opened: Librados.Handle?
        do throws(Errno) {
            try check(Librados.readConfiguration(cluster, nil))
            try check(Librados.readEnvironment(cluster, nil))
            for (key, value) in Self.settings { try check(Librados.set(cluster, key, value)) }
            try check(Librados.connect(cluster))
            try check(Librados.openPool(cluster, place.pool, &opened))
        } catch {
            Librados.shutDown(cluster)
            throw error
        }
        guard let opened else { throw .inputOutput }
        Librados.setNamespace(opened, place.namespace)
        // Locks are renewed there as well.
        Librados.answerWhenFull(opened)
        (self.cluster, pool) = (cluster, opened)
    }

    /// Ends the connection. Call once.
    func end() {
        Librados.closePool(pool)
        Librados.shutDown(cluster)
    }
}

/// Connections of this process that nothing uses any more. Beginning one and ending one each take some hundredths of a
/// second, and a command that opens a vault has looked at it before.
package final class RestingConnections: Sendable {
    private struct State {
        /// One through which nothing was ever written or locked: so no other client can have shut it out, and nothing
        /// of it is on its way.
        var resting: (place: RadosHandles.Place, handles: RadosHandles)?
        /// Whether there was any connection.
        var isBegun = false
    }

    package static let shared = RestingConnections()

    private let state = Mutex(State())

    /// A connection to a place, which the caller has for itself.
    func take(_ place: RadosHandles.Place) throws(Errno) -> RadosHandles {
        let found = state.withLock { state -> RadosHandles? in
            state.isBegun = true
            guard let resting = state.resting, resting.place == place else { return nil }
            state.resting = nil
            return resting.handles
        }
        if let found { return found }
        return try RadosHandles(place)
    }

    /// Takes a connection back.
    ///
    /// - Parameter isUnused: whether nothing was ever written or locked through it.
    func giveBack(_ handles: RadosHandles, of place: RadosHandles.Place, isUnused: Bool) {
        let former = state.withLock { state -> RadosHandles? in
            if !isUnused { return handles }
            defer { state.resting = (place, handles) }
            return state.resting?.handles
        }
        // Nobody waits for its end.
        if let former, !startThreadIfPossible({ former.end() }) { former.end() }
    }

    /// Ends this process. Where threads of librados may run, without the functions that are registered for its exit:
    /// these functions free the memory that the threads use.
    package func endProcess(_ status: Int32) -> Never {
        if state.withLock({ $0.isBegun }) { _exit(status) }
        exit(status)
    }
}
