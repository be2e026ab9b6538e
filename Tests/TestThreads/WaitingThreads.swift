import Foundation
public import Testing

/// Runs tests on threads of their own. Tests that start programs mostly wait, and would otherwise hold the threads of
/// tests that compute, of which there is one for each core.
public struct WaitingTrait: SuiteTrait, TestTrait, TestScoping {
    public var isRecursive: Bool { true }

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        try await withTaskExecutorPreference(WaitingThreads.shared) { try await function() }
    }
}

extension Trait where Self == WaitingTrait {
    /// The tests wait for other processes most of the time.
    public static var waiting: Self { WaitingTrait() }
}

/// Threads that run one job after another.
private final class WaitingThreads: TaskExecutor, @unchecked Sendable {
    /// As many as together keep two cores busy.
    private static let count = 5

    static let shared = WaitingThreads()

    /// Protects `jobs`, and is signalled for each.
    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []

    private init() {
        for _ in 0..<Self.count { Thread.detachNewThread { [self] in run() } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        condition.withLock {
            jobs.append(job)
            condition.signal()
        }
    }

    private func run() {
        while true { next().runSynchronously(on: asUnownedTaskExecutor()) }
    }

    private func next() -> UnownedJob {
        condition.withLock {
            while jobs.isEmpty { condition.wait() }
            return jobs.removeFirst()
        }
    }
}
