package import LinuxIO

/// A connection to a pool of a cluster, by which all requests of this program go; in tests also to one in memory.
///
/// Calls come from several threads at once. Writes to one object are done in the order in which they were begun. An
/// error is the cluster's: ESHUTDOWN once this client is shut out, EBUSY if another client has a lock, ENOENT if there
/// is no such object.
package protocol PoolConnection: AnyObject, Sendable {
    /// Called once, with the answer, on any thread.
    typealias Answered = @Sendable (PoolAnswer) -> Void

    // MARK: Requests that run beside others

    /// Begins a write of all steps, or none.
    ///
    /// - Parameters:
    ///   - version: fails with ERANGE or EOVERFLOW if the object has another one; nil for any.
    ///   - ended: not called if this throws.
    func startWrite(
        _ steps: [ClusterPool.Step], on object: String, version: UInt64?, _ whenFull: ClusterPool.WhenFull,
        _ ended: Answered?
    ) throws(Errno) -> any PoolRequest

    /// Begins to read from an offset on. The buffer belongs to the request until it is answered.
    func startRead(
        _ object: String, at offset: UInt64, into bytes: UnsafeMutableRawBufferPointer, _ ended: Answered?
    ) throws(Errno) -> any PoolRequest

    /// Called before a thread waits for writes to these objects, or to all if nil, that it or another one has begun. A
    /// connection without threads of its own answers them now.
    func willWait(for objects: Set<String>?)

    /// Called every second: a connection that rests may give memory back.
    func noteSecond()

    // MARK: An object

    /// Bytes of an object.
    func size(of object: String) throws(Errno) -> UInt64

    /// As `size(of:)`. Throws ETIMEDOUT if there is no answer within so long.
    func size(of object: String, within milliseconds: Int64) throws(Errno) -> UInt64

    /// Sizes of objects in bytes, asked for at once; nil of a missing object.
    func sizes(of objects: [String]) throws(Errno) -> [UInt64?]

    /// The version of the object that a thread has asked for last: so one thread at a time asks.
    var lastVersion: UInt64 { get }

    /// The value of an attribute. Throws ENODATA if there is none.
    func attribute(_ name: String, of object: String) throws(Errno) -> [UInt8]

    /// Takes a lock, or renews the own one.
    func take(_ lock: ClusterLock, of object: String) throws(Errno)

    /// Gives a lock up, if this client holds it.
    func giveUp(_ lock: ClusterLock, of object: String)

    // MARK: The pool and its cluster

    /// The names of all objects in the namespace.
    func objects() throws(Errno) -> [String]

    /// Bytes of the cluster: in all, and available.
    func room() throws(Errno) -> (total: UInt64, available: UInt64)

    /// The addresses by which servers know this client.
    func addresses() throws(Errno) -> String

    /// Shuts a client out for so long. It holds at each object once one request of this client to its placement group
    /// was answered.
    func fence(_ address: String, seconds: UInt32) throws(Errno)

    /// Names that begin so, at least one in each placement group that the pool has now; no object need have them. Nil
    /// if the cluster does not tell.
    func namesInAllGroups(prefix: String) throws(Errno) -> [String]?

    // MARK: Messages between clients, by way of an object

    /// Calls `isGranted` whenever another client asks by `ask`, and answers as it does. On threads of the connection. A
    /// watch that the servers forgot is registered again by `mendWatches`.
    func watch(_ object: String, isGranted: @escaping @Sendable () -> Bool) throws(Errno)

    /// Registers watches again that the servers forgot, because they or this client did not answer for long. Returns at
    /// once: what fails is tried again by the next call.
    func mendWatches()

    /// Ends all watches, and waits for their callbacks.
    func endWatches()

    /// Asks the clients that watch an object. Returns whether one of these grants it.
    func ask(_ object: String) -> Bool
}

/// The answer to a request for an object.
package struct PoolAnswer: Sendable {
    /// Of a read the number of bytes; negative for an error.
    package var result: Int32
    /// Of a write, of the object after it.
    package var version: UInt64

    package init(_ result: Int32, version: UInt64 = 0) { (self.result, self.version) = (result, version) }
}

/// A request that has begun.
package protocol PoolRequest: AnyObject, Sendable {
    /// Waits for its answer.
    func wait() -> PoolAnswer

    /// Ends a read with an error, if it is not answered yet.
    func cancel()
}

/// System calls of tests that also reach clusters of their own.
package protocol ClusterCalls: FileSystemCalls {
    func connect(pool: String, namespace: String) throws(Errno) -> any PoolConnection
}
