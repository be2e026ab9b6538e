internal import Glibc
internal import PhotoImaging

/// Test behaviour of the decoding process, instead of decoding (`obscura-worker --trial NAME`). The process is confined
/// as always.
enum Trial: String {
    /// Never finishes.
    case stall
    /// Never finishes, but for a JPEG, which is decoded.
    case stallUnlessJPEG = "stall-unless-jpeg"
    /// Crashes.
    case crash
    /// Tries forbidden calls; its "thumbnail" lists the refused ones.
    case sandbox

    /// The requested trial, if any.
    init?(arguments: [String]) {
        guard arguments.count == 3, arguments[1] == "--trial" else { return nil }
        self.init(rawValue: arguments[2])
    }

    /// Runs in the confined process. Nil for a picture that is to be decoded.
    func run(_ picture: ArrivingPicture, into result: UnsafeMutableRawBufferPointer) -> WorkerOutcome? {
        switch self {
        case .stallUnlessJPEG where picture.prefix(2).elementsEqual([0xFF, 0xD8]):
            return nil
        case .stall, .stallUnlessJPEG: computeWithoutEnd()
        case .crash:
            abort()
        case .sandbox:
            // Framed as a JPEG, so that the client accepts it: a digit for each attempt, 1 when it was refused.
            let verdicts = Self.attempts.map { attempt in attempt() ? UInt8(ascii: "0") : UInt8(ascii: "1") }
            storeResult([[0xFF, 0xD8, 0xFF], verdicts, [0xFF, 0xD9]], into: result)
            return .done
        }
    }

    /// Uses the processor, whatever else runs: a process that yields gets hardly any time on a busy machine. Arithmetic
    /// alone would not do, as the compiler leaves out a loop that nobody sees.
    private func computeWithoutEnd() -> Never { while true { _ = rand() } }

    /// Each returns whether it succeeded.
    private static let attempts: [@Sendable () -> Bool] = [
        { open("/etc/passwd", O_RDONLY) >= 0 },
        { open("/tmp", O_RDONLY | O_DIRECTORY) >= 0 },
        { socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0) >= 0 },
        { socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0) >= 0 },
        { write(1, "x", 1) >= 0 },
        { kill(getppid(), 0) == 0 },
        { dup(0) >= 0 },
        { mkdir("/tmp/obscura-trial", 0o700) == 0 },
        { mmap(nil, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED },
        {
            let page = mmap(nil, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
            return mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0
        },
        { getuid() != uid_t.max && setuid(getuid()) == 0 },
        { fcntl(3, F_GETFD) >= 0 },
        { execve("/bin/true", [nil], [nil]) == 0 },
    ]
}
