import CSQLite

/// Interrupts statements that take more work than any sound database with that number of pages. Anyone who knows the
/// password can write pages that refer to each other, so that a walk over a few of them never ends.
///
/// Used by one thread at a time, like its connection.
final class WorkLimit {
    private let pageCount: () -> UInt32
    /// Running statements. Those that run inside another count as part of the first.
    private var depth = 0
    private var steps = 0

    /// Instructions of SQLite's virtual machine between two checks.
    private static let instructionsPerStep: Int32 = 100_000
    /// A hundred million instructions, which take seconds, and 50,000 more for each page: a hundred for each row of the
    /// smallest kind.
    private static let stepsMin = 1000
    private static let pagesPerStep = 2

    init(_ connection: OpaquePointer, _ pageCount: @escaping () -> UInt32) {
        self.pageCount = pageCount
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_progress_handler(
            connection, Self.instructionsPerStep,
            { context in
                guard let context else { return 0 }
                return Unmanaged<WorkLimit>.fromOpaque(context).takeUnretainedValue().isExceeded() ? 1 : 0
            }, context)
    }

    func begin() {
        if depth == 0 { steps = 0 }
        depth += 1
    }

    func end() { depth -= 1 }

    /// Call before this object is released.
    func end(_ connection: OpaquePointer) { sqlite3_progress_handler(connection, 0, nil, nil) }

    private func isExceeded() -> Bool {
        steps += 1
        return steps > Self.stepsMin + Int(pageCount()) / Self.pagesPerStep
    }
}
