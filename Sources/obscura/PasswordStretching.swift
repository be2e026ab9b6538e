import CShims
import Glibc
import LinuxIO
import VaultCrypto
import VaultStore

/// Stretches passwords in a process of its own: this program executed anew. It gets the password through a socket,
/// returns the key through it and ends, and with it everything that the derivation left on stacks and in heaps.
struct ChildStretcher: PasswordStretcher {
    /// Private first word of the command line.
    static let word = "--stretch"

    /// Whether the password was typed on the terminal: keys that are pressed meanwhile are not shown there then.
    var isTyped = false

    func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        guard isTyped, let terminal = Terminal() else { return try derive(password, salt, parameters) }
        return try terminal.hushing { () throws(VaultError) in try derive(password, salt, parameters) }
    }

    private func derive(
        _ password: SecretBytes, _ salt: [UInt8], _ parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        let request = StretchRequest(password: password, salt: salt, parameters: parameters)
        let (key, end): (SecretBytes?, ProcessEnd)
        do throws(Errno) { (key, end) = try Self.ask(request.encoded()) } catch {
            throw .system(error, "cannot start the process that derives keys")
        }
        switch end {
        case .exited(0):
            if let key, key.count == StretchRequest.keyBytes { return key }
            throw .system(Errno(EPIPE), "the process that derives keys ended early")
        case .signalled(SIGINT), .signalled(SIGTERM), .signalled(SIGHUP), .signalled(SIGQUIT):
            throw .interrupted
        case .signalled, .exited:
            // The kernel ends with SIGKILL a process that uses memory which the machine does not have.
            throw .kdfMemory(parameters.memoryBytes)
        }
    }

    /// Starts the process and waits for its end.
    private static func ask(_ request: SecretBytes) throws(Errno) -> (key: SecretBytes?, end: ProcessEnd) {
        let ends = try makeSocketPair(SOCK_STREAM)
        let process: pid_t
        do throws(Errno) {
            defer { close(ends.theirs) }
            process = try spawn(
                ["obscura", word], executable: "/proc/self/exe", environment: [backtracerOff],
                descriptors: [(ends.theirs, STDIN_FILENO)])
        } catch {
            close(ends.ours)
            throw error
        }
        defer { close(ends.ours) }
        // If the process has ended already, its exit status says more than this error.
        _ = sendAll(request, to: ends.ours)
        shutdown(ends.ours, Int32(SHUT_WR))
        let key = readToEnd(ends.ours, countMax: StretchRequest.keyBytes + 1)
        return (key, waitForEnd(of: process))
    }

    /// Body of that process. Returns its exit status.
    static func run() -> ExitStatus {
        _ = obscura_end_with_parent()
        guard let bytes = readToEnd(STDIN_FILENO, countMax: StretchRequest.bytesMax + 1),
            let request = StretchRequest(bytes)
        else {
            note(Failure(.usage, word, "not for users").line)
            return .usage
        }
        let isLocked = lockAllMemory()
        var key = try? request.stretched()
        if key == nil, isLocked {
            // The limit of locked memory is below the memory that the password takes.
            munlockall()
            key = try? request.stretched()
        }
        guard let key, sendAll(key, to: STDIN_FILENO) else { return .failed }
        return .done
    }

    /// Keeps the memory of this process out of swap, where the limits allow it: each page once in use, as fetching
    /// all of them would take longer than the rest of its start.
    private static func lockAllMemory() -> Bool {
        let resource = __rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue)
        var limit = rlimit()
        if getrlimit(resource, &limit) == 0 {
            limit.rlim_cur = limit.rlim_max
            setrlimit(resource, &limit)
        }
        return mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0
    }
}

/// The message to the process that stretches.
private struct StretchRequest {
    static let keyBytes = 32
    private static let saltBytes = 16
    private static let saltOffset = 16
    private static let passwordOffset = saltOffset + saltBytes
    static let bytesMax = passwordOffset + passwordBytesMax

    let password: SecretBytes
    let salt: [UInt8]
    let parameters: KDFParameters

    init(password: SecretBytes, salt: [UInt8], parameters: KDFParameters) {
        (self.password, self.salt, self.parameters) = (password, salt, parameters)
    }

    /// Decodes the bytes of `encoded`; nil for any others.
    init?(_ bytes: SecretBytes) {
        guard bytes.count > Self.passwordOffset, bytes.count <= Self.bytesMax else { return nil }
        (password, salt, parameters) = bytes.withUnsafeBytes { bytes in
            (
                SecretBytes(copying: UnsafeRawBufferPointer(rebasing: bytes[Self.passwordOffset...])),
                Array(bytes[Self.saltOffset..<Self.passwordOffset]),
                KDFParameters(
                    memoryBytes: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self),
                    passes: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
            )
        }
    }

    /// Memory (8 bytes), passes (4), zeros (4), salt (16), password. Numbers in this machine's byte order.
    func encoded() -> SecretBytes {
        precondition(salt.count == Self.saltBytes && password.count <= passwordBytesMax)
        let bytes = SecretBytes(count: Self.passwordOffset + password.count)
        bytes.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: parameters.memoryBytes, toByteOffset: 0, as: UInt64.self)
            bytes.storeBytes(of: parameters.passes, toByteOffset: 8, as: UInt32.self)
            UnsafeMutableRawBufferPointer(rebasing: bytes[Self.saltOffset...]).copyBytes(from: salt)
            password.withUnsafeBytes {
                UnsafeMutableRawBufferPointer(rebasing: bytes[Self.passwordOffset...]).copyMemory(from: $0)
            }
        }
        return bytes
    }

    func stretched() throws(VaultError) -> SecretBytes {
        try LocalStretcher().stretch(password, salt: salt, parameters: parameters)
    }
}

/// Returns false if the other end is closed, which raises no signal here.
private func sendAll(_ bytes: SecretBytes, to socket: Int32) -> Bool {
    bytes.withUnsafeBytes { bytes in
        var done = 0
        while done < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
            let count = send(socket, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
            if count < 0, errno == EINTR { continue }
            if count <= 0 { return false }
            done += count
        }
        return true
    }
}
