internal import CFuse3
internal import PhotoLibrary
internal import Synchronization

/// What every callback reaches through the session's user data: the library, and how much it is in use.
///
/// The session keeps it alive for as long as callbacks can come.
final class Bridge: Sendable {
    let library: Library
    let initialisation: Initialisation
    /// Counts requests that mean somebody uses the files; only ever compared with an earlier value.
    private let uses = Atomic<UInt64>(0)
    private let opened = Atomic<Int>(0)
    /// Requests being served that last.
    private let lasting = Atomic<Int>(0)
    /// Sees to it that there are threads for others while so many requests last. Set once, before the first.
    let makeWorkers = Mutex<(@Sendable (_ lasting: Int) -> Void)?>(nil)

    init(library: Library, initialisation: Initialisation) {
        self.library = library
        self.initialisation = initialisation
    }

    /// The bridge behind the user data given to `fuse_session_new`.
    static func from(_ userData: UnsafeMutableRawPointer?) -> Bridge {
        Unmanaged<Bridge>.fromOpaque(userData!).takeUnretainedValue()
    }

    /// How often the mount was used so far. statfs(2) is not use: desktops ask for the free space by the
    /// clock.
    var useCount: UInt64 { uses.load(ordering: .relaxed) }

    /// Files and directories that programs hold open now.
    var openCount: Int { opened.load(ordering: .relaxed) }

    func countUse() {
        uses.wrappingAdd(1, ordering: .relaxed)
        library.noteRequest()
    }

    /// A request begins to last: others are to be served meanwhile. `endLasting` follows.
    func beginLasting() {
        let count = lasting.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        makeWorkers.withLock { $0 }?(count)
    }

    func endLasting() { lasting.wrappingSubtract(1, ordering: .releasing) }

    func countOpened(_ change: Int) { opened.wrappingAdd(change, ordering: .relaxed) }
}
