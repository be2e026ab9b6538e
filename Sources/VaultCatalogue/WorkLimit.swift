import CSQLite

/// Ends statements that take more work than any sound database of so many pages can: who knows the password can make
/// pages that refer to each other so that a walk over a few of them never ends.
///
/// Used like its connection, by one thread at a time.
final class WorkLimit {
    private let pageCount: () -> UInt32
    /// Statements under way: those that others run meanwhile count with the first.
    private var depth = 0
    private var steps = 0

    /// Instructions of SQLite's machine between two looks.
    private static let instructionsPerStep: Int32 = 100_000
    /// A hundred million instructions, which takes seconds, and 50,000 more for each page, of which the row that takes
    /// the fewest bytes has a hundred.
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

    /// Before the object goes.
    func end(_ connection: OpaquePointer) { sqlite3_progress_handler(connection, 0, nil, nil) }

    private func isExceeded() -> Bool {
        steps += 1
        return steps > Self.stepsMin + Int(pageCount()) / Self.pagesPerStep
    }
}
