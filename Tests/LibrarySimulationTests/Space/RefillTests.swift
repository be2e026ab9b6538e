import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestFixtures
import TestSupport
import Testing
import VaultStore

/// Spaces, and disks of hosts, that are filled, half emptied at random and filled again, a hundred times.
@Suite("Space: a hundred fills") struct RefillTests {
    private static let block = noise(600_000)

    private struct Filling {
        let session: FaultSession
        var random: RandomSource
        var sizes: [String: Int] = [:]
        private var count = 0

        init(_ session: FaultSession, seed: UInt64) {
            self.session = session
            random = RandomSource(seed)
        }

        var total: Int { sizes.values.reduce(0, +) }

        private static func content(_ name: String, _ size: Int) -> [UInt8] {
            let start = name.utf8.reduce(0) { ($0 &* 31 &+ Int($1)) % 99_991 }
            return Array(RefillTests.block[start..<start + size])
        }

        /// Writes files until none of 2000 bytes goes in any more.
        mutating func fill() throws {
            var most = 400_000
            while most >= 2000 {
                let size = Int.random(in: most / 2...most, using: &random)
                count += 1
                let name = "f\(count)"
                do {
                    try session.put("albums/" + name, Self.content(name, size))
                    sizes[name] = size
                } catch let error as FileError {
                    #expect(error == .noRoom)
                    try? session.rm("albums/" + name)
                    most /= 4
                }
            }
        }

        /// Writes files of that size until none goes in any more.
        mutating func fill(with size: Int) throws {
            while true {
                count += 1
                let name = "f\(count)"
                do {
                    try session.put("albums/" + name, Self.content(name, size))
                } catch let error as FileError {
                    #expect(error == .noRoom)
                    return try session.rm("albums/" + name)
                }
                sizes[name] = size
                if count % 64 == 0 { session.commit(durable: true) }
            }
        }

        mutating func removeHalf() throws {
            for name in sizes.keys.sorted().shuffled(using: &random).prefix(sizes.count / 2) {
                try session.rm("albums/" + name)
                sizes[name] = nil
            }
        }

        func expectIntact() throws {
            #expect(Set(try session.ls("albums")) == Set(sizes.keys))
            for (name, size) in sizes {
                #expect(try session.get("albums/" + name) == Self.content(name, size), "\(name)")
            }
        }
    }

    @Test(arguments: [1, 2]) func `a hundred fills are as full as the first`(spaces: Int) throws {
        let session = try FaultSession(
            try MemoryVault(spaces: spaces, segments: 6), capacity: spaces == 1 ? 16 << 20 : nil)
        defer { session.kill() }
        var filling = Filling(session, seed: UInt64(spaces))
        try filling.fill()
        let first = filling.total
        #expect(first > 4_000_000)
        var least = first
        for round in 1...100 {
            try filling.removeHalf()
            try filling.fill()
            least = min(least, filling.total)
            #expect(filling.total > first * 98 / 100, "round \(round)")
            if round % 25 == 0 { try filling.expectIntact() }
        }
        print("refill: \(spaces) spaces: \(first) bytes at first, \(least) at least")
        for name in filling.sizes.keys { try session.rm("albums/" + name) }
        try session.unmount()
    }

    /// Free room in pieces of a few sectors is as good as any other.
    @Test(arguments: [300, 900, 2500, 8000]) func `holes of small files have room for large ones`(small: Int)
        throws
    {
        let session = try FaultSession(try MemoryVault(spaces: 2, segments: 4))
        defer { session.kill() }
        var filling = Filling(session, seed: UInt64(small))
        try filling.fill(with: small)
        let names = filling.sizes.keys.sorted()
        for name in names.enumerated().filter({ $0.offset % 2 == 0 }).map(\.element) {
            try session.rm("albums/" + name)
            filling.sizes[name] = nil
        }
        for _ in 0..<3 { try session.makeDurable() }
        let freed = (names.count / 2) * small
        let before = filling.total
        try filling.fill()
        print("holes of \(small) bytes: \(filling.total - before) of \(freed) bytes")
        #expect(filling.total - before > freed)
        try filling.expectIntact()
        try session.unmount()
        try session.mount()
        try filling.expectIntact()
        try session.unmount()
    }
}
