import Foundation
import LinuxIO
public import VaultCrypto
public import VaultFormat
public import VaultStore

/// A vault of two spaces for one test, removed when the object goes.
///
/// It is a copy of one that each process makes once. Only the roots are copied: what nobody has written yet
/// is a hole in the copies of segments, which no more opens than the random bytes of a real vault do. So a
/// test has as large a vault as it likes, at no cost.
public final class TestVault: Sendable {
    public let path: String
    /// The calls with which it is opened; tests let them fail.
    public let calls = FaultyCalls()
    private let directory: String

    public static var password: SecretBytes { Array("one".utf8).withUnsafeBytes { SecretBytes(copying: $0) } }

    /// - Parameters:
    ///   - bytesPerSpace: rounded up to whole segments of 4 MiB, or the smallest where `limits` are the least.
    ///   - limits: what the vault is to be opened with.
    public init(bytesPerSpace: UInt64 = 64 << 20, limits: Limits = .production) throws {
        let template = try (limits == .least ? Template.least : Template.shared).get()
        directory = try makeTemporaryDirectory()
        path = directory + "/vault"
        try template.copy(to: path, bytesPerSpace: bytesPerSpace)
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    /// Unlocks the space, waiting for the last one who had it open to let go: threads end when they end.
    public func unlock(readOnly: Bool = false) throws -> UnlockedSpace {
        var found: UnlockedSpace?
        var failure: (any Error)?
        eventually {
            do throws(VaultError) {
                found = try Vault.unlock(path, password: Self.password, readOnly: readOnly, calls: calls)
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
        let file = URL(fileURLWithPath: "\(path)/spaces/\(spaceIndex)/\(String(format: "%06d", segment)).seg")
        let handle = try FileHandle(forUpdating: file)
        defer { try? handle.close() }
        let count = Int(try handle.seekToEnd())
        try handle.seek(toOffset: 0)
        try handle.write(contentsOf: Data(noise(count, seed: segment)))
    }

    /// Flips one bit of a sector of the open space, in its file.
    public func damage(spaceIndex: Int, segment: Int, offset: UInt64) throws {
        let digits = String(segment)
        let name = String(repeating: "0", count: 6 - digits.count) + digits + ".seg"
        let file = URL(fileURLWithPath: "\(path)/spaces/\(spaceIndex)/\(name)")
        let handle = try FileHandle(forUpdating: file)
        defer { try? handle.close() }
        try handle.seek(toOffset: offset)
        let byte = try handle.read(upToCount: 1) ?? Data()
        try handle.seek(toOffset: offset)
        try handle.write(contentsOf: byte.map { $0 ^ 1 })
    }
}

/// A new directory below /tmp; whoever asked for it removes it.
public func makeTemporaryDirectory() throws -> String {
    let path = "/tmp/obscura-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    return path
}

/// Polls until `condition` holds; false when it does not for a minute, which no machine is slow enough for, and a
/// hundred times.
@discardableResult
public func eventually(secondsMax: Int = 60, _ condition: () throws -> Bool) rethrows -> Bool {
    let end = ContinuousClock.now + .seconds(secondsMax)
    var attempts = 0
    while attempts < 100 || ContinuousClock.now < end {
        if try condition() { return true }
        usleep(2000)
        attempts += 1
    }
    return try condition()
}

/// Does what takes the vault's lock, once nobody has it: a process that some other test starts has all descriptors
/// until it is the program that it is to be.
public func patiently<R>(_ body: () throws -> R) throws -> R {
    for _ in 0..<10_000 {
        do { return try body() } catch VaultError.inUse {} catch BackupError.destination(.inUse) {}
        usleep(1000)
    }
    return try body()
}

/// What of an empty vault is worth copying.
private struct Template: Sendable {
    static let shared = Result { try Template(.production) }
    static let least = Result { try Template(.least) }

    private static let spaceCount = 2
    private static let bytesPerSpace: UInt64 = 16 << 20
    /// The roots are at the start of segments 0 and 1.
    private static let headBytes = 128 << 10

    private let header: Data
    private let segmentBytes: UInt64
    /// By space, then by segment.
    private let heads: [[Data]]

    private init(_ limits: Limits) throws {
        let directory = try makeTemporaryDirectory()
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let path = directory + "/vault"
        try Vault.create(
            at: path, spaces: Self.spaceCount, bytesPerSpace: Self.bytesPerSpace,
            kdf: KDFParameters(memoryBytes: 8 << 20, passes: 1), password: TestVault.password, limits: limits
        ) { _, _ in }
        segmentBytes = try Vault.info(path).segmentBytes
        header = try Data(contentsOf: URL(fileURLWithPath: path + "/obscura.vault"))
        heads = try (0..<Self.spaceCount).map { space in
            try (0..<2).map { segment in
                let file = URL(fileURLWithPath: "\(path)/spaces/\(space)/00000\(segment).seg")
                return try Data(contentsOf: file).prefix(Self.headBytes)
            }
        }
    }

    func copy(to path: String, bytesPerSpace: UInt64) throws {
        let segments = Int((bytesPerSpace + segmentBytes - 1) / segmentBytes)
        for (space, heads) in heads.enumerated() {
            let directory = "\(path)/spaces/\(space)"
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            for segment in 0..<segments {
                let name = directory + String(format: "/%06d.seg", segment)
                let handle = try makeFile(name)
                try handle.write(contentsOf: segment < heads.count ? heads[segment] : Data())
                try handle.truncate(atOffset: segmentBytes)
                try handle.close()
            }
        }
        let handle = try makeFile(path + "/obscura.vault")
        try handle.write(contentsOf: header)
        try handle.close()
    }

    private func makeFile(_ path: String) throws -> FileHandle {
        let descriptor = open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else { throw Errno.last }
        return FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
    }
}
