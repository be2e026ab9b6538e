import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import Synchronization
import TestSupport
import Testing

@Suite("The tree: many threads") struct ConcurrencyTests {
    private func parallel(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) {
        DispatchQueue.concurrentPerform(iterations: count) { number in
            do { try body(number) } catch { Issue.record("thread \(number): \(error)") }
        }
    }

    @Test func `many threads in one tree`() throws {
        let fixture = try Fixture()
        parallel(6) { number in
            var random = RandomSource(UInt64(number + 100))
            let album = "albums/t\(number % 3)"
            try? fixture.mkdir(album)
            for step in 0..<120 {
                let path = "\(album)/f\(number)-\(step % 9).jpg"
                switch Int.random(in: 0..<5, using: &random) {
                case 0, 1, 2: try fixture.put(path, jpeg(more: number * 1000 + step, size: 5000))
                case 3: if fixture.exists(path) { try fixture.rm(path) }
                default:
                    if fixture.exists(path) { try fixture.mv(path, "\(album)/g\(number)-\(step).jpg") }
                    _ = try fixture.ls(album)
                }
            }
        }
        for day in try fixture.ls("moments") {
            for name in try fixture.ls("moments/" + day) { try fixture.rm("moments/\(day)/\(name)") }
        }
        for number in 0..<3 { try fixture.rmrf("albums/t\(number)") }
        try fixture.expectNothingLeft()
    }

    /// Else a directory's time would go back where one change waits for another.
    @Test func `the time of a change is not before the changes that it waited for`() throws {
        let fixture = try Fixture()
        let session = fixture.library.session
        let waiting = DispatchGroup()
        let seen = Mutex<Timestamp?>(nil)
        let released = try session.locked { _ throws(FileError) in
            DispatchQueue.global().async(group: waiting) {
                try? session.change { change throws(FileError) in seen.withLock { $0 = change.now } }
            }
            // By then it waits for the lock; if it does not, this shows nothing, but nothing fails.
            usleep(200_000)
            return Timestamp.now()
        }
        waiting.wait()
        #expect(try #require(seen.withLock { $0 }) >= released)
    }

    @Test func `readers see whole requests while a file is rewritten`() throws {
        let fixture = try Fixture()
        let size = 262_144
        try fixture.put("albums/f", Array(repeating: 1, count: size))
        parallel(4) { number in
            let handle = try fixture.open("albums/f")
            for step in 0..<60 {
                if number < 2 {
                    let value = UInt8(truncatingIfNeeded: number * 100 + step)
                    try fixture.write(
                        handle, Array(repeating: value, count: 131_072), at: UInt64(step % 2) * 131_072)
                    if step % 7 == 0 { try fixture.library.fsync(handle, dataOnly: true) }
                } else {
                    let got = try fixture.read(handle, 131_072, at: UInt64(step % 2) * 131_072)
                    #expect(got.count == 131_072 && Set(got).count == 1)
                }
            }
            try fixture.close(handle)
        }
        try fixture.rm("albums/f")
        #expect(fixture.usedBytes == 0)
        try fixture.expectNothingLeft()
    }
}
