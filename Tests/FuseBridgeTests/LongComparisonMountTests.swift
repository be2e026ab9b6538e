import Foundation
import FuseBridge
import Glibc
import LinuxIO
import TestSupport
import TestThreads
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary

/// Photos that are compared at length, while programs use the mount.
@Suite(
    "Photos and plain files: classification that takes long, through a mount", .serialized, .waiting)
struct LongComparisonMountTests {
    private static let chunkRead = 128 << 10
    /// Reads, of the 68 that are left to a comparison that was held after 60, in whose time a kill is heeded.
    private static let patience = 30
    private static let picture = jpeg(more: 1) + noise(8 << 20, seed: 5)

    /// A mount where every comparison is a long one, with a photo `a.jpg`.
    ///
    /// `copier` starts a process that writes the same bytes to a new file, and closes it. In this process, a program
    /// that another test starts would have copies of the descriptor, and close them: its closes wait as well, and those
    /// before the last byte hold up the writer.
    private func withPhoto(
        _ body: (_ mounted: MountedLibrary, _ copier: (_ name: String) throws -> Child) throws -> Void
    ) throws {
        let source = NSTemporaryDirectory() + "obscura-\(UUID().uuidString)"
        try Data(Self.picture).write(to: URL(fileURLWithPath: source))
        defer { unlink(source) }
        let mounted = try MountedLibrary(library: {
            $0.limits.briefComparisonBytes = 0
            // Reads are counted.
            $0.limits.readChunks = 1
            $0.thumbnails = .off
        })
        func copier(_ name: String) throws -> Child {
            try Child(["/bin/dd", "if=" + source, "of=" + mounted.path(name), "bs=1M"])
        }
        let result = Result {
            try #require(copier("a.jpg").wait() == .exited(0))
            try body(mounted, copier)
        }
        mounted.calls.holdReads(of: nil)
        try mounted.finish()
        try result.get()
    }

    private func photos(_ mounted: MountedLibrary) throws -> [String] {
        let moments = mounted.mountPoint + "/moments"
        return try FileManager.default.subpathsOfDirectory(atPath: moments).filter { $0.contains("/") }
            .sorted()
    }

    @Test func `any number of closes leaves the mount to others`() throws {
        try withPhoto { mounted, copier in
            mounted.calls.holdReads(of: Self.chunkRead, after: 60)
            let copiers = try (0..<12).map { try copier("b\($0).jpg") }
            try #require(
                eventually { mounted.calls.heldReads == 8 }, "\(mounted.calls.heldReads)")
            // All of this would wait for ever.
            for number in 0..<20 {
                let path = mounted.path("note\(number)")
                try Data("note".utf8).write(to: URL(fileURLWithPath: path), options: .atomic)
                #expect(try read(path) == "note")
                let descriptor = open(path, O_RDWR)
                #expect(
                    Glibc.write(descriptor, "new", 3) == 3 && fsync(descriptor) == 0 && close(descriptor) == 0
                )
            }
            let descriptor = open(mounted.path("b0.jpg"), O_RDWR)
            #expect(fsync(descriptor) == 0)
            var found = stat()
            #expect(fstat(descriptor, &found) == 0 && found.st_size == Self.picture.count)
            mounted.calls.holdReads(of: nil)
            for copier in copiers { #expect(copier.wait() == .exited(0)) }
            close(descriptor)
            mounted.library.startDeferredWork()
            #expect(eventually { (try? photos(mounted)) == ["2024-05-01/a.jpg"] })
        }
    }

    @Test func `a process that is killed while it closes ends`() throws {
        try withPhoto { mounted, copier in
            mounted.calls.holdReads(of: Self.chunkRead, after: 60)
            let copier = try copier("b.jpg")
            try #require(eventually { mounted.calls.heldReads == 1 })
            copier.kill(SIGKILL)
            try #require(try eventually { try mounted.requestCounts()["interrupt"] != nil })
            // What was received is not heeded yet, and the comparison may go on a little.
            let isEnded = (0..<Self.patience).contains { _ in
                mounted.calls.passRead()
                return eventually(secondsMax: 1) { !copier.isRunning }
            }
            #expect(isEnded)
            mounted.calls.holdReads(of: nil)
            #expect(copier.wait() == .signalled(SIGKILL))
            #expect(try photos(mounted) == ["2024-05-01/a.jpg"])
            mounted.library.startDeferredWork()
            #expect(eventually { isCopy(mounted, "b.jpg") })
            #expect(try photos(mounted) == ["2024-05-01/a.jpg"])
        }
    }

    private func isCopy(_ mounted: MountedLibrary, _ name: String) -> Bool {
        guard let ino = try? status(mounted.path(name)).st_ino else { return false }
        return
            (try? mounted.library.session.locked { tree throws(FileError) in
                try tree.inode(UInt64(ino)).isCopy
            }) == true
    }

    @Test func `an unmount hears nothing of the follow-up`() throws {
        try withPhoto { mounted, copier in
            #expect(try copier(".part").wait() == .exited(0))
            #expect(rename(mounted.path(".part"), mounted.path("b.jpg")) == 0)
            mounted.calls.holdReads(of: Self.chunkRead, after: 60)
            mounted.library.startDeferredWork()
            try #require(eventually { mounted.calls.heldReads == 1 })
            mounted.session.unmount()
            #expect(try mounted.waitForEnd() == .requested)
            #expect(mounted.calls.heldReads == 1)
        }
    }

    @Test func `an unmount calls off what a program waits for in close`() throws {
        try withPhoto { mounted, copier in
            mounted.calls.holdReads(of: Self.chunkRead, after: 60)
            let copier = try copier("b.jpg")
            try #require(eventually { mounted.calls.heldReads == 1 })
            mounted.session.unmount()
            #expect(eventually { mounted.library.deferredWork.isCancelled })
            let before = mounted.calls.readCount
            mounted.calls.holdReads(of: nil)
            #expect(eventually { !copier.isRunning })
            #expect(mounted.calls.readCount - before < 30)
            #expect(try mounted.waitForEnd() == .requested)
        }
    }
}
