import Foundation
import PhotoLibrary
import TestSupport
import Testing

@testable import FileRequests
@testable import FuseBridge

/// Changes the kernel did not make itself, as the library makes them behind its back.
extension RealMounts {
    @Suite("Kernel: notifications") struct NotifierTests {
        private let caller = Caller(uid: 0, gid: 0, pid: 0, umask: 0)

        /// Whether `value` becomes `expected` once the notifier's thread had its turn, within a minute.
        private func eventually<Value: Equatable>(_ expected: Value, _ value: () -> Value) -> Bool {
            TestSupport.eventually { value() == expected }
        }

        @Test func `a name removed behind the kernel is forgotten`() throws {
            try withMount { mount throws in
                try write("x", to: mount.path("file"))
                let parent = UInt64(try status(mount.directory).st_ino)
                try mount.library.unlink(parent, "file", caller)
                mount.library.observer?.invalidateEntry(parent: parent, name: "file")
                #expect(eventually(ENOENT) { failure { Int(access(mount.path("file"), F_OK)) } })
            }
        }

        @Test func `attributes and pages that changed behind the kernel are read anew`() throws {
            try withMount { mount throws in
                try write("old words", to: mount.path("file"))
                #expect(try read(mount.path("file")) == "old words")
                let ino = UInt64(try status(mount.path("file")).st_ino)
                let handle = try mount.library.open(ino, flags: O_RDWR, caller)
                _ = try Data("new".utf8).withUnsafeBytes {
                    try mount.library.write(handle, offset: 0, $0, caller)
                }
                mount.library.release(handle)
                mount.library.observer?.invalidateInode(ino)
                #expect(eventually("new words") { (try? read(mount.path("file"))) ?? "" })
                var changes = AttributeChanges()
                changes.mode = 0o600
                _ = try mount.library.setAttributes(ino, changes, handle: nil, caller)
                mount.library.observer?.invalidateAttributes(ino)
                #expect(eventually(0o100600) { (try? status(mount.path("file")).st_mode) ?? 0 })
            }
        }

        @Test func `callers never wait, and an overflow loses no name`() throws {
            try withMount { mount throws in
                try write("x", to: mount.path("file"))
                let parent = UInt64(try status(mount.directory).st_ino)
                try mount.library.unlink(parent, "file", caller)
                for number in 0..<(4 * mount.library.waitingNoticesMax) {
                    mount.library.observer?.invalidateEntry(parent: parent, name: Name("\(number)"))
                }
                mount.library.observer?.invalidateEntry(parent: parent, name: "file")
                #expect(eventually(ENOENT) { failure { Int(access(mount.path("file"), F_OK)) } })
            }
        }

        /// The kernel locks a directory while a request about it waits for its answer, and for each
        /// notification about it.
        @Test func `notifications during requests do not deadlock`() throws {
            try withMount { mount throws in
                let parent = UInt64(try status(mount.directory).st_ino)
                DispatchQueue.concurrentPerform(iterations: 4) { worker in
                    for number in 0..<300 {
                        let name = "\(worker)-\(number)"
                        close(open(mount.path(name), O_CREAT, 0o600))
                        mount.library.observer?.invalidateEntry(parent: parent, name: Name(name))
                        mount.library.observer?.invalidateInode(parent)
                        rename(mount.path(name), mount.path(name + "x"))
                    }
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: mount.directory).count >= 1200)
            }
        }
    }
}
