import FileRequests
import LibraryFixtures
import PhotoLibrary
import TestFixtures
import TestSupport
import Testing
import VaultFormat
import VaultStore

/// Spaces whose catalogue, and not their content, is full: whatever a program was told is there must be in the next
/// commit, and removing always works.
@Suite("Space: a full catalogue") struct CatalogueRoomTests {
    private struct Naming {
        let session: FaultSession
        var random: RandomSource
        var names: Set<String> = []
        private var count = 0

        init(_ session: FaultSession, seed: UInt64) {
            self.session = session
            random = RandomSource(seed)
        }

        private mutating func newName() -> String {
            count += 1
            let length = [1, 90, 230].randomElement(using: &random) ?? 1
            return "\(count)" + String(repeating: "n", count: length)
        }

        /// Makes empty files until that fails.
        mutating func fill() throws {
            // With any number of names the space would not have refused what it cannot keep.
            while names.count < 20_000 {
                let name = newName()
                do {
                    _ = try session.put("albums/" + name, [])
                } catch let error as FileError {
                    return #expect(error == .noRoom)
                }
                names.insert(name)
                if count % 64 == 0 { session.commit(durable: count % 256 == 0) }
            }
            Issue.record("names are never refused")
        }

        mutating func remove(_ part: Double) throws {
            let gone = names.sorted().shuffled(using: &random).prefix(Int(Double(names.count) * part))
            for name in gone {
                try session.rm("albums/" + name)
                names.remove(name)
            }
        }

        func expectIntact() throws { #expect(Set(try session.ls("albums")) == names) }
    }

    private func session(_ size: MemoryVault.SizeClass, spaces: Int) throws -> FaultSession {
        // One space is bounded by its host, several by their segments.
        let segments = size == .usual ? 4 : 12
        let vault = try MemoryVault(
            spaces: spaces, segments: segments, segmentBytes: size.segmentBytes, limits: size.limits)
        return try FaultSession(vault, capacity: spaces == 1 ? 8 << 20 : nil)
    }

    @Test(arguments: MemoryVault.SizeClass.allCases, [1, 2])
    func `names are refused before a commit fails, and go at any time`(
        _ size: MemoryVault.SizeClass, spaces: Int
    ) throws {
        let session = try session(size, spaces: spaces)
        defer { session.kill() }
        var naming = Naming(session, seed: UInt64(spaces))
        try naming.fill()
        let first = naming.names.count
        #expect(first > 100)
        for _ in 1...2 {
            try session.makeDurable()
            try naming.expectIntact()
            try naming.remove(0.7)
            try session.makeDurable()
            try naming.fill()
        }
        try session.unmount()
        try session.mount()
        try naming.expectIntact()
        try naming.remove(1)
        try session.makeDurable()
        try naming.fill()
        #expect(naming.names.count > first / 2)
        print("catalogue: \(size), \(spaces) spaces: \(first) names, \(naming.names.count) in the end")
        try session.unmount()
    }

    @Test(arguments: MemoryVault.SizeClass.allCases, [1, 2])
    func `a file whose attributes fill the catalogue goes at once, and their room comes back`(
        _ size: MemoryVault.SizeClass, spaces: Int
    ) throws {
        let session = try session(size, spaces: spaces)
        defer { session.kill() }
        var counts: [Int] = []
        for round in 0..<4 {
            _ = try session.put("albums/x", [])
            let file = try session.ino("albums/x")
            var count = 0
            while count < 20_000 {
                do throws(FileError) {
                    try session.library.setExtendedAttribute(
                        file, name: Array("user.\(count)".utf8), value: noise(16_000, seed: count),
                        policy: .any)
                } catch {
                    #expect(error == .noRoom)
                    break
                }
                count += 1
            }
            counts.append(count)
            try session.rm("albums/x")
            // As the kernel forgets the file.
            session.library.forget(file)
            try session.makeDurable()
            #expect(try session.ls("albums") == [])
            if round == 1 {
                try session.unmount()
                try session.mount()
            }
        }
        print("catalogue: \(size), \(spaces) spaces: \(counts) attributes")
        #expect(counts[0] > 10)
        #expect(counts[3] > counts[0] / 2)
        try session.unmount()
    }

    @Test(arguments: zip(MemoryVault.SizeClass.allCases, [1, 2]))
    func `a photo whose names fill the catalogue is removed once there is room`(
        _ size: MemoryVault.SizeClass, spaces: Int
    ) throws {
        let session = try session(size, spaces: spaces)
        defer { session.kill() }
        _ = try session.put("albums/0", jpeg())
        var count = 1
        while count < 20_000 {
            do {
                try session.ln("albums/0", "albums/\(count)" + String(repeating: "n", count: 200))
            } catch let error
                as FileError
            {
                #expect(error == .noRoom)
                break
            }
            count += 1
        }
        try session.makeDurable()
        // All of its names change at once, which may be too many for one commit.
        var isRemoved = true
        do { try session.rm("moments/2024-05-01/0") } catch let error as FileError {
            #expect(error == .noRoom)
            isRemoved = false
        }
        try session.makeDurable()
        #expect(try session.ls("albums").count == (isRemoved ? 0 : count))
        if !isRemoved {
            for name in try session.ls("albums").dropFirst(count / 8) { try session.rm("albums/" + name) }
            try session.makeDurable()
            try session.rm("moments/2024-05-01/0")
            try session.makeDurable()
        }
        try session.unmount()
        try session.mount()
        #expect(try session.ls("albums") == [])
        print(
            "catalogue: \(size), \(spaces) spaces: \(count) names of a photo, \(isRemoved ? "" : "not ")removed"
        )
        try session.unmount()
    }
}
