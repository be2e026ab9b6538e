internal import CShims
internal import Glibc
internal import PhotoImaging
internal import Sandbox

/// Runs the worker: it confines itself, sends the greeting, and forks a process for each request until the socket
/// closes.
///
/// It never reads a picture itself. The fork has the memory of one picture only, so a malicious picture that takes
/// over the fork finds no other picture.
///
/// Returns the exit status: 0 after the socket closed, 1 without a socket or sandbox.
func runWorker(arguments: [String]) -> Int32 {
    let trial = Trial(arguments: arguments)
    let socket = PacketSocket(descriptor: WorkerProtocol.socketDescriptor)
    guard confineWorker(), let filter = SystemCallFilter(),
        // A test fork that only confines itself: if that fails here, the client learns it before it sends a picture.
        runFork(watching: socket, { filter.install() ? .done : .unconfined }) == .done,
        socket.send([WorkerProtocol.greeting])
    else { return 1 }

    while let packet = socket.receive() {
        let outcome = serve(packet, socket: socket, filter: filter, trial: trial)
        let isTold = outcome.map { socket.send([$0.rawValue]) }
        // After the reply: the last close of a large memory file takes a while.
        for descriptor in packet.descriptors { close(descriptor) }
        guard isTold == true else { return 0 }
    }
    return 0
}

private func serve(
    _ packet: (words: [UInt64], descriptors: [Int32]), socket: PacketSocket, filter: SystemCallFilter,
    trial: Trial?
) -> WorkerOutcome? {
    guard let request = WorkerRequest(words: packet.words),
        (2...WorkerProtocol.descriptorsMax).contains(packet.descriptors.count)
    else {
        return .refused
    }
    return runFork(watching: socket, quickMilliseconds: request.quickMilliseconds) {
        let pictureFileBytes = WorkerProtocol.pictureHeaderBytes + request.pictureBytes
        guard let file = Mapping(packet.descriptors[0], byteCount: pictureFileBytes, writable: false),
            let result = Mapping(packet.descriptors[1], byteCount: request.resultBytes, writable: true)
        else { return .refused }
        let fonts = packet.descriptors.dropFirst(2).compactMap(mapFont)
        for descriptor in packet.descriptors + [socket.descriptor] { close(descriptor) }
        guard filter.install() else { return .unconfined }
        let picture = ArrivingPicture(file: UnsafeRawBufferPointer(file.bytes), giveUp: refusePicture)
        if let outcome = trial?.run(picture, into: result.bytes) { return outcome }
        return serveRequest(request, picture: picture, fonts: fonts, result: result.bytes) ? .done : .refused
    }
}

/// Runs `body` in a fork and returns its result, or `.crashed` if the fork died. Nil if the client went away meanwhile;
/// the fork is then killed. There is never more than one fork.
///
/// - Parameter quickMilliseconds: see ``WorkerRequest``; nil: the fork never gives way.
private func runFork(
    watching socket: PacketSocket, quickMilliseconds: Int? = nil, _ body: () -> WorkerOutcome
) -> WorkerOutcome? {
    let parent = getpid()
    let child = shim_fork()
    guard child >= 0 else { return .unconfined }
    if child == 0 {
        let isConfined = confineFork(of: parent)
        _exit(Int32((isConfined ? body() : .unconfined).rawValue))
    }
    if quickMilliseconds == 0 { giveWay(child) }
    let clientIsThere = waitForEnd(of: child, orOf: socket, quickMilliseconds: quickMilliseconds ?? 0)
    if !clientIsThere { kill(child, SIGKILL) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    guard clientIsThere else { return nil }
    let exitedByItself = status & 0x7F == 0  // WIFEXITED(status); WEXITSTATUS(status) is below.
    return exitedByItself ? WorkerOutcome(rawValue: UInt64((status >> 8) & 0xFF)) ?? .crashed : .crashed
}

/// Blocks until the fork (true) or the client (false) has ended. Sends a notice when the fork has used that much
/// processor time; 0: never.
private func waitForEnd(of child: pid_t, orOf socket: PacketSocket, quickMilliseconds: Int) -> Bool {
    let process = shim_pidfd_open(child)
    // Before Linux 5.3 (no pidfd_open) the worker notices the client's death only after the fork's end, which the CPU
    // limit bounds.
    guard process >= 0 else { return true }
    defer { close(process) }
    var entries = [
        pollfd(fd: process, events: Int16(POLLIN), revents: 0),
        pollfd(fd: socket.descriptor, events: shim_POLLRDHUP, revents: 0),
    ]
    var isQuick = quickMilliseconds > 0
    while true {
        // The fork has one thread, so it cannot use more time than passes.
        let rest = isQuick ? processorMilliseconds(of: child).map { quickMilliseconds - $0 } : nil
        let ready = poll(&entries, 2, rest.map { Int32(max($0, 0)) } ?? -1)
        if ready > 0 { return entries[0].revents != 0 }
        if ready == 0, let rest, rest <= 0 {
            isQuick = false
            giveWay(child)
            _ = socket.send([WorkerProtocol.slowNotice])
        }
    }
}

/// Processor time that a process has used. Nil if it cannot be told.
private func processorMilliseconds(of process: pid_t) -> Int? {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return nil }
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

/// Lowers the priority of a process, for good.
private func giveWay(_ process: pid_t) {
    setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(process), WorkerProtocol.slowNiceness)
}

/// A memory file of the client, mapped for as long as this process lives.
private struct Mapping {
    let bytes: UnsafeMutableRawBufferPointer

    init?(_ descriptor: Int32, byteCount: Int, writable: Bool) {
        var info = stat()
        guard fstat(descriptor, &info) == 0, info.st_size == byteCount else { return nil }
        let protection = writable ? PROT_READ | PROT_WRITE : PROT_READ
        let mapping = mmap(nil, byteCount, protection, MAP_SHARED, descriptor, 0)
        guard let mapping, mapping != MAP_FAILED else { return nil }
        bytes = UnsafeMutableRawBufferPointer(start: mapping, count: byteCount)
        lockAsFarAsAllowed(UnsafeRawBufferPointer(bytes))
    }
}

/// Maps a whole font for as long as this process lives. Nil when it cannot be mapped.
private func mapFont(_ descriptor: Int32) -> UnsafeRawBufferPointer? {
    var info = stat()
    guard fstat(descriptor, &info) == 0 else { return nil }
    let mapping = mmap(nil, Int(info.st_size), PROT_READ, MAP_PRIVATE, descriptor, 0)
    guard let mapping, mapping != MAP_FAILED else { return nil }
    return UnsafeRawBufferPointer(start: mapping, count: Int(info.st_size))
}

/// Locks pages into memory as they are used, to keep them out of swap. Does nothing if RLIMIT_MEMLOCK forbids it.
func lockAsFarAsAllowed(_ bytes: UnsafeRawBufferPointer) {
    _ = shim_mlock2(bytes.baseAddress, bytes.count, shim_MLOCK_ONFAULT)
}
