import Glibc
import Synchronization

/// State that the signal handler restores or prints before the program ends. Plain memory: the handler may not allocate
/// or lock.
private struct InterruptionState {
    var terminal: Int32 = -1
    var settings = termios()
    var lastWords: UnsafeMutablePointer<CChar>?
    var lastWordsCount = 0
    var isOnlyNoted = false
}

// Only the main thread writes it, and each value is complete before `terminal` or `lastWords` announces it.
private nonisolated(unsafe) let state: UnsafeMutablePointer<InterruptionState> = {
    let pointer = UnsafeMutablePointer<InterruptionState>.allocate(capacity: 1)
    pointer.initialize(to: InterruptionState())
    return pointer
}()

/// Set by the signal handler while interruptions are only noted.
private let interruptionNoted = Atomic<Bool>(false)

/// Whether the user interrupted the body of `notingInterruption`.
var wasInterrupted: Bool { interruptionNoted.load(ordering: .relaxed) }

/// Makes ^C and similar signals end the program with status 130 and the terminal restored.
///
/// A signal that was ignored when the program began (nohup) stays ignored.
func endOnInterruption() {
    unblockSignals()
    state.pointee.terminal = -1
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        var action = sigaction()
        guard sigaction(signal, nil, &action) == 0 else { continue }
        // SIG_IGN is the address 1; C's macro for it cannot be compared in Swift.
        let isIgnored = unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == 1
        if isIgnored { continue }
        action.__sigaction_handler.sa_handler = { _ in endInterrupted() }
        action.sa_flags = 0
        sigemptyset(&action.sa_mask)
        sigaction(signal, &action, nil)
    }
}

/// Unblocks all signals. Some parents start programs with signals blocked: neither ^C nor kill(1) would have an effect.
func unblockSignals() {
    var none = sigset_t()
    sigemptyset(&none)
    sigprocmask(SIG_SETMASK, &none, nil)
}

/// Called in the signal handler: only async-signal-safe functions (signal-safety(7)).
private func endInterrupted() {
    if state.pointee.isOnlyNoted { return interruptionNoted.store(true, ordering: .relaxed) }
    if state.pointee.terminal >= 0 {
        tcsetattr(state.pointee.terminal, TCSADRAIN, &state.pointee.settings)
        _ = write(state.pointee.terminal, "\n", 1)
    }
    if let words = state.pointee.lastWords { _ = write(STDERR_FILENO, words, state.pointee.lastWordsCount) }
    _exit(ExitStatus.interrupted.rawValue)
}

/// Runs `body`; an interruption meanwhile sets `terminal` back to `settings`. Within another call that one's count.
func restoringOnInterruption<R, E: Error>(
    terminal: Int32, settings: termios, _ body: () throws(E) -> R
) throws(E) -> R {
    if state.pointee.terminal >= 0 { return try body() }
    state.pointee.settings = settings
    state.pointee.terminal = terminal
    defer { state.pointee.terminal = -1 }
    return try body()
}

/// Runs `body`, which checks `wasInterrupted` and cleans up. Meanwhile an interruption is only noted.
func notingInterruption<R, E: Error>(_ body: () throws(E) -> R) throws(E) -> R {
    interruptionNoted.store(false, ordering: .relaxed)
    state.pointee.isOnlyNoted = true
    defer { state.pointee.isOnlyNoted = false }
    return try body()
}

/// Runs `body`, which leaves something half done if interrupted; an interruption then prints `failure`.
func sayingOnInterruption<R, E: Error>(_ failure: Failure, _ body: () throws(E) -> R) throws(E) -> R {
    let line = "\n" + failure.line + "\n"
    state.pointee.lastWordsCount = line.utf8.count
    state.pointee.lastWords = strdup(line)
    defer {
        let words = state.pointee.lastWords
        state.pointee.lastWords = nil
        free(words)
    }
    return try body()
}
