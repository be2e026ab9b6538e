import Glibc
import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport
import Testing
import VaultFormat

@testable import PhotoLibrary
@testable import VaultStore

/// A computer is cut off from the storage while it writes, and another takes its space over. When the first one comes
/// back, its kernel sends all that it still had in memory: far more than the one call that a stopped process makes.
@Suite("Claims: writes that arrive late") struct LateWriteTests {
    let turns = Turns(seed: 1, stopShare: 1000, stopMilliseconds: 0...0)

    /// The storage, twice from the cut on: as the computer that was cut off believes it to be, and as it is.
    private struct Cut {
        let believed: MemoryDisk
        let real: MemoryDisk
        let events: Int

        init(_ believed: MemoryDisk) {
            self.believed = believed
            events = believed.eventCount
            real = MemoryDisk(believed.state)
        }

        /// Sends the writes that were made since the cut.
        func send() throws {
            var names: [Int: String] = [:]
            let segments = (0..<500).map { "\(SegmentLayout.directoryName)/\(SegmentLayout.name($0))" }
            for name in segments + [SegmentLayout.sharedName] {
                let path = "\(MemoryVault.path)/\(name)"
                if let inode = believed.state.live.inode(path) { names[inode] = path }
            }
            for event in believed.log[events...] {
                guard case .wrote(let file, let pages) = event, let path = names[file] else { continue }
                let target = try real.open(AT_FDCWD, path, flags: O_RDWR | O_CREAT, mode: 0o600)
                defer { real.close(target) }
                for page in pages { try real.writeFully(target, page.change.bytes, at: page.change.offset) }
            }
        }
    }

    private func save(
        _ path: String, _ count: Int, _ process: ComputerProcess, _ safe: inout [String: [UInt8]]
    ) throws {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ path.utf8.count &+ count) }
        let handle = try process.createOpen(path)
        defer { process.library.release(handle) }
        try process.write(handle, bytes)
        try process.library.fsync(handle, dataOnly: false)
        safe[path] = bytes
    }

    @Test(arguments: 1...24) func `writes that arrive late touch nothing that is safe`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let vault = try MemoryVault(spaces: seed % 2 == 0 ? 1 : 2, segments: 24)
        let believed = MemoryDisk(vault.empty)
        let lost = try Computer("cut off", vault, believed, turns)
        var safe: [String: [UInt8]] = [:]
        let old = lost.start()
        try old.mount()
        for number in 0..<Int.random(in: 0..<30, using: &random) {
            try save("albums/a\(number)", Int.random(in: 1..<200_000, using: &random), old, &safe)
        }
        let cut = Cut(believed)
        // It writes for less than five seconds, and looks in vain before a root: or just had looked.
        var unsafe: [String: [UInt8]] = [:]
        for number in 0..<Int.random(in: 1..<20, using: &random) {
            try old.put(
                "albums/b\(number)", [UInt8](repeating: 9, count: Int.random(in: 1..<300_000, using: &random))
            )
        }
        if Bool.random(using: &random) {
            try save("albums/last", 50_000, old, &unsafe)
        } else {
            old.commit(durable: false)
        }

        let other = try Computer("other", vault, cut.real, turns)
        var new = other.start()
        try new.mount(takingOver: true)
        for number in 0..<Int.random(in: 1..<40, using: &random) {
            try save("albums/c\(number)", Int.random(in: 1..<200_000, using: &random), new, &safe)
            if Int.random(in: 0..<10, using: &random) == 0 {
                try new.unmount()
                new = other.start()
                try new.mount()
            }
        }
        if Bool.random(using: &random) { try new.unmount() } else { new.kill() }
        try cut.send()

        let after = other.start()
        try after.mount(takingOver: true)
        for (path, bytes) in safe { #expect((try? after.get(path)) == bytes, "seed \(seed): \(path)") }
    }
}
