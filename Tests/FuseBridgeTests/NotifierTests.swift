import Foundation
import LinuxIO
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
                mount.library.observer?.invalidateEntry(parent: parent, name: "file", isInDay: false)
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
                    mount.library.observer?.invalidateEntry(
                        parent: parent, name: Name("\(number)"), isInDay: false)
                }
                mount.library.observer?.invalidateEntry(parent: parent, name: "file", isInDay: false)
                #expect(eventually(ENOENT) { failure { Int(access(mount.path("file"), F_OK)) } })
            }
        }

        /// The names of a photo that is saved anew belong to another file then, of which the kernel knows one only.
        @Test func `after a save and a removal every name is right at once`() throws {
            try withMount { mount throws in
                let notifier = try #require(mount.library.observer as? Notifier)
                notifier.holdUntilAwaited(true)
                defer { notifier.holdUntilAwaited(false) }
                try FileManager.default.createDirectory(
                    atPath: mount.path("A"), withIntermediateDirectories: false)
                let album = mount.path("A/a.jpg")
                let moment = mount.path("../moments/2024-05-01/a.jpg")
                func save(_ version: Int, as path: String) throws {
                    let bytes = Data(jpeg("2024-05-01", more: version))
                    try bytes.write(to: URL(fileURLWithPath: path))
                }
                func expectOneFile(_ version: Int, _ way: String) throws {
                    let (one, other) = (try status(album), try status(moment))
                    #expect(one.st_ino == other.st_ino, "\(way)")
                    #expect(one.st_size == other.st_size, "\(way)")
                    for path in [album, moment] {
                        #expect(
                            try Data(contentsOf: URL(fileURLWithPath: path))
                                == Data(jpeg("2024-05-01", more: version)))
                    }
                }
                try save(1, as: album)
                try expectOneFile(1, "new")
                // install -b
                #expect(rename(moment, moment + "~") == 0)
                try save(2, as: moment)
                try expectOneFile(2, "a backup, then a new file")
                // unzip -o, tar
                #expect(unlink(moment) == 0)
                try save(3, as: moment)
                try expectOneFile(3, "a removal, then a new file")
                try save(4, as: moment + ".new")
                #expect(rename(moment + ".new", moment) == 0)
                try expectOneFile(4, "a rename")
                // exiftran -b
                try save(5, as: moment + ".new")
                #expect(rename(moment, moment + "~") == 0)
                #expect(rename(moment + ".new", moment) == 0)
                try expectOneFile(5, "a backup, then a rename")
                #expect(unlink(moment) == 0)
                #expect(failure { Int(access(album, F_OK)) } == ENOENT)
            }
        }

        /// Here nothing is sent: a request returns at once if it would wait for itself, else when its patience ends.
        @Test func `a request does not wait for a directory that is locked for it`() {
            let notifier = Notifier(waitingMax: 10)
            notifier.dropEntry(parent: 2, name: "a", isInDay: false)
            let begun = MonotonicClock.milliseconds
            notifier.awaitLostNames(locked: [3])
            let unlocked = MonotonicClock.milliseconds
            #expect(unlocked - begun >= 100)
            notifier.holdUntilAwaited(true)
            notifier.awaitLostNames(locked: [3, 2])
            notifier.invalidateEntry(parent: 4, name: "b", isInDay: true)
            notifier.awaitLostNames(locked: [2, 4])
            #expect(MonotonicClock.milliseconds - unlocked < 50_000)
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
                        mount.library.observer?.invalidateEntry(
                            parent: parent, name: Name(name), isInDay: false)
                        mount.library.observer?.invalidateInode(parent)
                        rename(mount.path(name), mount.path(name + "x"))
                    }
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: mount.directory).count >= 1200)
            }
        }
    }
}
