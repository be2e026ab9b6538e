import FileRequests
import Glibc
import HostFiles
import LinuxIO
import Receiving

/// `receive DIR --album NAME`: a page for a phone on the same network.
func runReceive(_ arguments: Arguments) throws(Failure) {
    var settings = try ReceiveSettings(arguments)
    let mount = try onReceiving { () throws(ReceiveError) in try ReceivingMount(settings.directory) }
    if mount.isReadOnly {
        throw Failure(
            .failed, settings.directory,
            "it is mounted read-only, so nothing can be received: mount it without ro; obscura status says more"
        )
    }
    do throws(Errno) { try mount.makeAlbum(settings.album) } catch {
        let album = settings.album.map(\.description).joined(separator: "/")
        if [EEXIST, ELOOP, ENOTDIR].contains(error.rawValue) {
            throw Failure(.failed, "--album \(album)", "a file or a link has this name: choose another")
        }
        throw Failure("--album \(album)", "making it", error)
    }
    let listener = try onReceiving { () throws(ReceiveError) in try settings.address.listen() }
    defer { close(listener) }
    let session = try onReceiving { () throws(ReceiveError) in
        try ReceiveSession(mount, album: settings.album, listeningOn: listener)
    }
    let terminal = ReceiveTerminal(settings, session)
    try notingInterruption { () throws(Failure) in try terminal.run() }
}

/// Runs `body` and turns its error into a `Failure`.
func onReceiving<R>(_ body: () throws(ReceiveError) -> R) throws(Failure) -> R {
    do throws(ReceiveError) { return try body() } catch { throw failure(error) }
}

/// The message about an error of receiving. The only place that gives these errors their words and status.
private func failure(_ error: ReceiveError) -> Failure {
    switch error {
    case .notMounted(let directory):
        Failure(.failed, directory, "no space is mounted here: findmnt -t fuse.obscura lists mounts")
    case .noRoute:
        Failure(
            .failed, "network", "this machine has no default route: name an address of it with --listen")
    case .invalidAddress(let text):
        Failure(.usage, "--listen \(text)", "not an address: give one such as 192.168.1.20:8443")
    case .unusableAddress(let address, let reason, let own):
        Failure(
            .failed, "--listen \(address.text)",
            "\(reason): name an address of this machine (\(own.joined(separator: ", "))) with --listen")
    case .noServer:
        Failure(
            .failed, "obscura-receiver",
            "it is not beside this program: install all of Obscura's programs")
    case .serverNotReady:
        Failure(.failed, "obscura-receiver", "it did not start, or could not be confined: try again")
    case .system(let what, let doing, let error):
        Failure(what, doing, error)
    }
}

/// A session of `obscura receive` on the terminal, from the first code to the report.
///
/// The terminal is only written to, and read from by lines: it needs no other settings, so that it is in order however
/// this program ends or is stopped.
private final class ReceiveTerminal {
    private let settings: ReceiveSettings
    private let session: ReceiveSession
    private let progress: ReceiveProgress
    private var picture: PictureFile?

    private static let intervalMilliseconds: Int32 = 200

    init(_ settings: ReceiveSettings, _ session: ReceiveSession) {
        (self.settings, self.session) = (settings, session)
        progress = ReceiveProgress(session)
    }

    private var albumText: String { settings.album.map(\.description).joined(separator: "/") }

    func run() throws(Failure) {
        if let path = settings.pictureFile { picture = try PictureFile(path) }
        defer { picture?.remove() }
        let password = session.prepare(offersWebDAV: settings.offersWebDAV)
        try offerCode()
        say("The page will show these words: \(session.words)")
        say("The certificate's SHA-256, as browsers show it: \(session.fingerprint)")
        if settings.offersWebDAV {
            say("WebDAV for apps: https://\(settings.address.text)/dav/  user photos  password \(password)")
        }
        say("Receiving into albums/\(albumText). n and Enter: a code for another device. ^C ends.")
        session.begin()
        let end = wait()
        session.end()
        progress.end()
        for line in session.takeProblems() { note(line) }
        report()
        if let end { throw end }
    }

    /// Shows a code for a device; the one before is not taken any more.
    private func offerCode() throws(Failure) {
        let link = "https://\(settings.address.text)/#" + session.newToken()
        guard let code = QRCode(link) else { throw Failure(.failed, "QR code", "there is no memory for it") }
        let isTerminal = isatty(STDOUT_FILENO) == 1
        let codes = isTerminal ? ", or scan:" : settings.pictureFile.map { ", or scan \($0)." } ?? "."
        say("Open \(link) on your phone\(codes)")
        say(
            "(The phone warns that it does not know this computer: go on if the certificate is the one below.)"
        )
        if isTerminal { writeText(code.terminalText + "\n", to: STDOUT_FILENO) }
        try picture?.write(code.png(scale: 8))
    }

    /// Waits for an end: an interruption, the mount's, idleness, or the server's, which is a failure.
    private func wait() -> Failure? {
        var checkedAt = MonotonicClock.milliseconds
        var idleMilliseconds: Int64 = 0
        var typed: [UInt8] = []
        let isTerminal = isatty(STDIN_FILENO) == 1
        var isReading = true
        while !wasInterrupted {
            // A background job that read from its terminal would be stopped.
            let mayRead = isReading && (!isTerminal || tcgetpgrp(STDIN_FILENO) == getpgrp())
            var entry = pollfd(fd: mayRead ? STDIN_FILENO : -1, events: Int16(POLLIN), revents: 0)
            let count = poll(&entry, 1, Self.intervalMilliseconds)
            if wasInterrupted { break }
            if count > 0 {
                var buffer = [UInt8](repeating: 0, count: 256)
                let got = read(STDIN_FILENO, &buffer, buffer.count)
                isReading = got > 0 || got < 0 && errno == EINTR
                typed += buffer.prefix(max(got, 0))
                do throws(Failure) { try obey(&typed) } catch { return error }
            }
            for line in session.takeProblems() {
                progress.end()
                note(line)
            }
            progress.show()
            let now = MonotonicClock.milliseconds
            let passed = now - checkedAt
            guard passed >= 1000 else { continue }
            checkedAt = now
            // While this process is stopped (^Z), nothing can come: that time does not count.
            idleMilliseconds += min(passed, 2000)
            if session.takeActivity() { idleMilliseconds = 0 }
            if !session.isMounted {
                progress.end()
                note("\(settings.directory): the space is not mounted any more")
                return nil
            }
            if !session.isServerRunning {
                return Failure(.failed, "obscura-receiver", "it ended: run the same command again")
            }
            if let seconds = settings.idleSeconds, idleMilliseconds >= Int64(seconds) * 1000 {
                progress.end()
                note("nothing came for \(seconds) s: ending (--idle)")
                return nil
            }
        }
        return nil
    }

    private func obey(_ typed: inout [UInt8]) throws(Failure) {
        while let end = typed.firstIndex(of: UInt8(ascii: "\n")) {
            let line = typed[..<end].filter { $0 != UInt8(ascii: " ") }
            typed.removeSubrange(...end)
            if line == [UInt8(ascii: "n")] || line == [UInt8(ascii: "N")] {
                progress.end()
                try offerCode()
            }
        }
        if typed.count > 256 { typed = [] }
    }

    private func report() {
        let counts = session.counts
        var text =
            "\(counted(counts.files, "file")), \(sizeText(counts.bytes)) received into albums/\(albumText)"
        if counts.known > 0 { text += "; \(counts.known) were there already" }
        if counts.failures > 0 { text += "; \(counts.failures) failed" }
        say(text)
    }
}

/// The file of `--qr`: only its owner may read it, and it goes when the session ends, as the code in it does.
private struct PictureFile {
    private let path: HostPath
    private let descriptor: Int32

    init(_ path: String) throws(Failure) {
        self.path = HostPath(path)
        do throws(Errno) {
            descriptor = try self.path.open(O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        } catch { throw Failure("--qr \(path)", "making it", error) }
    }

    func write(_ bytes: [UInt8]) throws(Failure) {
        guard ftruncate(descriptor, 0) == 0, pwrite(descriptor, bytes, bytes.count, 0) == bytes.count else {
            throw Failure("--qr \(path.shown)", "writing it", .last)
        }
    }

    /// Leaves a file alone that another program has put in its place.
    func remove() {
        defer { close(descriptor) }
        var own = stat()
        guard fstat(descriptor, &own) == 0, let found = try? path.status(), found.identity == own.identity
        else { return }
        _ = path.withCString { unlink($0) }
    }
}
