import Foundation
import LinuxIO
import Testing
import VaultFormat

@testable import VaultStore

/// `grow`, ended at each of its calls: by a kill, or by a disk without room.
@Suite struct GrowTests {
    private let directory = TemporaryDirectory()
    private let calls = TracedCalls()

    /// Sizes of the segments of each space.
    private func segments(_ path: String) throws -> [[String: UInt64]] {
        try (0..<2).map { space in
            var sizes: [String: UInt64] = [:]
            let place = "\(path)/spaces/\(space)"
            for name in try FileManager.default.contentsOfDirectory(atPath: place) {
                let attributes = try FileManager.default.attributesOfItem(atPath: place + "/" + name)
                sizes[name] = attributes[.size] as? UInt64
            }
            return sizes
        }
    }

    private func isEven(_ path: String) throws -> Bool {
        let sizes = try segments(path)
        return sizes[0] == sizes[1] && sizes[0].values.allSatisfy { $0 == 4 << 20 }
    }

    private func shrink(_ path: String) throws {
        calls.forgetReservations()
        for space in 0..<2 {
            for number in 4..<6 {
                let name = "\(path)/spaces/\(space)/" + SegmentFiles.name(number)
                if FileManager.default.fileExists(atPath: name) {
                    try FileManager.default.removeItem(atPath: name)
                }
            }
        }
    }

    private func grow(_ path: String) throws {
        try Vault.grow(path, bytesPerSpace: 24 << 20, calls: calls) { _, _ in }
    }

    /// Killed before or in each call that changes something; then mounted, on a disk with room and on one without.
    @Test(arguments: [false, true]) func killedAnywhereItIsEvenedOutByTheNextMount(isFull: Bool) throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        calls.leaveHoles()
        var (changes, ended) = (0, false)
        var counts: Set<Int> = []
        while !ended {
            calls.die(after: changes)
            do {
                try grow(path)
                ended = true
            } catch { #expect(calls.isDead) }
            calls.revive()
            calls.setFull(isFull)
            _ = try openSpace(path, calls: calls)
            calls.setFull(false)
            #expect(try isEven(path), "after \(changes) changes")
            counts.insert(try segments(path)[0].count)
            // The same command goes on.
            if changes % 5 == 0 {
                try grow(path)
                #expect(try isEven(path) && segments(path)[0].count == 6)
            }
            try shrink(path)
            changes += 1
        }
        #expect(changes > 30)
        #expect(counts == [4, 5, 6])
    }

    /// The disk is full from some point on, though `grow` looked before: others write too.
    @Test func outOfDiskAnywhereLeavesSpacesAlike() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        for after in stride(from: 0, to: 16 << 20, by: 1 << 20) {
            var isTold = false
            var failure: VaultError?
            do throws(VaultError) {
                try Vault.grow(path, bytesPerSpace: 24 << 20, calls: calls) { done, _ in
                    if done >= after, !isTold {
                        isTold = true
                        calls.setFull(true)
                    }
                }
            } catch { failure = error }
            // What was set aside for the row that was begun is enough for it.
            #expect(failure == (after < 8 << 20 ? .noRoom : nil))
            #expect(try isEven(path) && segments(path)[0].count == (after < 8 << 20 ? 5 : 6))
            calls.setFull(false)
            try shrink(path)
        }
        calls.setFull(true)
        #expect(throws: VaultError.noRoom) { try grow(path) }
        #expect(try isEven(path) && segments(path)[0].count == 4)
    }

    @Test func theNamesOfNewSegmentsAreOnDiskBeforeAnyIsWhole() throws {
        let path = try makeVault(directory, spaces: 2, bytes: 16 << 20)
        for space in 0..<2 {
            try calls.trace("\(path)/spaces/\(space)")
            var syncsAtFirstByte: Int?
            try Vault.grow(path, bytesPerSpace: 20 << 20, calls: calls) { _, _ in
                syncsAtFirstByte = syncsAtFirstByte ?? calls.events.count
            }
            #expect(syncsAtFirstByte == 1)
            try shrink(path)
        }
    }
}
