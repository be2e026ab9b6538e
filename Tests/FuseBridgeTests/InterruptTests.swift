import Foundation
import LinuxIO
import PhotoImaging
import Synchronization
import TestSupport
import TestThreads
import Testing

@testable import PhotoLibrary

private let handledSignals = Atomic(0)

/// Programs that get a signal while they wait for a picture (FUSE_INTERRUPT).
@Suite("Kernel: interrupted requests", .serialized, .waiting) struct InterruptTests {
    /// A start and an end of a JPEG are all that a photo needs to be one.
    private static let photo: [UInt8] = [0xFF, 0xD8, 0xFF, 0xE0, 0, 4, 0, 0, 0xFF, 0xD9]

    @Test func `a process that is killed need not wait`() throws {
        try withEndlessMaker { mounted, maker in
            for (count, signal) in [SIGTERM, SIGINT, SIGKILL].enumerated() {
                let caller = try Child(["/usr/bin/stat", mounted.path(".thumbs/a.jpg")])
                try #require(eventually { maker.begun == count + 1 })
                caller.kill(signal)
                // It would wait for ever.
                #expect(caller.wait() == .signalled(signal))
                #expect(eventually { maker.cancelled == count + 1 })
            }
        }
    }

    @Test func `a signal that is handled is no reason to fail`() throws {
        try withEndlessMaker { mounted, maker in
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { _ in handledSignals.add(1, ordering: .relaxed) }
            sigaction(SIGUSR2, &action, nil)
            let handledBefore = handledSignals.load(ordering: .relaxed)
            let path = mounted.path(".thumbs/a.jpg")
            let caller = InterruptibleCaller(path)
            try #require(eventually { maker.begun == 1 && caller.thread != nil })
            if let thread = caller.thread { pthread_kill(thread, SIGUSR2) }
            // A later interrupt has its effect, so the first one had its time.
            try Data(Self.photo + [1]).write(to: URL(fileURLWithPath: mounted.path("b.jpg")))
            let other = try Child(["/usr/bin/stat", mounted.path(".thumbs/b.jpg")])
            try #require(eventually { maker.begun == 2 })
            other.kill(SIGKILL)
            #expect(other.wait() == .signalled(SIGKILL))
            #expect(eventually { maker.cancelled == 1 })
            maker.letGo()
            #expect(caller.result() == 0)
            #expect(maker.begun == 2 && maker.cancelled == 1)
            #expect(handledSignals.load(ordering: .relaxed) == handledBefore + 1)
        }
    }

    /// A mount with a photo `a.jpg` whose picture is not ready before the maker is let go.
    private func withEndlessMaker(_ body: (MountedLibrary, EndlessMaker) throws -> Void) throws {
        let maker = EndlessMaker()
        let mounted = try MountedLibrary(library: {
            $0.pictureMaker = maker
            $0.settleMilliseconds = 1 << 40
        })
        let result = Result {
            try Data(Self.photo).write(to: URL(fileURLWithPath: mounted.path("a.jpg")))
            try body(mounted, maker)
        }
        maker.letGo()
        try mounted.finish()
        try result.get()
    }

    /// A thread that calls stat(2) once.
    private final class InterruptibleCaller: @unchecked Sendable {
        private let change = NSCondition()
        private var started: pthread_t?
        private var status: Int32?

        init(_ path: String) {
            Thread.detachNewThread { [self] in
                // Test threads may be kept from signals.
                var handled = sigset_t()
                sigemptyset(&handled)
                sigaddset(&handled, SIGUSR2)
                pthread_sigmask(SIG_UNBLOCK, &handled, nil)
                change.withLock { started = pthread_self() }
                var found = stat()
                let status = stat(path, &found) == 0 ? 0 : errno
                change.withLock {
                    self.status = status
                    change.broadcast()
                }
            }
        }

        var thread: pthread_t? { change.withLock { started } }

        /// 0 or the error number.
        func result() -> Int32 {
            change.withLock {
                while true {
                    if let status { return status }
                    change.wait()
                }
            }
        }
    }
}

/// Makes a picture when it is let go, or never.
private final class EndlessMaker: PictureMaking, @unchecked Sendable {
    private let change = NSCondition()
    // All under `change`.
    private var begunCount = 0
    private var calledOffCount = 0
    private var isLetGo = false

    var begun: Int { change.withLock { begunCount } }
    var cancelled: Int { change.withLock { calledOffCount } }

    func letGo() {
        change.withLock {
            isLetGo = true
            change.broadcast()
        }
    }

    var decodableTypes: Set<MediaType> { [.jpeg] }

    func makeThumbnail(
        of source: any ByteSource, _ type: MediaType, _ size: PictureSize, _ format: PictureFormat,
        unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] {
        let isCancelled = cancellation.during(wakeAll) {
            change.withLock {
                begunCount += 1
                while !isLetGo && !cancellation.isCancelled { change.wait() }
                if cancellation.isCancelled { calledOffCount += 1 }
                return cancellation.isCancelled
            }
        }
        if isCancelled { throw .cancelled }
        return [0xFF, 0xD8, 0xFF, 0xD9]
    }

    func likenessHash(of jpeg: [UInt8], unless cancellation: Cancellation) throws(ThumbnailError) -> UInt64? {
        nil
    }

    private func wakeAll() { change.withLock { change.broadcast() } }

    func composeStack(
        _ pictures: [[UInt8]], size: PictureSize, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] { throw .unavailable }

    func composeSheet(
        _ pictures: [(jpeg: [UInt8], label: String)], title: String, unless cancellation: Cancellation
    ) throws(ThumbnailError) -> [UInt8] { throw .unavailable }

    func releaseIdle() {}
    func shutDown() { letGo() }
}
