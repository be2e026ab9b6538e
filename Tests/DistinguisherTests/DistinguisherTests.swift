import Foundation
import Testing

@testable import Distinguisher

/// The distinguisher at a small size: honest vaults pass, and each mistake is found.
///
/// With the limit used here honest vaults fail less than once in a million runs.
@Suite("Secrets: how many spaces are in use", .serialized) struct DistinguisherTests {
    private static let chance = 1e-6
    private static let seed: UInt64 = 20_261_121

    /// In memory where the machine has room for it.
    private let directory = FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : "/tmp"

    private func distinguisher(seed: UInt64, pairs: Int = 28) -> Distinguisher {
        // With fewer than 36 vaults held out, no byte of the header could fail.
        var distinguisher = Distinguisher(
            pairs: pairs, seed: seed, directory: directory, limit: .chance(Self.chance))
        distinguisher.fittedPairs = 10
        distinguisher.sectorsPerSegment = 512
        // It would take a second for each vault; `scripts/distinguisher` plays honest vaults with it.
        distinguisher.covers = false
        distinguisher.runsPerAnswer = 1
        distinguisher.runsPerSlots = 5
        // The traces of a hidden session are clearest before the next one: so few pairs suffice.
        distinguisher.last = .hidden
        return distinguisher
    }

    @Test func `nobody can tell how many spaces are in use`() throws {
        let judgement = try distinguisher(seed: Self.seed).play()
        #expect(judgement.isHonest, "seed \(Self.seed)\n\(judgement.text)")
        // A feature that is not looked at cannot fail.
        for group in FeatureGroup.allCases
        where !FeatureGroup.ofDisks.contains(group) && group != FeatureGroup.ofBytes {
            #expect(judgement.lines.contains { $0.group == group })
        }
    }

    /// Those that are made at once show in different features.
    @Test(arguments: [
        [Leak.slotsInOrder, .growsAlone, .zerosInNewSegments, .counterInHeader],
        [Leak.filesOfTheirOwn, .holesInNewSegments, .repeatedFill],
    ])
    func `every mistake is found by the feature that is to find it`(leaks: [Leak]) throws {
        var distinguisher = distinguisher(seed: Self.seed + 1)
        distinguisher.leaks = Set(leaks)
        let judgement = try distinguisher.play()
        let told = Set(judgement.failures.map(\.name))
        for leak in leaks {
            #expect(leak.isFound(by: told), "\(leak)\n\(judgement.text)")
        }
    }

    /// By the bytes that the program writes, and by those that ext4 counts where the machine has loop devices.
    @Test(arguments: [nil, HostImage.Kind.ext4])
    func `sessions that hide nothing are found by the bytes written`(disk: HostImage.Kind?) throws {
        if let disk, HostImage.obstacle(disk, in: directory) != nil { return }
        // The journal of ext4 writes more or less by chance, so that a few pairs tell less there.
        var distinguisher = distinguisher(seed: Self.seed + 3, pairs: disk == nil ? 10 : 18)
        distinguisher.fittedPairs = disk == nil ? 2 : 4
        (distinguisher.limit, distinguisher.disk) = (.chance(0.2), disk)
        (distinguisher.countsBytes, distinguisher.leaks) = (true, [.withoutCoverWrites])
        distinguisher.actionMilliseconds = 0
        let judgement = try distinguisher.play()
        let told = judgement.failures.map(\.name)
        #expect(told.contains(disk == nil ? bytesWrittenFeature : bytesOfDiskFeature), "\(judgement.text)")
    }

    /// In little, where the machine has loop devices; `scripts/distinguisher` plays honest vaults so as well.
    @Test func `files of their own are found by the counters of the disk`() throws {
        guard HostImage.obstacle(.ext4, in: directory) == nil else { return }
        let leak = Leak.filesOfTheirOwnLevelled
        var distinguisher = distinguisher(seed: Self.seed + 2, pairs: 14)
        (distinguisher.fittedPairs, distinguisher.limit, distinguisher.disk, distinguisher.leaks) = (
            5, .chance(0.2), .ext4, [leak]
        )
        distinguisher.actionMilliseconds = 0
        let judgement = try distinguisher.play()
        let told = Set(judgement.failures.map(\.name))
        #expect(leak.isFound(by: told), "\(judgement.text)")
        for group in FeatureGroup.ofDisks { #expect(judgement.lines.contains { $0.group == group }) }
    }
}
