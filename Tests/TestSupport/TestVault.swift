import Foundation
import LinuxIO
public import VaultCrypto
public import VaultFormat
public import VaultStore

/// A vault of two spaces, or one, for one test, removed when the object goes.
///
/// It is a copy of one that each process makes once. Only the roots are copied: sectors that were not written yet
/// is a hole in the copy, which no more opens than the random bytes of a real vault do. So a
/// test has as large a vault as it likes, at no cost.
public final class TestVault: Sendable {
    public let path: String
    /// The calls with which it is opened; tests let them fail.
    public let calls = FaultyCalls()
    private let directory: String

    public static var password: SecretBytes { Array("one".utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

    /// - Parameters:
    ///   - bytesPerSpace: rounded up to whole segments of 4 MiB, or the smallest where `limits` are the least.
    ///   - limits: those with which the vault is opened.
    ///   - spaces: 2 or 1; one has segments of 4 MiB, as many as it needs.
    public init(bytesPerSpace: UInt64 = 64 << 20, limits: Limits = .production, spaces: Int = 2) throws {
        let template = try
            (spaces == 1 ? Template.single : limits == .least ? Template.least : Template.shared).get()
        directory = try makeTemporaryDirectory()
        path = directory + "/vault"
        try template.copy(to: path, bytesPerSpace: bytesPerSpace)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Unlocks the space, waiting for its last owner to let go: threads end when they end.
    public func unlock(readOnly: Bool = false) throws -> UnlockedSpace {
        var found: UnlockedSpace?
        var failure: (any Error)?
        eventually {
            do throws(VaultError) {
                found = try Vault.unlock(
                    path, password: Self.password, readOnly: readOnly, stretcher: RememberingStretcher.shared,
                    calls: calls)
            } catch {
                failure = error
                return error != .inUse
            }
            return true
        }
        guard let found else { throw failure ?? VaultError.inUse }
        return found
    }

    /// Fills a segment of a closed space with random bytes.
    public func scramble(spaceIndex: Int, segment: Int) throws {
        let file = try SegmentFile(path, space: spaceIndex, segment)
        try file.write(Data(noise(Int(file.length), seed: segment)))
    }

    /// Flips one bit of a sector of the open space, in its file.
    public func damage(spaceIndex: Int, segment: Int, offset: UInt64) throws {
        try SegmentFile(path, space: spaceIndex, segment).change(at: offset, count: 1) {
            Data($0.map { $0 ^ 1 })
        }
    }
}

/// A new directory below /tmp; the caller removes it.
public func makeTemporaryDirectory() throws -> String {
    let path = "/tmp/obscura-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
}

/// Polls until `condition` holds; false when it does not for five minutes, which no machine is slow enough for, and
/// a hundred times.
@discardableResult
public func eventually(secondsMax: Int = 300, _ condition: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + .seconds(secondsMax)
    var attempts = 0
    while attempts < 100 || ContinuousClock.now < end {
        if try condition() { return true }
        // Seldom after a while: many tests wait at the same time.
        usleep(attempts < 50 ? 2000 : 10_000)
        attempts += 1
    }
    return try condition()
}

/// Takes the vault's lock, once it is free: a process that some other test starts has all descriptors
/// until it is the program that it is to be.
public func patiently<R>(_ body: () throws -> R) throws -> R {
    for _ in 0..<10_000 {
        do { return try body() } catch VaultError.inUse {} catch BackupError.destination(.inUse) {}
        usleep(1000)
    }
    return try body()
}

/// The parts of an empty vault that are copied.
private struct Template: Sendable {
    static let shared = Result { try Template(.production, spaces: 2) }
    static let least = Result { try Template(.least, spaces: 2) }
    static let single = Result { try Template(.production, spaces: 1) }

    private let spaceCount: Int
    private static let bytesPerSpace: UInt64 = 16 << 20
    /// The roots are at the start of segments 0 and 1.
    private static let headBytes = 128 << 10

    private let header: Data
    private let segmentBytes: UInt64
    /// By space, then by segment.
    private let heads: [[Data]]

    private init(_ limits: Limits, spaces: Int) throws {
        spaceCount = spaces
        let directory = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = directory + "/vault"
        try Vault.create(
            at: path, spaces: spaces, bytesPerSpace: spaces == 1 ? nil : Self.bytesPerSpace,
            kdf: KDFParameters(memoryBytes: 8 << 20, passes: 1), password: TestVault.password,
            segmentBytes: spaces == 1 ? Geometry.segmentBytesMin : nil, limits: limits, coverBytes: 0
        ) { _, _ in }
        segmentBytes = try Vault.info(path).segmentBytes
        header = try Data(contentsOf: URL(fileURLWithPath: path + "/obscura.vault"))
        heads = try (0..<spaces).map { space in
            try (0..<2).map { segment in
                try SegmentFile(path, space: space, segment).read(count: Self.headBytes)
            }
        }
    }

    func copy(to path: String, bytesPerSpace: UInt64) throws {
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        let handle = try makeFile(path + "/obscura.vault")
        try handle.write(contentsOf: header)
        try handle.close()
        if spaceCount > 1 {
            let segments = (bytesPerSpace + segmentBytes - 1) / segmentBytes
            let spaces = try makeFile(path + "/spaces")
            try spaces.truncate(atOffset: segments * UInt64(spaceCount) * segmentBytes)
            try spaces.close()
        } else {
            try FileManager.default.createDirectory(
                atPath: path + "/segments", withIntermediateDirectories: false)
            for number in heads[0].indices { try makeFile(SegmentFile(path, space: 0, number).path).close() }
        }
        for (space, heads) in heads.enumerated() {
            for (number, head) in heads.enumerated() {
                try SegmentFile(path, space: space, number).write(head)
            }
        }
    }

    private func makeFile(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else { throw Errno.last }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}
