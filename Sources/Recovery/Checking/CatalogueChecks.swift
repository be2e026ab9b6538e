import FileRequests
import LinuxIO
import PhotoLibrary
import VaultCatalogue
import VaultFormat
import VaultStore

/// Checks of a catalogue that do not depend on each other, each of which reads much of it. The threads that run them
/// have connections of their own, because a connection is used by one thread at a time.
///
/// `lock` guards the mutable properties.
final class CatalogueChecks: @unchecked Sendable {
    private let space: Space
    private let catalogue: Catalogue
    private let lock = Lock()
    private var spare: [Catalogue] = []
    private var integrityErrors: [IntegrityError] = []
    private var findings: [Int: [Finding]] = [:]
    private var failures: [Int: FileError] = [:]

    private static let count = 1 + IntegrityConstraint.all.count
    /// SQLite's own check takes as long as three threads need for the constraints, or longer; and each constraint may
    /// need memory for a table of all numbers.
    private static let threadsMax = 4

    private init(_ space: Space, _ catalogue: Catalogue) {
        (self.space, self.catalogue) = (space, catalogue)
    }

    /// Runs SQLite's own check of a space's catalogue, and looks for violations of the constraints, on several cores.
    ///
    /// - Parameter proceed: called on this thread now and then; false: the rest is left out.
    static func run(
        _ space: Space, _ catalogue: Catalogue, while proceed: () -> Bool
    ) throws(FileError) -> (errors: [IntegrityError], broken: [(IntegrityConstraint, [Finding])]) {
        let checks = CatalogueChecks(space, catalogue)
        onAllCores(count, threadsMax: threadsMax, { checks.run($0) }, ownTurn: proceed)
        if let first = checks.failures.min(by: { $0.key < $1.key }) { throw first.value }
        let broken = IntegrityConstraint.all.enumerated().compactMap { number, constraint in
            checks.findings[number].map { (constraint, $0) }
        }
        return (checks.integrityErrors, broken)
    }

    /// Number 0 is SQLite's own check: begun first, because it takes longest.
    private func run(_ number: Int) {
        do throws(FileError) {
            if number == 0 {
                let errors = try catalogue.locked { tables throws(FileError) in
                    try tables.checks.integrityErrors()
                }
                lock.withLock { integrityErrors = errors }
            } else {
                try checkConstraint(number - 1)
            }
        } catch {
            lock.withLock { failures[number] = error }
        }
    }

    private func checkConstraint(_ number: Int) throws(FileError) {
        let constraint = IntegrityConstraint.all[number]
        let catalogue = try takeCatalogue()
        let found = try catalogue.locked { tables throws(FileError) -> [Finding] in
            try CatalogueFindings.ofViolated(constraint, tables)
        }
        lock.withLock {
            if !found.isEmpty { findings[number] = found }
            spare.append(catalogue)
        }
    }

    private func takeCatalogue() throws(FileError) -> Catalogue {
        if let spare = lock.withLock({ spare.popLast() }) { return spare }
        // As much memory for all of these as for SQLite's own check.
        let others = max(1, min(coreCount, Self.threadsMax) - 1)
        let cache = space.limits.catalogueCacheKibibytes / others
        return try Catalogue(of: space, readOnly: true, cacheKibibytes: cache)
    }
}
