import CShims
import Glibc
import HostFiles
import LinuxIO

/// How long a mount may go on writing before the rest is given up.
let discardMilliseconds: Int32 = 30_000

/// A process that is told to give up ends within this time, unless its disk holds it up.
private let endMilliseconds: Int32 = 10_000
private let killMilliseconds: Int32 = 5000

/// The changes that a mount could not write.
struct UnwrittenAnswer: Equatable {
    var isAny = false
    var files: UInt64 = 0
    /// There are more files than the counted ones.
    var isMore = false
    /// Because there is no room.
    var isFull = false
    /// The reason.
    var reason = ""
    /// Paths of some of the files.
    var paths: [String] = []

    init() {}

    /// Parses the `key=value` lines of `user.obscura.settle`.
    init(_ answer: [(key: String, value: String)]) {
        for (key, value) in answer {
            switch key {
            case "written": isAny = value == "no"
            case "files": files = UInt64(value) ?? 0
            case "more": isMore = value == "yes"
            case "full": isFull = value == "yes"
            case "reason": reason = value
            case "path": paths.append(value)
            default: continue
            }
        }
    }

    /// `3 files are not written`.
    var summary: String {
        if files == 0 { return "changes of names or albums are not written" }
        let count = isMore ? "more than \(files) files" : counted(Int(clamping: files), "file")
        return "\(count) \(files == 1 && !isMore ? "is" : "are") not written"
    }

    /// A line for each known path, and one for the number of others.
    var lines: [String] {
        let others = files - min(files, UInt64(paths.count))
        return paths.map { "not written: \(printable($0))" } + (others > 0 ? ["and \(others) more"] : [])
    }
}

/// Has a mount write its pending changes, and returns those that it cannot write; nil if it does not answer in time.
///
/// A child process asks, because nothing ends a process that waits. A user who may not enter the mount (root, without
/// allow_other) gets an empty answer.
///
/// - Parameter milliseconds: the time limit; nil: none.
func settle(_ place: String, named directory: String, within milliseconds: Int32?) -> UnwrittenAnswer? {
    guard let ends = try? makePipe() else { return UnwrittenAnswer() }
    defer { close(ends.read) }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: MountedSpace.answerBytesMax, alignment: 8)
    defer { bytes.deallocate() }
    let process = place.withCString { place in
        "user.obscura.settle".withCString { name -> pid_t in
            let process = shim_fork()
            if process != 0 { return process }
            // Only system calls from here on: locks of other threads may be held for ever. ^C ends both.
            _ = obscura_end_with_parent()
            let descriptor = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
            let count =
                descriptor < 0
                ? -1 : obscura_get_attribute(descriptor, name, bytes.baseAddress, UInt(bytes.count))
            if count > 0 { _ = write(ends.write, bytes.baseAddress, Int(count)) }
            _exit(0)
        }
    }
    close(ends.write)
    guard process > 0 else { return UnwrittenAnswer() }
    guard let answer = awaitAnswer(ends.read, directory, milliseconds) else {
        // It may not end before the mount does, so it is not waited for.
        kill(process, SIGKILL)
        return nil
    }
    _ = waitForEnd(of: process)
    return answer
}

private func awaitAnswer(_ descriptor: Int32, _ directory: String, _ milliseconds: Int32?) -> UnwrittenAnswer?
{
    if !hasEnded(descriptor, within: patienceMilliseconds) {
        let end = milliseconds.map { " for at most \($0 / 1000) s" } ?? " (^C: leave it mounted)"
        note("obscura: \(directory): waiting until everything is written\(end)")
        let rest = milliseconds.map { $0 - patienceMilliseconds } ?? -1
        if !hasEnded(descriptor, within: rest) { return nil }
    }
    let text = String(decoding: readAll(descriptor, countMax: MountedSpace.answerBytesMax), as: UTF8.self)
    return UnwrittenAnswer(MountedSpace.parse(text))
}

/// Ends a mount without writing anything more.
///
/// - Parameters:
///   - changes: the changes that are lost; nil if unknown.
///   - daemon: a descriptor of its process; nil if that cannot be seen.
func discard(
    _ place: String, named directory: String, _ changes: UnwrittenAnswer?, _ daemon: Int32?
) throws(Failure) {
    if let daemon { _ = obscura_pidfd_send_signal(daemon, SIGUSR1) }
    do throws(Failure) { try takeMountAway(place, lazily: true) } catch {
        // The process itself may have unmounted it first.
        if let entry = mountEntry(at: place), entry.isObscura { throw error }
    }
    let lost =
        changes.map { $0.isAny ? "\($0.summary), and given up" : "programs that used it get errors" }
        ?? "what was not written is given up"
    var line = "\(directory): unmounted; \(lost)"
    if let daemon, !hasEnded(daemon, within: endMilliseconds) {
        _ = obscura_pidfd_send_signal(daemon, SIGKILL)
        if !hasEnded(daemon, within: killMilliseconds) {
            line += "; the vault stays in use until its disk answers"
        }
    }
    say(line)
}
