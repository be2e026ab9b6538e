internal import CFuse3
internal import PhotoLibrary
internal import Synchronization

/// The state that every callback reaches through the session's user data: the library, and how much it is in use.
///
/// The session keeps it alive as long as callbacks can come.
final class Bridge: Sendable {
    private let openedLibrary: Library
    /// Nil if no other mount can write to the space.
    let followed: FollowedLibrary?
    let initialisation: Initialisation
    let counts = RequestCounts()
    let writers = Writers()
    /// Requests that count as use of the files. Only ever compared with an earlier value.
    private let uses = Atomic<UInt64>(0)
    private let opened = Atomic<Int>(0)
    /// Requests in service that may take long.
    private let lasting = Atomic<Int>(0)
    private let workerMaker = Mutex<WorkerMaker?>(nil)

    /// In a structure, because a closure that itself is the value of a `Mutex` is wrapped again, and called through one
    /// function more, with each access.
    private struct WorkerMaker: Sendable {
        let make: @Sendable (_ lasting: Int) -> Void
    }

    init(library: Library, initialisation: Initialisation) {
        openedLibrary = library
        followed = library.follows ? FollowedLibrary(library) : nil
        self.initialisation = initialisation
    }

    var library: Library { followed?.current ?? openedLibrary }

    /// The bridge behind the user data given to `fuse_session_new`.
    static func from(_ userData: UnsafeMutableRawPointer?) -> Bridge {
        Unmanaged<Bridge>.fromOpaque(userData!).takeUnretainedValue()
    }

    /// Lines of `obscura status`.
    var status: [(key: String, value: String)] {
        [("requests", counts.text)] + (followed.map { [("renewals", "\($0.renewalCount)")] } ?? [])
    }

    /// Number of requests so far that count as use. statfs(2) does not: desktops poll the free space.
    var useCount: UInt64 { uses.load(ordering: .relaxed) }

    /// Files and directories that programs have open now.
    var openCount: Int { opened.load(ordering: .relaxed) }

    func countUse() {
        uses.wrappingAdd(1, ordering: .relaxed)
        library.noteRequest()
    }

    /// Marks the start of a request that may take long: other requests are to be served meanwhile. `endLasting`
    /// follows.
    func beginLasting() {
        let count = lasting.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        workerMaker.withLock { $0 }?.make(count)
    }

    /// Sets how another worker is started if `lasting` long requests leave too few for the others. Call once, before
    /// the first request.
    func setWorkerMaker(_ make: @escaping @Sendable (_ lasting: Int) -> Void) {
        workerMaker.withLock { $0 = WorkerMaker(make: make) }
    }

    func endLasting() { lasting.wrappingSubtract(1, ordering: .releasing) }

    func countOpened(_ change: Int) { opened.wrappingAdd(change, ordering: .relaxed) }
}
