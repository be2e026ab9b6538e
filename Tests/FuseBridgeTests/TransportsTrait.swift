import TestSupport
import Testing

/// Runs each test twice where root may switch FUSE over io_uring on: by /dev/fuse, then by rings.
struct TransportsTrait: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    /// Whether the mounts of the running test use rings; nil: as `scripts/test` chose.
    @TaskLocal static var usesRings: Bool?

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard RingSwitch.isAvailable else { return try await function() }
        try await Self.$usesRings.withValue(false) { try await function() }
        try RingSwitch.acquire()
        defer { RingSwitch.release() }
        try await Self.$usesRings.withValue(true) { try await function() }
    }
}

extension Trait where Self == TransportsTrait {
    static var bothTransports: Self { TransportsTrait() }
}
