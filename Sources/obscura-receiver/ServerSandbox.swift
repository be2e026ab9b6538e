internal import CMicroHTTPD
internal import CShims
internal import Glibc
internal import ReceiveProtocol
internal import Sandbox

/// Resource limits of the server's process: a bug that uses up memory ends only the server.
private let processLimits = ProcessLimits(addressSpaceBytes: 512 << 20, descriptors: 256)

/// System calls of the server, besides those of every confined process: it uses its sockets, accepts connections and
/// waits. It opens no file and makes no connection.
private let systemCalls = [
    "epoll_wait", "epoll_pwait", "epoll_ctl", "poll", "ppoll", "recvfrom", "recvmsg", "sendto", "sendmsg",
    "read", "write", "accept", "close", "shutdown", "setsockopt", "getsockopt", "getsockname", "getpeername",
    "fcntl",
    "getpid", "time",
]

/// Confines this process until its end. Returns whether it succeeded.
func confineServer() -> Bool {
    let parent = getppid()
    return shim_prctl(shim_PR_SET_PDEATHSIG, UInt(SIGKILL)) == 0
        && getppid() == parent  // The parent could have died before the line above.
        && confine(to: processLimits)
        && setLimit(RLIMIT_FSIZE, 0)
        && setLimit(__RLIMIT_NPROC, 0)
        && SystemCallFilter(allowing: systemCalls)?.install() == true
}

/// The address of the inherited listening socket in network byte order: 4 bytes or 16.
func listeningAddress() -> [UInt8]? {
    var address = sockaddr_storage()
    var count = socklen_t(MemoryLayout<sockaddr_storage>.size)
    let result = withUnsafeMutablePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(4, $0, &count) }
    }
    guard result == 0 else { return nil }
    return withUnsafeBytes(of: &address) { raw in
        switch Int32(addressFamily(raw)) {
        case AF_INET: Array(raw[4..<8])
        case AF_INET6: Array(raw[8..<24])
        default: nil
        }
    }
}

private func addressFamily(_ raw: UnsafeRawBufferPointer) -> UInt16 { raw.loadUnaligned(as: UInt16.self) }
