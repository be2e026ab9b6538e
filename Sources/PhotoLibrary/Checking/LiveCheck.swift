package import FileRequests
import VaultCatalogue
import VaultFormat
package import VaultStore

/// The position in a check of a mounted space. The check is done in steps and keeps no state between them.
public enum CheckCursor: Sendable, Equatable, LosslessStringConvertible {
    /// At this page of the catalogue; all other pages follow the last one.
    case pages(Int)
    /// At the constraint with this index.
    case constraint(Int)
    /// At this byte of a content.
    case extents(content: UInt64, offset: UInt64)
    /// At the first identity record after this number.
    case records(after: UInt64)
    /// At the bitmap of this segment.
    case allocation(segment: Int)

    public static let start = CheckCursor(CheckStage.allCases[0])

    private static let counted: [String: @Sendable (Int) -> CheckCursor] = [
        "pages": { .pages($0) }, "constraint": { .constraint($0) },
        "allocation": { .allocation(segment: $0) },
    ]

    public var description: String {
        switch self {
        case .pages(let page): "pages.\(page)"
        case .extents(let content, let offset): "extents.\(content).\(offset)"
        case .records(let id): "records.\(id)"
        case .constraint(let number): "constraint.\(number)"
        case .allocation(let segment): "allocation.\(segment)"
        }
    }

    public init?(_ description: String) {
        let words = description.split(separator: ".", omittingEmptySubsequences: false)
        if words.count == 2, let number = Int(words[1]), number >= 0, number < 1 << 40,
            let make = Self.counted[String(words[0])]
        {
            self = make(number)
        } else if words.count == 2, words[0] == "records", let id = UInt64(words[1]), id <= UInt64(Int64.max)
        {
            self = .records(after: id)
        } else if words.count == 3, words[0] == "extents", let content = UInt64(words[1]),
            let offset = UInt64(words[2]), content <= UInt64(Int64.max)
        {
            self = .extents(content: content, offset: offset)
        } else {
            return nil
        }
    }
}

/// The result of one step of a check of a mounted space.
public struct CheckStep: Sendable, Equatable {
    /// The next position; nil after the last step.
    public var next: CheckCursor?
    /// Bytes read.
    public var bytes: UInt64 = 0
    /// Bytes that all steps together read, approximately.
    public var total: UInt64 = 0
    public var findings: [Finding] = []
}

/// Checking a space while it is in use. Damage is verified before it is reported, because rows may have changed
/// meanwhile.
package struct LiveCheck {
    package let session: TreeSession
    package var space: Space { session.space }

    package init(_ session: TreeSession) { self.session = session }

    /// Pages that one step checks: 4 MiB of each copy.
    private static let pagesPerStep = 1024
    /// Bytes that one step reads, approximately.
    private static let bytesPerStep: UInt64 = 32 << 20
    private static let runsPerStep = 256
    private static let attemptsMax = 8

    /// Checks a bounded part of the space.
    ///
    /// - Parameter runs: limit of rows of extents.
    package func step(_ cursor: CheckCursor, runs limit: Int = runsPerStep) throws(FileError) -> CheckStep {
        var step =
            switch cursor {
            case .pages(let page): checkPages(from: page)
            case .constraint(let number): try checkConstraint(number)
            case .extents(let content, let offset): try checkExtents(from: content, offset, limit)
            case .records(let id): try checkRecords(after: id, limit)
            case .allocation(let segment): try checkAllocation(from: segment)
            }
        step.total = space.storedBytes
        return step
    }

    private func checkPages(from page: Int) -> CheckStep {
        let isLast = page >= Int(space.pageCount)
        let end = min(page + Self.pagesPerStep, max(Int(space.pageCount), page + 1))
        let report = StructureCheck(of: space).runLive(page..<end)
        var step = CheckStep(
            next: isLast ? .after(.structure) : .pages(end), bytes: report.bytes)
        if page == 0 { step.findings = Finding.ofOlderState(space) }
        step.findings += report.segments.sorted { $0.segment < $1.segment }.map { Finding($0) }
        step.findings += Finding.summarized(report.damage, mayWrite: !space.isReadOnly)
        space.noteHalved(report.damage.filter { !$0.isLost }.map(\.part))
        return step
    }

    private func checkExtents(
        from content: UInt64, _ offset: UInt64, _ limit: Int
    ) throws(FileError) -> CheckStep {
        let rows = try session.locked { tree throws(FileError) in
            try tree.tables.runs.runs(from: content, offset, limit: limit)
        }
        var (batch, bytes) = ([CheckedRun](), UInt64(0))
        // Damaged rows may be out of order. A position that leads back is skipped, or the check would never end.
        var last: (content: UInt64, offset: UInt64)?
        for row in rows where bytes < Self.bytesPerStep {
            var part = row
            defer {
                if (part.content, part.run.following) > last ?? (content, offset) {
                    last = (part.content, part.run.following)
                }
            }
            guard space.segments.isPossible(row.run) else {
                batch.append(row)
                continue
            }
            if row.run.length > Chunk.bytes {
                // Whole chunks, from the end of the last step to the limit of this one.
                let first = row.content == content ? max(row.run.offset, offset) : row.run.offset
                part.run = row.run.part(from: first, to: first + Self.bytesPerStep)
            }
            batch.append(part)
            bytes += part.run.length
        }
        if batch.isEmpty { return CheckStep(next: .records(after: 0)) }
        let next = last ?? (content + 1, 0)
        let isLast = next.content > UInt64(Int64.max)
        return try step(
            checking: batch, bytes,
            next: isLast ? .records(after: 0) : .extents(content: next.content, offset: next.offset))
    }

    private func checkRecords(after id: UInt64, _ limit: Int) throws(FileError) -> CheckStep {
        let found = try session.locked { tree throws(FileError) in
            try tree.tables.runs.records(after: id, limit: limit)
        }
        // See `checkExtents`.
        guard let last = found.map(\.content).filter({ $0 > id && $0 <= UInt64(Int64.max) }).max() else {
            return CheckStep(next: .after(.content))
        }
        return try step(
            checking: found, found.reduce(0) { $0 + min($1.run.length, Chunk.bytes) },
            next: .records(after: last))
    }

    private func step(
        checking rows: [CheckedRun], _ bytes: UInt64, next: CheckCursor
    ) throws(FileError) -> CheckStep {
        let damage = try damage(of: rows)
        var step = CheckStep(next: next, bytes: bytes)
        guard !damage.isEmpty else { return step }
        for damage in damage {
            guard case .segment(let fault) = damage.fault, !step.findings.contains(Finding(fault)) else {
                continue
            }
            step.findings.append(Finding(fault))
        }
        step.findings += try session.locked { tree throws(FileError) in
            let finder = try pathFinder(tree)
            return try finder.findings(tree.tables.runs.ofAllContents(damage))
        }
        return step
    }

    /// Returns damage in rows that did not change while they were checked.
    package func damage(of rows: [CheckedRun]) throws(FileError) -> [ExtentDamage] {
        var (rows, found) = (rows, [ExtentDamage]())
        for _ in 0..<Self.attemptsMax {
            found = ExtentCheck(of: space).check(rows)
            if found.isEmpty { return [] }
            let contents = Set(found.map { Key(content: $0.content, isRecord: $0.isRecord) })
            let suspect = rows.filter { contents.contains(Key(content: $0.content, isRecord: $0.isRecord)) }
            let now = try session.locked { tree throws(FileError) in
                var now: Set<CheckedRun> = []
                for key in contents {
                    now.formUnion(try tree.tables.runs.runs(of: key.content, isRecord: key.isRecord))
                }
                return now
            }
            rows = suspect.filter { part in now.contains { $0.covers(part) } }
            if rows.count == suspect.count { return found }
        }
        return found
    }

    /// A path finder for the current rows: stores pending changes first.
    private func pathFinder(_ tree: Tree) throws(FileError) -> PathFinder {
        try tree.storeChanges()
        return PathFinder(tables: tree.tables)
    }

    private struct Key: Hashable {
        package var content: UInt64
        package var isRecord: Bool
    }
}

extension CheckedRun {
    /// Whether this row still holds that part of a run, unchanged.
    fileprivate func covers(_ part: CheckedRun) -> Bool {
        guard content == part.content, isRecord == part.isRecord else { return false }
        if run == part.run { return true }
        guard run.offset <= part.run.offset, part.run.following <= run.following else { return false }
        return run.part(from: part.run.offset, to: part.run.end) == part.run
    }
}
