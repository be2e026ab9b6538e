internal import Glibc
internal import Sandbox
internal import TakeoutRules

/// More than the tables of an archive with as many entries as are read, and the largest entry kept whole.
private let addressSpaceBytes: rlim_t = 4 << 30
private let descriptorsMax: rlim_t = 16

/// Reads the zip file on its descriptor for the process at the other end of the socket, until that closes it.
///
/// The archive comes from outside: it is read here, in a process that has no keys, can open no file and reach no
/// network, and that dies alone if libzip can be misled.
///
/// - Returns: the exit status.
func runArchiveReader() -> Int32 {
    // Before the filter: the first conversion of a time reads the file of the time zone.
    tzset()
    guard dieWithParent(getppid()),
        confine(to: ProcessLimits(addressSpaceBytes: addressSpaceBytes, descriptors: descriptorsMax)),
        setLimit(RLIMIT_FSIZE, 0), setLimit(__RLIMIT_NPROC, 0),
        let filter = SystemCallFilter(
            allowing: ["read", "write", "pread64", "lseek", "fstat", "newfstatat", "fcntl", "dup", "close"]),
        filter.install()
    else { return 1 }
    let archive: ZipArchive
    switch ZipArchive.open(ArchiveProtocol.archive) {
    case .success(let opened): archive = opened
    case .failure(let refusal): return send([refusal.status.rawValue]) ? 0 : 1
    }
    guard sendListing(archive) else { return 1 }
    var buffer = [UInt8](repeating: 0, count: ArchiveProtocol.readBytesMax)
    while let request = receive(ArchiveProtocol.requestBytes) {
        let count = integer(request[16..<24])
        guard count <= UInt64(buffer.count) else { return 1 }
        let status = buffer.withUnsafeMutableBytes { bytes in
            archive.read(
                integer(request[0..<8]), at: integer(request[8..<16]),
                into: UnsafeMutableRawBufferPointer(rebasing: bytes[..<Int(count)]))
        }
        guard send([status.rawValue]), status != .ok || send(buffer[..<Int(count)]) else { return 1 }
    }
    return 0
}

private func sendListing(_ archive: ZipArchive) -> Bool {
    guard archive.count <= ArchiveProtocol.entriesMax else {
        return send([ArchiveProtocol.Status.tooManyEntries.rawValue])
    }
    var bytes = [ArchiveProtocol.Status.ok.rawValue] + littleEndian(UInt64(archive.count))
    for index in 0..<archive.count {
        bytes += archive.entry(index).bytes
        if bytes.count >= ArchiveProtocol.readBytesMax {
            guard send(bytes) else { return false }
            bytes = []
        }
    }
    return send(bytes)
}

/// Nil at the end, or after an error.
private func receive(_ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
        let received = bytes.withUnsafeMutableBytes { buffer in
            Glibc.read(ArchiveProtocol.socket, buffer.baseAddress.map { $0 + done }, count - done)
        }
        if received < 0, errno == EINTR { continue }
        if received <= 0 { return nil }
        done += received
    }
    return bytes
}

private func send(_ bytes: some Collection<UInt8>) -> Bool {
    let isSent = bytes.withContiguousStorageIfAvailable { buffer -> Bool in
        var done = 0
        while done < buffer.count {
            let sent = write(
                ArchiveProtocol.socket, buffer.baseAddress.map { $0 + done }, buffer.count - done)
            if sent < 0, errno == EINTR { continue }
            if sent <= 0 { return false }
            done += sent
        }
        return true
    }
    return isSent ?? send(Array(bytes))
}
