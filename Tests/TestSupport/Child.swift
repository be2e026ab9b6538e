import Foundation
public import Glibc
public import LinuxIO

/// A program that has ended: its status and output.
public struct Ended: Sendable {
    /// The negative number of the signal where one ended it.
    public let status: Int32
    public let output: String
    public let errors: String

    /// Lines of output, without the empty one at the end.
    public var lines: [String] { output.split(separator: "\n").map(String.init) }
}

/// A program that a test has started. With this object it goes, and its process group with it.
///
/// Foundation's Process can wait for ever for one that has ended (swift-corelibs-foundation, issue 4795), and programs
/// that it starts at the same moment keep each other's pipes open. For one thread at a time.
public final class Child {
    /// Its input.
    public enum Input {
        /// /dev/null.
        case nothing
        /// This and then the end.
        case text(String)
        /// The arguments of `write`, up to `closeInput`.
        case written
    }

    /// The place of its output.
    public enum Output {
        /// To /dev/null.
        case discarded
        /// To `output` or `errors` of this object.
        case collected
        /// To a descriptor of this process.
        case descriptor(Int32)
    }

    /// Of a machine in no particular place.
    public static let plainEnvironment: [String: String] = {
        var words = ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "TZ": "UTC", "LC_ALL": "C.UTF-8"]
        // A new vault is written once: see `CoverAmount`.
        words["OBSCURA_CREATION"] = "plain"
        return words
    }()
    /// What is written to a program that has ended is an error, not the end of all tests.
    private static let withoutSIGPIPE: Void = { _ = signal(SIGPIPE, SIG_IGN) }()

    /// The process's, and its group's.
    public let id: pid_t
    /// Nil unless collected.
    public let output: PipeReader?
    /// Nil unless collected.
    public let errors: PipeReader?
    /// -1: closed, or none of this object's.
    private var input: Int32 = -1
    private var end: ProcessEnd?

    /// - Parameters:
    ///   - words: its path, or a name to be looked for in the PATH that it gets, then its arguments.
    ///   - environment: nil for this process's own.
    ///   - directory: where it begins; nil: where this process is, and a session at `/`.
    ///   - asSession: leads a session of its own, without a terminal; otherwise a process group.
    public init(
        _ words: [String], environment: [String: String]? = nil, directory: String? = nil,
        input: Input = .nothing, output: Output = .discarded, errors: Output = .discarded,
        asSession: Bool = false
    ) throws(Errno) {
        _ = Self.withoutSIGPIPE
        // Those of the program, which this process has until that is started.
        var lent: [Int32] = []
        defer { for descriptor in lent { close(descriptor) } }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        guard nothing >= 0 else { throw .last }
        lent.append(nothing)
        func outlet(_ output: Output) throws(Errno) -> (Int32, PipeReader?) {
            switch output {
            case .discarded: return (nothing, nil)
            case .descriptor(let descriptor): return (descriptor, nil)
            case .collected:
                let pipe = try makePipe()
                lent.append(pipe.write)
                return (pipe.write, PipeReader(pipe.read))
            }
        }
        let (stdout, stderr): (Int32, Int32)
        (stdout, self.output) = try outlet(output)
        (stderr, self.errors) = try outlet(errors)
        let stdin: Int32
        switch input {
        case .nothing: stdin = nothing
        case .text, .written:
            (stdin, self.input) = try makePipe()
            lent.append(stdin)
        }
        let variables = environment.map { $0.map { "\($0.key)=\($0.value)" } }
        do {
            id = try spawn(
                words, executable: Self.executable(words[0], environment), environment: variables,
                descriptors: [(stdin, STDIN_FILENO), (stdout, STDOUT_FILENO), (stderr, STDERR_FILENO)],
                directory: directory, asSession: asSession, asGroup: !asSession)
        } catch {
            close(self.input)
            throw error
        }
        guard case .text(let text) = input else { return }
        let descriptor = self.input
        self.input = -1
        // It may print more than a pipe holds before it reads.
        Thread.detachNewThread {
            try? writeAll(text, to: descriptor)
            close(descriptor)
        }
    }

    deinit {
        closeInput()
        if !isRunning { return }
        Glibc.kill(-id, SIGKILL)
        wait()
    }

    /// As execvp(3) finds it in the PATH that it gets: posix_spawnp(3) looks in this process's.
    private static func executable(_ name: String, _ environment: [String: String]?) -> String {
        guard let path = environment?["PATH"], !name.contains("/") else { return name }
        return path.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 } ?? name
    }

    /// False as soon as it is a zombie, which it then is no more.
    public var isRunning: Bool {
        var status: Int32 = 0
        if end == nil, waitpid(id, &status, WNOHANG) == id { end = ProcessEnd(status: status) }
        return end == nil
    }

    /// Sends a signal to it alone; to nobody where it has ended.
    public func kill(_ signal: Int32) { if isRunning { Glibc.kill(id, signal) } }

    /// Asks it to end.
    public func terminate() { kill(SIGTERM) }

    /// Waits until it has ended; returns how. May be called again.
    ///
    /// - Parameter secondsMax: after which it is killed.
    @discardableResult
    public func wait(secondsMax: Int64? = nil) -> ProcessEnd {
        if let secondsMax {
            let deadline = MonotonicClock.milliseconds + secondsMax * 1000
            while isRunning && MonotonicClock.milliseconds < deadline { usleep(2000) }
            kill(SIGKILL)
        }
        let end = self.end ?? waitForEnd(of: id)
        self.end = end
        return end
    }

    /// Waits until it has ended, and everybody else who has its output.
    ///
    /// - Parameter isAlone: programs that it leaves behind may not keep its errors either. Otherwise they are not
    /// waited for.
    public func finish(isAlone: Bool = false) throws(PipeReader.KeptOpen) -> Ended {
        let status =
            switch wait() {
            case .exited(let code): code
            case .signalled(let signal): -signal
            }
        let printed = try output?.rest() ?? ""
        let complaints = try isAlone ? errors?.rest() : errors?.present()
        return Ended(status: status, output: printed, errors: complaints ?? "")
    }

    /// Writes to its input, and waits while that is full. EPIPE where nobody has it any more.
    public func write(_ text: String) throws(Errno) { try writeAll(text, to: input) }

    /// The end of its input.
    public func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }
}

private func writeAll(_ text: String, to descriptor: Int32) throws(Errno) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
        let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
        if count < 0 && errno != EINTR { throw .last }
        rest = rest.dropFirst(max(count, 0))
    }
}

/// A program of this package, built beside the test bundle, which is mapped into this process.
public func builtProgram(_ name: String) -> String {
    // Foundation stops at a short read, which does not end this file.
    let maps = kernelText("/proc/self/maps") ?? ""
    let bundle = maps.split(separator: "\n").first { $0.hasSuffix(".xctest") } ?? ""
    let file = String(bundle[(bundle.firstIndex(of: "/") ?? bundle.endIndex)...])
    return URL(fileURLWithPath: file).deletingLastPathComponent().path + "/" + name
}
