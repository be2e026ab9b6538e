import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoImaging
import PhotoLibrary
import TakeoutRules

/// A zip file, read by `obscura-archive` in a process of its own.
final class ArchiveClient {
    let path: HostPath
    private(set) var entries: [ArchiveEntry] = []
    private let socket: Int32
    private let process: pid_t

    /// Opens an archive and lists its entries. Fails with a reason for the user.
    init(_ path: HostPath) throws(ArchiveError) {
        self.path = path
        guard let program = programBeside("obscura-archive") else {
            throw ArchiveError("obscura-archive is missing")
        }
        do throws(Errno) {
            let archive = try path.open(O_RDONLY | O_NOCTTY)
            defer { close(archive) }
            let ends = try makeSocketPair(SOCK_STREAM, above: STDERR_FILENO)
            socket = ends.ours
            defer { close(ends.theirs) }
            let null = open("/dev/null", O_RDWR | O_CLOEXEC)
            guard null >= 0 else {
                close(ends.ours)
                throw .last
            }
            defer { close(null) }
            do throws(Errno) {
                process = try spawn(
                    [program], environment: [backtracerOff],
                    descriptors: [
                        (ends.theirs, ArchiveProtocol.socket), (null, STDOUT_FILENO), (null, STDERR_FILENO),
                        (archive, ArchiveProtocol.archive),
                    ],
                    asSession: true)
            } catch {
                close(ends.ours)
                throw error
            }
        } catch {
            throw ArchiveError("\(error)")
        }
        // From here on `deinit` ends the process.
        try list()
    }

    deinit {
        close(socket)
        kill(process, SIGKILL)
        _ = waitForEnd(of: process)
    }

    private func list() throws(ArchiveError) {
        try receiveStatus()
        let count = integer(try receive(8))
        guard count <= UInt64(ArchiveProtocol.entriesMax) else { throw ArchiveError(.tooManyEntries) }
        entries.reserveCapacity(Int(count))
        for _ in 0..<count {
            guard let (entry, nameBytes) = ArchiveEntry.head(try receive(ArchiveEntry.headBytes)) else {
                throw ArchiveError(.notWhole)
            }
            entries.append(entry)
            entries[entries.count - 1].name = try receive(nameBytes)
        }
    }

    /// Reads bytes of an entry; never fewer than asked for.
    func read(_ index: Int, at offset: UInt64, into buffer: UnsafeMutableRawBufferPointer)
        throws(ArchiveError)
    {
        var done = 0
        while done < buffer.count {
            let count = min(buffer.count - done, ArchiveProtocol.readBytesMax)
            let request =
                littleEndian(UInt64(index)) + littleEndian(offset + UInt64(done))
                + littleEndian(UInt64(count))
            try send(request)
            try receiveStatus()
            try unsafe receive(into: UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + count]))
            done += count
        }
    }

    // MARK: Socket

    private func receiveStatus() throws(ArchiveError) {
        let byte = try receive(1)
        guard let status = ArchiveProtocol.Status(rawValue: byte[0]) else { throw ArchiveError(.notWhole) }
        guard status == .ok else { throw ArchiveError(status) }
    }

    private func receive(_ count: Int) throws(ArchiveError) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var error: ArchiveError?
        unsafe bytes.withUnsafeMutableBytes { buffer in
            do throws(ArchiveError) { try unsafe receive(into: buffer) } catch let failure { error = failure }
        }
        if let error { throw error }
        return bytes
    }

    private func receive(into buffer: UnsafeMutableRawBufferPointer) throws(ArchiveError) {
        var done = 0
        while done < buffer.count {
            let count = unsafe recv(
                socket, buffer.baseAddress.map { unsafe $0 + done }, buffer.count - done, 0)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw ArchiveError("it ended the program that reads archives") }
            done += count
        }
    }

    private func send(_ bytes: [UInt8]) throws(ArchiveError) {
        var done = 0
        while done < bytes.count {
            let count = unsafe bytes.withUnsafeBytes {
                unsafe Glibc.send(
                    socket, $0.baseAddress.map { unsafe $0 + done }, bytes.count - done, Int32(MSG_NOSIGNAL))
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw ArchiveError("it ended the program that reads archives") }
            done += count
        }
    }
}

/// Why an archive or one of its entries cannot be read.
struct ArchiveError: Error {
    /// For the user, without the path.
    var reason: String

    init(_ reason: String) { self.reason = reason }

    init(_ status: ArchiveProtocol.Status) {
        reason =
            switch status {
            case .ok: "no error"
            case .notWhole: "not a zip file, or not all of one: download it again"
            case .damaged: "damaged in the archive: download it again"
            case .encrypted: "encrypted: unpack the archive, then import the folder"
            case .unknownMethod: "compressed in an unknown way: unpack the archive, then import the folder"
            case .bomb:
                "it would become more than \(ArchiveProtocol.ratioMax) times as large as in the archive"
            case .overlapping:
                "it shares bytes with another file in the archive: import nothing from who made it"
            case .tooManyEntries: "more than \(ArchiveProtocol.entriesMax) files in it"
            case .unreadable: "the disk returned an error"
            }
    }
}
