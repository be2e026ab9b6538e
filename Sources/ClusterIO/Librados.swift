import Glibc

/// The calls of librados that this program uses, from Debian's librados2: rados/librados.h. Each returns a negative
/// error number where it fails.
///
/// The library is loaded when a vault names a cluster: a program for files must not need Ceph installed.
enum Librados {
    typealias Handle = UnsafeMutableRawPointer
    typealias Text = UnsafePointer<CChar>
    typealias Texts = UnsafeMutablePointer<UnsafePointer<CChar>?>
    typealias MadeHandle = UnsafeMutablePointer<Handle?>
    typealias Callback = @convention(c) (Handle?, Handle?) -> Void
    typealias Plain = @Sendable @convention(c) (Handle) -> Int32
    typealias Ending = @Sendable @convention(c) (Handle) -> Void

    private nonisolated(unsafe) static let library = dlopen("librados.so.2", RTLD_NOW | RTLD_LOCAL)

    static var isInstalled: Bool { library != nil }

    private static func call<F>(_ name: String, _ type: F.Type) -> F {
        guard let found = dlsym(library, "rados_" + name) else {
            preconditionFailure("librados has no rados_\(name)")
        }
        return unsafeBitCast(found, to: type)
    }

    // MARK: The cluster

    static let create = call("create", (@Sendable @convention(c) (MadeHandle, Text?) -> Int32).self)
    static let readConfiguration = call(
        "conf_read_file", (@Sendable @convention(c) (Handle, Text?) -> Int32).self)
    static let readEnvironment = call(
        "conf_parse_env", (@Sendable @convention(c) (Handle, Text?) -> Int32).self)
    static let set = call("conf_set", (@Sendable @convention(c) (Handle, Text, Text) -> Int32).self)
    static let connect = call("connect", Plain.self)
    static let shutDown = call("shutdown", Ending.self)
    static let waitForMap = call("wait_for_latest_osdmap", Plain.self)
    /// Fills in four numbers: kibibytes in all, used and available, and objects.
    static let statistics = call(
        "cluster_stat", (@Sendable @convention(c) (Handle, UnsafeMutablePointer<UInt64>) -> Int32).self)
    static let addresses = call(
        "getaddrs",
        (@Sendable @convention(c) (Handle, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Int32)
            .self)
    static let free = call(
        "buffer_free", (@Sendable @convention(c) (UnsafeMutablePointer<CChar>) -> Void).self)
    static let block = call(
        "blocklist_add",
        (@Sendable @convention(c) (Handle, UnsafeMutablePointer<CChar>, UInt32) -> Int32).self)

    /// Asks a monitor: commands and their number, bytes for it and their number, its answer and a text.
    static let command = call(
        "mon_command",
        (@Sendable @convention(c) (
            Handle, Texts, Int, Text?, Int, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
            UnsafeMutablePointer<Int>, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
            UnsafeMutablePointer<Int>?
        ) -> Int32).self)

    // MARK: A pool

    static let openPool = call(
        "ioctx_create", (@Sendable @convention(c) (Handle, Text, MadeHandle) -> Int32).self)
    static let closePool = call("ioctx_destroy", Ending.self)
    static let poolNumber = call("ioctx_get_id", (@Sendable @convention(c) (Handle) -> Int64).self)
    static let setNamespace = call(
        "ioctx_set_namespace", (@Sendable @convention(c) (Handle, Text) -> Void).self)
    /// From now on a full cluster answers each request, instead of holding it.
    static let answerWhenFull = call("set_pool_full_try", Ending.self)
    static let lastVersion = call("get_last_version", (@Sendable @convention(c) (Handle) -> UInt64).self)
    static let beginList = call(
        "nobjects_list_open", (@Sendable @convention(c) (Handle, MadeHandle) -> Int32).self)
    static let nextInList = call(
        "nobjects_list_next", (@Sendable @convention(c) (Handle, Texts, Texts?, Texts?) -> Int32).self)
    static let endList = call("nobjects_list_close", Ending.self)

    // MARK: An object

    static let status = call(
        "stat",
        (@Sendable @convention(c) (
            Handle, Text, UnsafeMutablePointer<UInt64>, UnsafeMutablePointer<time_t>
        ) -> Int32).self)
    static let attribute = call(
        "getxattr",
        (@Sendable @convention(c) (Handle, Text, Text, UnsafeMutablePointer<CChar>, Int) -> Int32).self)
    static let lock = call(
        "lock_exclusive",
        (@Sendable @convention(c) (
            Handle, Text, Text, Text, Text, UnsafeMutablePointer<timeval>, UInt8
        ) -> Int32).self)
    static let unlock = call(
        "unlock", (@Sendable @convention(c) (Handle, Text, Text, Text) -> Int32).self)

    // MARK: Messages to those that watch an object

    /// The argument of `watch`, the message's number, the watch, its sender, its bytes and their number.
    typealias WatchCallback = @convention(c) (Handle?, UInt64, UInt64, UInt64, Handle?, Int) -> Void
    typealias WatchErrorCallback = @convention(c) (Handle?, UInt64, Int32) -> Void
    static let watch = call(
        "watch3",
        (@Sendable @convention(c) (
            Handle, Text, UnsafeMutablePointer<UInt64>, WatchCallback?, WatchErrorCallback?, UInt32, Handle?
        ) -> Int32).self)
    static let endWatch = call("unwatch2", (@Sendable @convention(c) (Handle, UInt64) -> Int32).self)
    /// The milliseconds since the servers were last known to have a watch. Asks nobody.
    static let checkWatch = call("watch_check", (@Sendable @convention(c) (Handle, UInt64) -> Int32).self)
    /// As `watch`, beside other requests. Fills in the watch at once.
    static let startWatch = call(
        "aio_watch2",
        (@Sendable @convention(c) (
            Handle, Text, Handle, UnsafeMutablePointer<UInt64>, WatchCallback?, WatchErrorCallback?, UInt32,
            Handle?
        ) -> Int32).self)
    static let startEndOfWatch = call(
        "aio_unwatch", (@Sendable @convention(c) (Handle, UInt64, Handle) -> Int32).self)
    /// Waits for callbacks of watches that are running.
    static let flushWatches = call("watch_flush", Plain.self)
    static let notify = call(
        "notify2",
        (@Sendable @convention(c) (
            Handle, Text, Text?, Int32, UInt64, UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>,
            UnsafeMutablePointer<Int>
        ) -> Int32).self)
    static let acknowledge = call(
        "notify_ack",
        (@Sendable @convention(c) (Handle, Text, UInt64, UInt64, Text?, Int32) -> Int32).self)

    // MARK: Requests that run beside others

    static let makeCompletion = call(
        "aio_create_completion2",
        (@Sendable @convention(c) (Handle?, Callback?, MadeHandle) -> Int32).self)
    static let isComplete = call("aio_is_complete", Plain.self)
    static let wait = call("aio_wait_for_complete", Plain.self)
    static let result = call("aio_get_return_value", Plain.self)
    /// The version of the object that a write has made.
    static let version = call(
        "aio_get_version", (@Sendable @convention(c) (Handle) -> UInt64).self)
    static let release = call("aio_release", Ending.self)
    static let startRead = call(
        "aio_read",
        (@Sendable @convention(c) (Handle, Text, Handle, UnsafeMutableRawPointer, Int, UInt64) -> Int32)
            .self)
    static let cancel = call("aio_cancel", (@Sendable @convention(c) (Handle, Handle) -> Int32).self)
    static let startStatus = call(
        "aio_stat",
        (@Sendable @convention(c) (
            Handle, Text, Handle, UnsafeMutablePointer<UInt64>, UnsafeMutablePointer<time_t>
        ) -> Int32).self)
    static let startWrite = call(
        "aio_write_op_operate",
        (@Sendable @convention(c) (
            Handle, Handle, Handle, Text, UnsafeMutablePointer<time_t>?, Int32
        ) -> Int32).self)

    // MARK: The steps of a write

    static let makeWrite = call("create_write_op", (@Sendable @convention(c) () -> Handle?).self)
    static let releaseWrite = call("release_write_op", Ending.self)
    static let addWrite = call(
        "write_op_write", (@Sendable @convention(c) (Handle, UnsafeRawPointer, Int, UInt64) -> Void).self)
    static let addZeros = call(
        "write_op_zero", (@Sendable @convention(c) (Handle, UInt64, UInt64) -> Void).self)
    static let addTruncation = call(
        "write_op_truncate", (@Sendable @convention(c) (Handle, UInt64) -> Void).self)
    static let addRemoval = call("write_op_remove", Ending.self)
    static let addCreation = call(
        "write_op_create", (@Sendable @convention(c) (Handle, Int32, Text?) -> Void).self)
    static let addAttribute = call(
        "write_op_setxattr", (@Sendable @convention(c) (Handle, Text, Text, Int) -> Void).self)
    static let addAttributeRemoval = call(
        "write_op_rmxattr", (@Sendable @convention(c) (Handle, Text) -> Void).self)
    /// The write fails with ERANGE or EOVERFLOW if the object has another version.
    static let addVersionCheck = call(
        "write_op_assert_version", (@Sendable @convention(c) (Handle, UInt64) -> Void).self)
    static let addCall = call(
        "write_op_exec",
        (@Sendable @convention(c) (
            Handle, Text, Text, UnsafeRawPointer, Int, UnsafeMutablePointer<Int32>?
        ) -> Void).self)
}
