import CFuse3
import FileRequests
import Foundation
import LinuxIO
import TestSupport
import TestThreads
import Testing
import VaultFormat

@testable import FuseBridge
@testable import PhotoLibrary

private let handledSignals = DispatchSemaphore(value: 0)

/// Programs that are killed while the vault's host does not answer. The tests play that host: they hold the catalogue's
/// lock, as a request does that waits for a page, or reads of the host.
@Suite("Kernel: programs killed while the host does not answer", .serialized, .waiting)
struct KilledProgramTests {
    private static let content = noise(6 << 20, seed: 48)
    /// A start and an end of a JPEG are all that a photo needs to be one.
    private static let photo = Data([0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0, 0, 0xFF, 0xD9])

    /// A mount of a host that may not answer, with `a.bin`, and an empty directory for each name.
    private func withMount(
        _ names: [String] = [], _ body: (MountedLibrary, Host) throws -> Void
    ) throws {
        let mounted = try MountedLibrary(
            { $0.hostMayNotAnswer = true },
            library: {
                $0.limits.readChunks = 1
                $0.settleMilliseconds = 1 << 40
            })
        let host = Host(mounted)
        let result = Result {
            try Data(Self.content).write(to: URL(fileURLWithPath: mounted.path("a.bin")))
            for name in names { #expect(mkdir(mounted.path(name), 0o755) == 0) }
            try mounted.library.makeDurable()
            try body(mounted, host)
        }
        host.answer()
        let isDone = eventually { host.isDone }
        try mounted.finish()
        try result.get()
        #expect(isDone)
    }

    private func start(_ words: [String], _ host: Host) throws -> Child {
        let child = try Child(words)
        try #require(eventually { host.waiting.contains(child.id) }, "\(words)")
        return child
    }

    private func requireKilled(_ children: [Child]) {
        for child in children { child.kill(SIGKILL) }
        for child in children { #expect(child.wait() == .signalled(SIGKILL)) }
    }

    @Test func `each ends at once, and the mount goes on`() throws {
        try withMount(["list", "from", "into", "made", "new", "gone", "thumbs"]) { mounted, host in
            try write("moved", to: mounted.path("from/x"))
            try write("removed", to: mounted.path("gone/x"))
            try host.stopAnswering()
            let children = try [
                ["/bin/cat", mounted.path("a.bin")], ["/bin/ls", "-l", mounted.path("list")],
                ["/bin/mv", mounted.path("from/x"), mounted.path("into/y")],
                ["/bin/dd", "if=/dev/zero", "of=" + mounted.path("new/x"), "bs=1M", "count=3"],
                ["/bin/mkdir", mounted.path("made/x")], ["/bin/rm", mounted.path("gone/x")],
                ["/usr/bin/stat", mounted.path("thumbs/.sh_thumbnails")],
            ].map { try start($0, host) }
            requireKilled(children)
            #expect(host.unfinished.abandoned >= children.count)
            host.answer()
            #expect(eventually { host.isDone })
            #expect(eventually { mounted.session.openCount == 0 })
            #expect(mounted.library.virtual?.service.nodes.knownCount == 0)
            #expect(try Data(contentsOf: URL(fileURLWithPath: mounted.path("a.bin"))) == Data(Self.content))
            // Each was done or not, and the kernel has the right one.
            let names = try FileManager.default.subpathsOfDirectory(atPath: mounted.directory)
            #expect(names.contains("from/x") != names.contains("into/y"))
            let isMoved = names.contains("into/y")
            #expect(try read(mounted.path(isMoved ? "into/y" : "from/x")) == "moved")
            #expect(names.contains("gone/x") == (access(mounted.path("gone/x"), F_OK) == 0))
            #expect(names.contains("made/x") == (access(mounted.path("made/x"), F_OK) == 0))
            try write("again", to: mounted.path("new/x"))
            #expect(try read(mounted.path("new/x")) == "again")
        }
    }

    @Test func `files that it has open are closed later, with what they have`() throws {
        try withMount { mounted, host in
            // Written past the page cache, so that it is read from the host.
            let copy = try Child([
                "/bin/dd", "if=" + mounted.path("a.bin"), "of=" + mounted.path("b.bin"), "bs=1M",
            ])
            #expect(copy.wait() == .exited(0))
            try mounted.library.makeDurable()
            host.stopReading()
            let script =
                "exec 3>\(mounted.path("out")); printf accepted >&3; exec cat \(mounted.path("b.bin"))"
            let child = try Child(["/bin/sh", "-c", script])
            try #require(eventually { mounted.calls.heldReads > 0 })
            requireKilled([child])
            // The kernel gives both files back, and `b.bin` is being read.
            host.answer()
            #expect(eventually { host.isDone && mounted.session.openCount == 0 })
            #expect(try read(mounted.path("out")) == "accepted")
            #expect(try Data(contentsOf: URL(fileURLWithPath: mounted.path("b.bin"))) == Data(Self.content))
        }
    }

    @Test func `a handle is given back only when no request uses it`() throws {
        try withMount(["list"]) { mounted, host in
            host.hold(.readdirplus, .write)
            let lister = try start(["/bin/ls", "-l", mounted.path("list")], host)
            let words = ["if=/dev/zero", "of=" + mounted.path("a.bin"), "bs=64k", "count=1", "conv=notrunc"]
            let writer = try start(["/bin/dd"] + words, host)
            requireKilled([lister])
            // RELEASEDIR.
            #expect(eventually { host.unfinished == (1, 1) })
            requireKilled([writer])
            // Older and newer kernels send a FLUSH at exit, or wait with it.
            #expect(eventually { host.unfinished.abandoned >= 2 && host.unfinished.kept >= 1 })
            #expect(mounted.session.openCount == 2)
            host.answer()
            #expect(eventually { host.isDone && mounted.session.openCount == 0 })
            var wanted = Data(Self.content)
            wanted.replaceSubrange(0..<65_536, with: Data(count: 65_536))
            #expect(
                eventually { (try? Data(contentsOf: URL(fileURLWithPath: mounted.path("a.bin")))) == wanted })
        }
    }

    @Test func `whatever it waits for, nothing is left of it`() throws {
        let words: [(operation: Host.Operation, words: [String])] = [
            (.setattr, ["chmod", "700", "mode"]), (.symlink, ["ln", "-s", "x", "made/symlink"]),
            (.mknod, ["mkfifo", "made/pipe"]), (.mkdir, ["mkdir", "made/directory"]),
            (.unlink, ["rm", "gone/x"]), (.rmdir, ["rmdir", "empty"]),
            (.link, ["ln", "gone/hard", "made/hard"]), (.open, ["cat", "a.bin"]),
            (.write, ["dd", "if=/dev/zero", "of=made/written", "bs=1k", "count=1"]),
            (.flush, ["cp", "gone/from", "made/flushed"]),
            (.fsync, ["dd", "if=/dev/zero", "of=made/synced", "bs=1k", "count=1", "conv=fsync"]),
            (.opendir, ["ls", "mode"]), (.readdirplus, ["ls", "-l", "mode"]),
            (.create, ["dd", "if=/dev/zero", "of=made/created", "bs=1k", "count=1"]),
            (.rename, ["mv", "gone/from", "gone/to"]), (.lookup, ["stat", "mode/.sh_thumbnails"]),
            (.readdirplus, ["ls", "-l", "seen/.sh_thumbnails"]),
        ]
        try withMount(["mode", "made", "gone", "empty", "seen"]) { mounted, host in
            for name in ["mode", "seen"] {
                try Self.photo.write(to: URL(fileURLWithPath: mounted.path(name + "/a.jpg")))
            }
            let nodes = try #require(mounted.library.virtual?.service.nodes)
            // The kernel keeps this one.
            #expect(access(mounted.path("seen/.sh_thumbnails"), F_OK) == 0 && nodes.knownCount == 1)
            for name in ["x", "hard", "from", "to"] { try write(name, to: mounted.path("gone/" + name)) }
            #expect(link(mounted.path("gone/x"), mounted.path("gone/other")) == 0)
            #expect(link(mounted.path("gone/to"), mounted.path("gone/last")) == 0)
            for (operation, words) in words {
                host.hold(operation)
                let child = try Child(words, directory: mounted.directory)
                try #require(eventually { host.waiting.contains(child.id) }, "\(words)")
                requireKilled([child])
                host.answer()
                #expect(eventually { host.isDone && mounted.session.openCount == 0 }, "\(words)")
                #expect(eventually { nodes.knownCount == 1 }, "\(words)")
            }
            #expect(mounted.library.observer.map { !$0.hasUnsent } != false)
            // The kernel has what was done.
            let made = ["created", "directory", "flushed", "hard", "pipe", "symlink", "synced", "written"]
            let files = FileManager.default
            #expect(try files.contentsOfDirectory(atPath: mounted.path("made")).sorted() == made)
            #expect(
                try files.contentsOfDirectory(atPath: mounted.path("gone")).sorted() == [
                    "hard", "last", "other", "to",
                ])
            #expect(try status(mounted.path("mode")).st_mode & 0o777 == 0o700)
            #expect(access(mounted.path("empty"), F_OK) == -1)
            #expect(eventually { (try? status(mounted.path("gone/other")).st_nlink) == 1 })
            #expect(eventually { (try? status(mounted.path("gone/last")).st_nlink) == 1 })
            #expect(try status(mounted.path("gone/hard")).st_nlink == 2)
            #expect(try read(mounted.path("gone/to")) == "from" && read(mounted.path("gone/last")) == "to")
            for (name, size) in [("created", 0), ("written", 1024), ("flushed", 4), ("synced", 1024)] {
                #expect(try status(mounted.path("made/" + name)).st_size == size, "\(name)")
            }
        }
    }

    @Test func `what it has left is done before a change by another program`() throws {
        try withMount(["old", "new", "never"]) { mounted, host in
            host.hold(.setattr)
            func chmod(_ name: String) throws -> Child {
                try Child(["/bin/chmod", "700", mounted.path(name)])
            }
            let first = try chmod("old")
            try #require(eventually { host.waiting.contains(first.id) })
            requireKilled([first])
            let (second, third) = (try chmod("new"), try chmod("never"))
            try #require(eventually { host.heldBack.isSuperset(of: [second.id, third.id]) })
            requireKilled([third])
            #expect(host.unfinished.abandoned == 2)
            host.answer()
            #expect(second.wait() == .exited(0))
            #expect(eventually { host.isDone })
            #expect(try status(mounted.path("old")).st_mode & 0o777 == 0o700)
            #expect(try status(mounted.path("new")).st_mode & 0o777 == 0o700)
            // It was not begun when its program was killed.
            #expect(try status(mounted.path("never")).st_mode & 0o777 == 0o755)
        }
    }

    @Test func `a photo that it was closing comes in before another program moves it`() throws {
        try withMount(["from", "into"]) { mounted, host in
            let picture = NSTemporaryDirectory() + "obscura-\(UUID().uuidString)"
            try Data([0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0, 0, 0xFF, 0xD9]).write(
                to: URL(fileURLWithPath: picture))
            defer { unlink(picture) }
            host.hold(.flush)
            let photo = mounted.path("from/a.jpg")
            requireKilled([try start(["/bin/cp", picture, photo], host)])
            let mover = try Child(["/bin/mv", photo, mounted.path("into/b.jpg")])
            try #require(eventually { host.heldBack.contains(mover.id) })
            host.answer()
            #expect(mover.wait() == .exited(0))
            #expect(eventually { host.isDone && mounted.session.openCount == 0 })
            // Nobody waits for its classification any more.
            mounted.library.startDeferredWork()
            #expect(eventually { (try? status(mounted.path("into/b.jpg")).st_nlink) == 2 })
        }
    }

    @Test func `an inode is given up after the removal of its name`() throws {
        try withMount(["gone"]) { mounted, host in
            try write("removed", to: mounted.path("gone/x"))
            let ino = UInt64(try status(mounted.path("gone/x")).st_ino)
            host.hold(.unlink)
            requireKilled([try start(["/bin/rm", mounted.path("gone/x")], host)])
            // The kernel drops the name, and with it the inode.
            #expect(eventually { host.unfinished.kept > 0 })
            host.answer()
            #expect(eventually { host.isDone })
            let isLeft = try mounted.library.session.locked { tree in tree.orphans.contains(ino) }
            #expect(!isLeft)
            #expect(access(mounted.path("gone/x"), F_OK) == -1)
        }
    }

    @Test func `more of them than there are workers`() throws {
        try withMount { mounted, host in
            try host.stopAnswering()
            let children = try (0..<90).map { _ in try Child(["/bin/cat", mounted.path("a.bin")]) }
            try #require(eventually { host.waiting.intersection(children.map(\.id)).count > 70 })
            requireKilled(children)
            host.answer()
            #expect(eventually { host.isDone && mounted.session.openCount == 0 })
            #expect(try Data(contentsOf: URL(fileURLWithPath: mounted.path("a.bin"))) == Data(Self.content))
            #expect(
                eventually {
                    _ = try? status(mounted.path("a.bin"))
                    return mounted.session.session?.workerCount ?? 0 <= 64
                })
        }
    }

    @Test func `a program that handles a signal waits on, and can be killed then`() throws {
        try withMount { mounted, host in
            let script = """
                import os, signal, sys
                signal.signal(signal.SIGALRM, lambda *_: None)
                os.stat(sys.argv[1])
                os.listdir(sys.argv[1])
                """
            let words = ["/usr/bin/python3", "-c", script, mounted.directory]
            try host.stopAnswering()
            let children = try [start(words, host), start(words, host)]
            for child in children { child.kill(SIGALRM) }
            // The watch looks at both of them again and again.
            let other = try start(["/bin/ls", mounted.path("nothing")], host)
            requireKilled([other, children[0]])
            #expect(children[1].isRunning)
            host.answer()
            #expect(children[1].wait() == .exited(0))
        }
    }

    @Test func `a host that always answers has no watch`() throws {
        let mounted = try MountedLibrary()
        #expect(mounted.session.session?.watch == nil)
        try mounted.finish()
    }
}

/// The host of a mounted vault.
private final class Host: @unchecked Sendable {
    private let mounted: MountedLibrary
    private let goOn = DispatchSemaphore(value: 0)
    private var isHolding = false

    init(_ mounted: MountedLibrary) { self.mounted = mounted }

    private var watch: RequestWatch? { mounted.session.session?.watch }

    /// Threads whose requests wait.
    var waiting: Set<Int32> { watch?.threads() ?? [] }
    var heldBack: Set<Int32> { watch?.threads(heldBack: true) ?? [] }
    var unfinished: (abandoned: Int, kept: Int) { watch?.unfinished ?? (0, 0) }
    var isDone: Bool { unfinished == (0, 0) }

    /// From now on no page of the catalogue comes.
    func stopAnswering() throws {
        let begun = DispatchSemaphore(value: 0)
        let library = mounted.library
        Thread.detachNewThread { [goOn] in
            try? library.session.locked { _ in
                begun.signal()
                goOn.wait()
            }
        }
        try #require(begun.wait(timeout: .now() + 300) == .success)
        isHolding = true
    }

    /// From now on requests with these operations wait.
    func hold(_ operations: Operation...) { watch?.hold(Set(operations.map(\.rawValue))) }

    /// Numbers of `enum fuse_opcode`.
    enum Operation: UInt32, CaseIterable {
        case lookup = 1
        case getattr = 3
        case setattr = 4
        case symlink = 6
        case mknod = 8
        case mkdir = 9
        case unlink = 10
        case rmdir = 11
        case rename = 12
        case link = 13
        case open = 14
        case read = 15
        case write = 16
        case fsync = 20
        case flush = 25
        case opendir = 27
        case readdir = 28
        case create = 35
        case readdirplus = 44
    }

    /// From now on no content comes.
    func stopReading() { mounted.calls.holdReads(of: 1) }

    func answer() {
        mounted.calls.holdReads(of: nil)
        watch?.hold([])
        if isHolding { goOn.signal() }
        isHolding = false
    }
}

@Suite("Kernel: headers of requests") struct RequestHeaderTests {
    /// A request with node 7 and thread 9.
    private func bytes(_ operation: UInt32, _ body: [UInt8]) -> [UInt8] {
        func number(_ value: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        return number(UInt32(40 + body.count)) + number(operation) + number(UInt64(5)) + number(UInt64(7))
            + number(UInt64(0)) + number(Int32(9)) + number(UInt32(0)) + body
    }

    private func effect(_ operation: UInt32, _ body: [UInt8]) -> RequestHeader.Effect? {
        withBuffer(bytes(operation, body)) { buffer in RequestHeader(buffer)?.effect(buffer) }
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    private static func named(_ names: [String]) -> [UInt8] { names.flatMap { Array($0.utf8) + [0] } }

    @Test(arguments: [(6, 0), (8, 16), (9, 8), (10, 0), (11, 0), (35, 16)]) func `a name in one directory`(
        operation: UInt32, before: Int
    ) {
        let body = Self.zeros(before) + Self.named(["a b", "target"])
        let dentry = RequestHeader.Dentry(parent: 7, name: Array("a b".utf8))
        #expect(effect(operation, body) == .init(inodes: [7], names: [dentry]))
        #expect(effect(operation, []) == .init(inodes: [7], names: []))
    }

    @Test func `names in two directories`() {
        for (operation, count) in [(UInt32(12), 0), (45, 8)] {
            let body = [3] + Self.zeros(7 + count) + Self.named(["from", "to"])
            let names = [
                RequestHeader.Dentry(parent: 7, name: Array("from".utf8)),
                .init(parent: 3, name: Array("to".utf8)),
            ]
            #expect(effect(operation, body) == .init(inodes: [7, 3], names: names))
        }
        let link = RequestHeader.Effect(
            inodes: [7, 3], names: [.init(parent: 7, name: Array("to".utf8))])
        #expect(effect(13, [3] + Self.zeros(7) + Self.named(["to"])) == link)
        #expect(effect(47, Self.zeros(16) + [3] + Self.zeros(31)) == .init(inodes: [3], names: []))
        #expect(effect(16, Self.zeros(40) + [65]) == .init(inodes: [7], names: []))
    }

    @Test func `only reading requests need not wait for changes`() {
        func changes(_ operation: UInt32, _ body: [UInt8] = []) -> Bool? {
            withBuffer(bytes(operation, body)) { RequestHeader($0)?.changes }
        }
        for operation: UInt32 in [1, 3, 15, 22, 27, 28, 44] { #expect(changes(operation) == false) }
        for operation: UInt32 in [4, 10, 12, 16, 20, 25, 35, 43, 47, 99] {
            #expect(changes(operation) == true)
        }
        for (flags, isChange) in [
            (O_RDONLY, false), (O_WRONLY, true), (O_RDWR, true), (O_RDONLY | O_TRUNC, true),
        ] {
            #expect(changes(14, withUnsafeBytes(of: flags) { Array($0) } + Self.zeros(4)) == isChange)
        }
        #expect(withBuffer(Self.zeros(39)) { RequestHeader($0) == nil })
    }

    @Test func `a thread that ends is told by its flags`() {
        func isEnding(_ state: String, _ flags: Int) -> Bool {
            isExiting(stat: Array("12 (a) b 4) \(state) 1 2 3 4 5 \(flags) 0 0".utf8))
        }
        #expect(isEnding("D", 0x404104) && !isEnding("D", 0x404100) && !isEnding("Z", 0x404104))
        #expect(!isExiting(stat: []) && !isExiting(stat: Array("1 (a) D".utf8)))
        #expect(!isThreadEnding(getpid()) && !isThreadEnding(0))
    }

    private func withBuffer<R>(_ bytes: [UInt8], _ body: (fuse_buf) -> R) -> R {
        var bytes = bytes
        return bytes.withUnsafeMutableBytes { bytes in
            var buffer = fuse_buf()
            (buffer.mem, buffer.size) = (bytes.baseAddress, bytes.count)
            return body(buffer)
        }
    }
}
