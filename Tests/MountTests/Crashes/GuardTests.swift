import Foundation
import Glibc
import LinuxIO
import Synchronization
import TestSupport
import TestThreads
import Testing

/// The process that serves a mount is killed where it cannot end: the kernel waits in it for a directory's lock.
@Suite("Crashes: programs that wait for a killed daemon", .serialized, .waiting) struct GuardTests {
    private let place: Place
    /// Of another mount, which answers nothing while its process is stopped.
    private let other: Place
    private let answers = Answers()

    private static let photos = 0..<20
    /// Its number, which Glibc's header has as a macro.
    #if arch(x86_64)
        private static let getdents64 = 217
    #else
        private static let getdents64 = 61
    #endif

    init() throws {
        (place, other) = (try Place(), try Place())
        try other.mount()
        try other.shell("head -c 100000 /dev/urandom > D/albums/f")
        // Pages that the kernel still has would be read without a request.
        try other.unmount()
        try other.mount()
        for number in Self.photos {
            try place.source("p\(number).jpg", jpeg("2024-05-01", more: number))
        }
        try place.mount()
        try place.shell("mkdir D/albums/A; cp source/* D/albums/A/; sync D")
    }

    /// Answers to threads that may never get one.
    private final class Answers: Sendable {
        private let known = Mutex<[String: Int32]>([:])

        func ask(_ what: String, _ body: @escaping @Sendable () -> Int32) {
            Thread.detachNewThread { [self] in
                let answer = body()
                known.withLock { $0[what] = answer }
            }
        }

        subscript(_ what: String) -> Int32? { known.withLock { $0[what] } }
    }

    /// Reads an album into memory that is a file of the other mount, and so keeps the album's lock until that answers.
    private func lockAlbum() throws {
        let file = open(other.albums + "/f", O_RDONLY | O_CLOEXEC)
        let album = open(place.albums + "/A", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        try #require(file >= 0 && album >= 0)
        let memory = mmap(nil, 65_536, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0)
        close(file)
        let address = try #require(memory.map { UInt(bitPattern: $0) })
        let process = try #require(other.daemon)
        kill(process, SIGSTOP)
        // Until each thread has stopped one may still answer.
        try #require(eventually { states(process).allSatisfy { $0.contains(") T ") } })
        let thread = Mutex("")
        answers.ask("album") {
            var base = 0
            let own = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/thread-self")
            thread.withLock { $0 = own ?? "" }
            guard let bytes = UnsafeMutablePointer<CChar>(bitPattern: address) else { return -1 }
            defer {
                munmap(bytes, 65_536)
                close(album)
            }
            return Int32(getdirentries(album, bytes, 65_536, &base))
        }
        // A thread that waits in this call has the lock.
        try #require(
            eventually {
                let call = contents(ofFile: "/proc/\(thread.withLock { $0 })/syscall") ?? []
                return call.starts(with: "\(Self.getdents64) ".utf8)
            })
    }

    /// proc_pid_stat(5) of each thread of the process.
    private func states(_ process: pid_t) -> [String] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.map { task in
            String(decoding: contents(ofFile: "/proc/\(process)/task/\(task)/stat") ?? [], as: UTF8.self)
        }
    }

    /// Whether a thread of the process waits where nothing interrupts it.
    private func isWaiting(_ process: pid_t) -> Bool { states(process).contains { $0.contains(") D ") } }

    /// Whether it does so, and not for a moment, as for a disk: only by the time that it takes can others tell that.
    private func isStuck(_ process: pid_t) -> Bool {
        (0..<50).allSatisfy { _ in
            usleep(10_000)
            return isWaiting(process)
        }
    }

    @Test(arguments: [true, false])
    func `programs that wait for it are freed, and the next mount serves again`(isGuarded: Bool) throws {
        let daemon = try #require(place.daemon)
        // A signal that any process may send proves nothing.
        let signal = isGuarded ? "USR1" : "KILL"
        try place.shell("kill -\(signal) $(pgrep -P \(daemon) obscura-guard); ls D/albums/A")
        try lockAlbum()
        defer { letOtherGoOn() }
        // The kernel is told that the album's entry is gone.
        #expect(unlink(place.moments + "/2024-05-01/p0.jpg") == 0 && eventually { isStuck(daemon) })
        kill(daemon, SIGKILL)
        let path = place.mountPoint
        answers.ask("mount") {
            var usage = statvfs()
            return statvfs(path, &usage) == 0 ? 0 : errno
        }
        // Where nobody else frees them the next mount does, but cannot have the vault yet.
        let command = try isGuarded ? nil : mount()
        #expect(eventually { answers["mount"] != nil })
        // It has not ended even now.
        #expect(isWaiting(daemon))
        letOtherGoOn()
        var said = ""
        func isServed(_ ended: Ended) -> Bool {
            said += ended.errors
            return ended.status == 0
        }
        if try command.map({ isServed(try $0.finish()) }) != true {
            #expect(try eventually { isServed(try mount().finish()) })
        }
        #expect(said.contains("a dead mount was left here; it has been unmounted"))
        #expect(eventually { answers["album"] != nil })
        #expect(try !place.shown().isEmpty)
        try place.unmount()
        try other.unmount()
    }

    private func mount() throws -> Child {
        try Child(
            [obscura, "mount", "V", "D", "--password-stdin"], environment: Child.plainEnvironment,
            directory: place.root, input: .text("one\n"), output: .collected, errors: .collected)
    }

    private func letOtherGoOn() { if let process = other.daemon { kill(process, SIGCONT) } }
}
