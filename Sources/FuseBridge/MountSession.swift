internal import Glibc
internal import LinuxIO
public import PhotoLibrary

/// Why a mount ended.
public enum MountEnd: Sendable, Equatable {
    /// It was unmounted from outside.
    case unmounted
    /// `MountSession.unmount` was called.
    case requested
    /// A signal of that number asked for it.
    case signal(Int32)
    /// It was idle for as long as the options allow.
    case idle
}

/// A mounted library.
///
/// In every case nothing stays mounted when `run` has returned or the session is gone. The caller closes the library
/// afterwards. Unchecked Sendable: `run` is called at most once, and other threads use only `control`.
public final class MountSession: @unchecked Sendable {
    private let library: Library
    private let options: MountOptions
    private let bridge: Bridge
    private let control: ControlPipe
    /// See `Initialisation.answeredFlags`.
    var answeredFlags: UInt64 { bridge.initialisation.answeredFlags }
    /// Files and directories that programs have open now.
    var openCount: Int { bridge.openCount }
    /// The descriptor of /dev/fuse; nil once `run` has ended.
    var descriptor: Int32? { session?.descriptor }
    /// Nil once `run` has ended.
    private(set) var session: Session?
    private let notifier: Notifier
    private let mountPoint: MountPoint
    /// Aborts the connection; -1 where this user may not.
    private let abort: Int32
    /// Lives from before the mount until this object is gone. Data that was reported as safe may still have to be
    /// written after the mount has ended, and no signal may end the process before that.
    private var signals: SignalWatch?

    /// `graceMilliseconds` before the machine sleeps, which does not wait long (logind: 5 s).
    private static let sleepGraceMilliseconds: Int32 = 500
    /// The kernel's default of 128 KiB is one chunk. With more, the next chunks are decrypted while a program processes
    /// this one.
    private static let readAheadKibibytes = 1024

    /// Mounts the library on `directory`. Programs that access it wait until `run` is called.
    public static func mount(
        _ library: Library, at directory: String, options: MountOptions
    ) throws(MountError) -> MountSession {
        let path = try checkMountable(directory, options: options)
        return try MountSession(library, path, options)
    }

    private init(_ library: Library, _ path: String, _ options: MountOptions) throws(MountError) {
        self.library = library
        self.options = options
        notifier = Notifier(waitingMax: library.waitingNoticesMax)
        do throws(Errno) { control = try ControlPipe() } catch { throw .system(error, "making a pipe") }
        let transferBytesMax = Initialisation.transferBytesLimit
        bridge = Bridge(
            library: library,
            initialisation: Initialisation(control: control, transferBytesMax: transferBytesMax))
        let signals = options.handlesSignals ? SignalWatch(control) : nil
        _ = LibfuseLog.shared.takeLast()
        let words = options.libfuseWords(transferBytesMax: transferBytesMax)
        guard let session = Session(options: words, bridge: bridge, control: control) else {
            throw .refused(LibfuseLog.shared.takeLast())
        }
        let complaints = StandardErrorCapture()
        let mode = MountPointMode(allowing: path)
        let isMounted = session.mount(at: path)
        mode?.restore()
        let complaint = complaints?.end() ?? ""
        guard isMounted else {
            let words = LibfuseLog.shared.takeLast()
            throw .refused(complaint.isEmpty ? words : complaint)
        }
        guard let mountPoint = MountPoint(at: path, subtype: options.subtype) else {
            _ = detach(path, lazily: true)
            throw .refused("the mount is not in /proc/self/mountinfo")
        }
        if options.hostMayNotAnswer { session.watchRequests(telling: notifier) }
        self.session = session
        self.mountPoint = mountPoint
        abort = mountPoint.connection.map { openAbort(ofConnection: $0) } ?? -1
        self.signals = signals
        library.observer = notifier
        library.mountStatus = { [weak bridge] in bridge?.status ?? [] }
    }

    deinit {
        closeDown()
        if abort >= 0 { close(abort) }
        // Before the pipe to which it writes.
        signals = nil
    }

    /// A signal number written here as one byte has the effect of that signal.
    public var signalDescriptor: Int32 { control.writeEnd }

    /// Asks `run` to unmount and return. May be called from any thread.
    public func unmount() { control.send(.unmountRequested) }

    /// Asks `run` to unmount and return, unless a file is open for writing. Other open files are served for a while
    /// longer, then they fail with ENOTCONN. May be called from any thread.
    public func handOver() { control.send(.handoverRequested) }

    /// Serves the mount until it is unmounted, from inside or outside. Calls `onLive` once, on this thread, when
    /// programs can use the mount; never if the mount ends before that.
    @discardableResult
    public func run(onLive: () -> Void) throws(MountError) -> MountEnd {
        defer { closeDown() }
        do throws(Errno) {
            try notifier.start(session!, connection: mountPoint.connection)
            try session!.start()
        } catch {
            throw .system(error, "starting threads")
        }
        return watch(onLive)
    }

    /// Stops the notifier first, while its last message is still served; then the workers; then the connection, upon
    /// which requests that still wait for an answer get ENOTCONN. Does nothing the second time.
    ///
    /// The connection is aborted, not only closed: a process that is just being started has copies of all descriptors
    /// of this one. If it closes a file of the mount first, it waits for an answer, and keeps the connection by which
    /// it would have come.
    private func closeDown() {
        guard session != nil else { return }
        // Later the next mount may have the device number of this one.
        let isMounted = !mountPoint.directories.isEmpty
        notifier.stop()
        // A worker that compares photos must not hold this up.
        library.cancelLongTasks()
        bridge.followed?.end()
        session?.stop()
        session = nil
        if abort >= 0 { _ = write(abort, "1", 1) }
        if isMounted { mountPoint.removeIfDead() }
    }

    /// Waits for the end of the mount and returns its reason.
    private func watch(_ onLive: () -> Void) -> MountEnd {
        var idle = IdleClock(seconds: options.idleSeconds)
        var isLive = false
        func goLive() {
            if isLive { return }
            isLive = true
            mountPoint.raiseReadAhead(kibibytes: Self.readAheadKibibytes)
            bridge.followed?.begin()
            onLive()
        }
        while true {
            let event = control.next(milliseconds: idle.checkMilliseconds)
            // A program that uses the mount may cause one of these before the event that says that it can.
            if event != .ended, event != nil, bridge.initialisation.isAnswered { goLive() }
            switch event {
            case .live: goLive()
            case .ended: return .unmounted
            case .unmountRequested:
                takeDown(within: options.graceMilliseconds)
                return .requested
            case .handoverRequested:
                if takeDownIfUnwritten() { return .requested }
            case .signal(SIGHUP) where bridge.followed != nil && !SignalWatch.hasTerminal:
                bridge.followed?.lookNow()
            case .signal(let number):
                // First of all: a request that waits for the disk also holds up everything that waits for that request.
                if number == SIGUSR1 { library.giveUp() }
                let isShort = number == SIGPWR || number == SIGUSR1
                takeDown(within: isShort ? Self.sleepGraceMilliseconds : options.graceMilliseconds)
                return .signal(number)
            case nil:
                guard idle.isOver(uses: bridge.useCount, open: bridge.openCount) else { continue }
                if takeDownIfUnused() { return .idle }
            }
        }
    }

    /// As `MountPoint.unmount`. Only while the connection lives is the device number this mount's: once it has ended
    /// from outside, another mount may have it.
    @discardableResult
    private func unmount(lazily: Bool) -> Bool {
        session?.isConnected != true || mountPoint.unmount(lazily: lazily)
    }

    /// Unmounts as fusermount3 -u does. If files are open or a program's working directory is inside, the mount leaves
    /// the tree, and they are served for a while longer.
    private func takeDown(within milliseconds: Int32) {
        if !unmount(lazily: false) { unmount(lazily: true) }
        // Requests that wait for long work are answered now, so that their clients let go of the mount.
        bridge.library.cancelLongTasks()
        waitForEnd(milliseconds)
    }

    /// Unmounts unless a file is open, a program's working directory is inside, or changes are left that only the user
    /// can save or give up. Returns whether it did.
    private func takeDownIfUnused() -> Bool {
        guard !library.holdsUnwritten, unmount(lazily: false) else { return false }
        waitForEnd(options.graceMilliseconds)
        return true
    }

    /// As `takeDownIfUnused`, also if files are open for reading or a program's working directory is inside: the mount
    /// leaves the tree, and they are served for a while longer. From then on no file is opened for writing.
    private func takeDownIfUnwritten() -> Bool {
        if takeDownIfUnused() { return true }
        guard !library.holdsUnwritten, bridge.writers.refuseIfNone() else { return false }
        guard unmount(lazily: true) else {
            bridge.writers.admit()
            return false
        }
        bridge.library.cancelLongTasks()
        waitForEnd(options.handoverGraceMilliseconds)
        return true
    }

    /// Waits until the kernel has closed the connection, a second request or signal comes, or the time is up: a mount
    /// that was copied into another namespace may never end.
    private func waitForEnd(_ milliseconds: Int32) {
        // A signal may come before the mount is live.
        while control.next(milliseconds: milliseconds) == .live {}
    }
}
