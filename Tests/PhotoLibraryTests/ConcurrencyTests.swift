import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing

@Suite struct ConcurrencyTests {
    private func parallel(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) {
        DispatchQueue.concurrentPerform(iterations: count) { number in
            do { try body(number) } catch { Issue.record("thread \(number): \(error)") }
        }
    }

    @Test func manyThreadsInOneTree() throws {
        let rig = try Rig()
        parallel(6) { number in
            var dice = Dice(UInt64(number + 100))
            let album = "albums/t\(number % 3)"
            try? rig.mkdir(album)
            for step in 0..<120 {
                let path = "\(album)/f\(number)-\(step % 9).jpg"
                switch Int.random(in: 0..<5, using: &dice) {
                case 0, 1, 2: try rig.put(path, jpeg(more: number * 1000 + step, size: 5000))
                case 3: if rig.exists(path) { try rig.rm(path) }
                default:
                    if rig.exists(path) { try rig.mv(path, "\(album)/g\(number)-\(step).jpg") }
                    _ = try rig.ls(album)
                }
            }
        }
        for day in try rig.ls("moments") {
            for name in try rig.ls("moments/" + day) { try rig.rm("moments/\(day)/\(name)") }
        }
        for number in 0..<3 { try rig.rmrf("albums/t\(number)") }
        try rig.expectNothingLeft()
    }

    @Test func readersSeeWholeRequestsWhileAFileIsRewritten() throws {
        let rig = try Rig()
        let size = 262_144
        try rig.put("albums/f", Array(repeating: 1, count: size))
        parallel(4) { number in
            let handle = try rig.open("albums/f")
            for step in 0..<60 {
                if number < 2 {
                    let value = UInt8(truncatingIfNeeded: number * 100 + step)
                    try rig.write(
                        handle, Array(repeating: value, count: 131_072), at: UInt64(step % 2) * 131_072)
                    if step % 7 == 0 { try rig.library.fsync(handle, dataOnly: true) }
                } else {
                    let got = try rig.read(handle, 131_072, at: UInt64(step % 2) * 131_072)
                    #expect(got.count == 131_072 && Set(got).count == 1)
                }
            }
            try rig.close(handle)
        }
        try rig.rm("albums/f")
        #expect(rig.usedBytes == 0)
        try rig.expectNothingLeft()
    }
}
