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
    return runFork(watching: socket) {
        let pictureFileBytes = WorkerProtocol.pictureHeaderBytes + request.pictureBytes
        guard let file = Mapping(packet.descriptors[0], byteCount: pictureFileBytes, writable: false),
            let result = Mapping(packet.descriptors[1], byteCount: request.resultBytes, writable: true)
        else { return .refused }
        let fonts = packet.descriptors.dropFirst(2).compactMap(mapFont)
        for descriptor in packet.descriptors + [socket.descriptor] { close(descriptor) }
        guard filter.install() else { return .unconfined }
        if let trial { return trial.run(into: result.bytes) }
        let picture = ArrivingPicture(file: UnsafeRawBufferPointer(file.bytes), giveUp: refusePicture)
        return serveRequest(request, picture: picture, fonts: fonts, result: result.bytes) ? .done : .refused
    }
}

/// Runs `body` in a fork and returns its result, or `.crashed` if the fork died. Nil if the client went away meanwhile;
/// the fork is then killed. There is never more than one fork.
private func runFork(watching socket: PacketSocket, _ body: () -> WorkerOutcome) -> WorkerOutcome? {
    let parent = getpid()
    let child = shim_fork()
    guard child >= 0 else { return .unconfined }
    if child == 0 {
        let isConfined = confineFork(of: parent)
        _exit(Int32((isConfined ? body() : .unconfined).rawValue))
    }
    let clientIsThere = waitForEnd(of: child, orOf: socket)
    if !clientIsThere { kill(child, SIGKILL) }
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0 && errno == EINTR {}
    guard clientIsThere else { return nil }
    let exitedByItself = status & 0x7F == 0  // WIFEXITED(status); WEXITSTATUS(status) is below.
    return exitedByItself ? WorkerOutcome(rawValue: UInt64((status >> 8) & 0xFF)) ?? .crashed : .crashed
}

/// Blocks until the fork (true) or the client (false) has ended.
private func waitForEnd(of child: pid_t, orOf socket: PacketSocket) -> Bool {
    let process = shim_pidfd_open(child)
    // Before Linux 5.3 (no pidfd_open) the worker notices the client's death only after the fork's end, which the CPU
    // limit bounds.
    guard process >= 0 else { return true }
    defer { close(process) }
    var entries = [
        pollfd(fd: process, events: Int16(POLLIN), revents: 0),
        pollfd(fd: socket.descriptor, events: shim_POLLRDHUP, revents: 0),
    ]
    while poll(&entries, 2, -1) < 0 && errno == EINTR {}
    return entries[0].revents != 0
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
