import FuseBridge
import Glibc
import LinuxIO
import Testing
import VaultFormat
import VaultStore

@testable import obscura

@Suite("Exit codes: messages") struct FailureTests {
    /// Every vault error with the documented status and its advice.
    private static let table: [(VaultError, Int32, String)] = [
        (.notAVault("/v"), 3, "make one with obscura create"),
        (
            .newer(NewerVersion(.header, version: 9, release: Release(major: 1, minor: 3))), 3,
            "made by Obscura 1.3 (vault format version 9): needs that or later; this is "
        ),
        (.newer(NewerVersion(.catalogue, version: 9, release: .unknown)), 3, "catalogue version 9"),
        (
            .notWritable(.newer(NewerVersion(.writingFeatures, version: 1, release: .unknown))), 3,
            "features 0x1"
        ),
        (.notWritable(.noRoomToUpdate), 7, "obscura grow /v SIZE"),
        (.headerDamaged, 6, "obscura header restore"),
        (.noSpaceOpens, 4, "no space opens with this password"),
        (.inUse, 5, "unmount it first"),
        (.passwordTaken, 1, "choose another"),
        (.noUnusedSpace, 7, "remove one"),
        (.singleSpace, 1, "made for one space"),
        (.foreignHeader("it belongs to another vault"), 1, "another vault"),
        (.kdfMemory(448 << 20), 1, "448 MiB of memory"),
        (.noRoom, 7, "free some"),
        (.notEmpty("/v"), 1, "a new or an empty one"),
        (.unfinishedCopy, 3, "run the same command again"),
        (.otherVault, 1, "a new or an empty directory"),
        (.damaged("the page map"), 6, "the page map"),
        (.invalidSize("less than before"), 2, "less than before"),
        (.interrupted, 130, "has been removed"),
        (.system(Errno(EACCES), "opening it"), 1, "opening it: Permission denied"),
        (.system(Errno(ENOSPC), "filling it"), 7, "No space left"),
        (.system(Errno(EDQUOT), "filling it"), 7, "filling it"),
    ]

    @Test(arguments: table)
    func `a message says what to do`(error: VaultError, status: Int32, words: String) {
        let told = failure(error, vault: "/v")
        #expect(told.status.rawValue == status)
        #expect(told.line.hasPrefix("obscura: /v: "))
        #expect(told.why.contains(words))
    }

    @Test(arguments: [
        MountError.noDevice, .deviceRefused, .noHelper, .allowOtherRefused, .noMountPoint("/d"),
        .notADirectory("/d"), .alreadyMounted("/d"), .deadMount("/d"), .mountPointRefused("/d"),
        .notEmpty("/d"),
        .refused("words"),
        .system(Errno(EIO), "asking"),
    ])
    func `a refused mount is a failure`(error: MountError) {
        #expect(failure(error, directory: "/d").status == .failed)
    }

    @Test func `a message stays one line with any path`() {
        #expect(Failure(.failed, "a\nb\u{1B}[31m", "c\td").line == "obscura: a?b?[31m: c?d")
        #expect(Failure(.failed, "Straße/写真", "x").line == "obscura: Straße/写真: x")
    }
}
