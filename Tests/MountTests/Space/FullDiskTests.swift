import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// Files of random sizes in one directory, written until there is no room.
private struct Filling {
    let directory: String
    /// Bytes of each file, by its number. A name is never used again.
    private(set) var sizes: [Int: Int] = [:]
    private var next = 0
    private var generator: Seeded

    /// Every file is a piece of this, after its own number.
    private static let block: [UInt8] = {
        var generator = Seeded(state: 99)
        return (0..<(1 << 17)).flatMap { _ in withUnsafeBytes(of: generator.next()) { Array($0) } }
    }()
    private static let bytesMax = 500_000

    init(_ directory: String, seed: UInt64) {
        self.directory = directory
        generator = Seeded(state: seed)
    }

    var total: Int { sizes.values.reduce(0, +) }

    private func path(_ number: Int) -> String { "\(directory)/f\(number)" }

    private static func content(_ number: Int, _ size: Int) -> [UInt8] {
        let start = number * 7919 % (block.count - bytesMax)
        return Array((withUnsafeBytes(of: number) { Array($0) } + block[start..<start + size]).prefix(size))
    }

    /// Writes one file after the other until one fails, which must be for want of room; that one is removed.
    mutating func fill() {
        while true {
            let (number, size) = (next, Int.random(in: 1...Self.bytesMax, using: &generator))
            next += 1
            guard let error = Self.write(Self.content(number, size), to: path(number)) else {
                sizes[number] = size
                continue
            }
            #expect(error == ENOSPC)
            #expect(unlink(path(number)) == 0 || errno == ENOENT)
            return
        }
    }

    /// The error of the first call that failed; nil when the file is there.
    private static func write(_ bytes: [UInt8], to path: String) -> Int32? {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0o644)
        guard descriptor >= 0 else { return errno }
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                let error = errno
                close(descriptor)
                return error
            }
            done += count
        }
        return close(descriptor) == 0 ? nil : errno
    }

    mutating func removeHalf() {
        for number in sizes.keys.sorted().shuffled(using: &generator).prefix(sizes.count / 2) {
            #expect(unlink(path(number)) == 0)
            sizes[number] = nil
        }
    }

    /// Whether all that was written is there, byte for byte, and nothing else.
    func isIntact() throws -> Bool {
        let names = try FileManager.default.contentsOfDirectory(atPath: directory)
        return Set(names) == Set(sizes.keys.map { "f\($0)" })
            && sizes.allSatisfy { number, size in
                FileManager.default.contents(atPath: path(number)).map(Array.init)
                    == Self.content(number, size)
            }
    }
}

private struct Seeded: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// Spaces and disks that are filled, half emptied and filled again.
@Suite("Space: filled and emptied again", .serialized, .waiting) struct FullDiskTests {
    private static let rounds = 10

    /// Runs `body` with a mounted vault of one space on a disk of its own.
    private func withSmallDisk(_ size: String, _ body: (Place, _ disk: String) throws -> Void) throws {
        let place = try Place()
        let disk = place.root + "/disk"
        #expect(mkdir(disk, 0o755) == 0)
        try #require(mount("none", disk, "tmpfs", 0, "size=" + size) == 0)
        defer {
            umount2(place.mountPoint, Int32(MNT_DETACH))
            _ = eventually { place.daemon == nil }
            umount2(disk, Int32(MNT_DETACH))
        }
        try place.shell("mv V disk/V; ln -s disk/V V")
        try place.mount()
        try body(place, disk)
    }

    /// The rounds themselves: no deletion fails, and every fill takes 90 % of the first at least.
    private func rounds(_ place: Place, seed: UInt64) throws {
        var files = Filling(place.albums, seed: seed)
        files.fill()
        let first = files.total
        #expect(first > 24_000_000)
        #expect(try files.isIntact())
        for _ in 0..<Self.rounds {
            files.removeHalf()
            files.fill()
            #expect(files.total > first * 9 / 10)
        }
        #expect(try files.isIntact())
        try place.unmount()
        try place.mount()
        #expect(try files.isIntact())
    }

    @Test func `a full disk of the host is emptied and filled again, ten times`() throws {
        try withSmallDisk("48M") { place, _ throws in
            try rounds(place, seed: 1)
            try place.shell("rm D/albums/*")
            try place.unmount()
        }
    }

    @Test func `a full space is emptied and filled again, ten times`() throws {
        let place = try Place(spaces: 2, size: "64M")
        try place.mount()
        try rounds(place, seed: 2)
        try place.shell("rm D/albums/*")
        try place.unmount()
    }

    @Test func `where others take the last of the host, deleting works`() throws {
        try withSmallDisk("48M") { place, disk throws in
            var files = Filling(place.albums, seed: 3)
            files.fill()
            #expect(try place.run(["/bin/sh", "-c", "cat /dev/zero > disk/others"]).status != 0)
            var found = statvfs()
            #expect(statvfs(disk, &found) == 0 && found.f_bavail == 0)
            files.removeHalf()
            // To the disk, though that has no room.
            let albums = open(place.albums, O_RDONLY | O_DIRECTORY)
            #expect(fsync(albums) == 0)
            close(albums)
            let half = files.total
            files.fill()
            #expect(files.total > half * 3 / 2)
            #expect(try files.isIntact())
            try place.unmount()
            try place.mount()
            #expect(try files.isIntact())
            try place.shell("rm D/albums/*")
            try place.unmount()
        }
    }
}
