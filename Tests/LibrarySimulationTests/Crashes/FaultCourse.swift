import LibraryFixtures
import LinuxIO
import TestFixtures
import TestSupport

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// One long piece of work, of several sessions, whose system calls are numbered through, so that each can fail once
/// and the vault be compared with one without a fault.
struct FaultCourse: Sendable {
    /// Something that a user does, and does again where it has failed: done twice it leaves the same as done once.
    struct Step: Sendable {
        let name: String
        /// Paths it may change, with all below them; all else stays as it was.
        let touched: [String]
        /// Whether everything is durable when it returns.
        let isDurable: Bool
        let body: @Sendable (FaultSession) throws -> Void

        init(
            _ name: String, _ touched: [String] = [], isDurable: Bool = false,
            _ body: @escaping @Sendable (FaultSession) throws -> Void
        ) {
            self.name = name
            self.touched = touched
            self.isDurable = isDurable
            self.body = body
        }
    }

    /// A session: it begins with a mount and ends with the vault unmounted.
    struct Chapter: Sendable {
        let name: String
        /// The disk, and the tree in the vault, that it begins with.
        let start: DiskState
        let before: TreeDump
        let steps: [Step]
        /// The tree after each step.
        let trees: [TreeDump]
        /// The numbers of its calls.
        let calls: Range<Int>

        /// The tree before a step.
        func tree(before step: Int) -> TreeDump { step == 0 ? before : trees[step - 1] }
    }

    static let trashDays = 30

    let vault: MemoryVault
    let chapters: [Chapter]

    var callCount: Int { chapters.last?.calls.upperBound ?? 0 }

    /// Does the work without a failure.
    init(spaces: Int, _ size: MemoryVault.SizeClass, on host: MemoryVault.Host = .files) throws {
        vault = try MemoryVault(spaces: spaces, size, on: host)
        var chapters: [Chapter] = []
        var disk = vault.empty
        var before: TreeDump?
        var surprises: [String] = []
        for (name, work) in FaultWork.chapters(spaces: spaces) {
            let steps = FaultWork.opening + work + FaultWork.leaving
            let start = before == nil ? try Self.used(vault, disk) : disk
            let (end, count) = try Self.play(vault, steps, on: start) { _ in }
            var trees: [TreeDump] = []
            _ = try Self.play(vault, steps, on: start) { session in
                let now = session.isMounted ? try session.dump().withoutTimes : trees.last ?? TreeDump()
                let (last, step) = (trees.last ?? before ?? now, steps[trees.count])
                let difference = now.without(step.touched).difference(from: last.without(step.touched))
                if difference != "" { surprises.append("\(step.name) also changes\n\(difference)") }
                trees.append(now)
            }
            let first = chapters.last?.calls.upperBound ?? 0
            chapters.append(
                Chapter(
                    name: name, start: start, before: before ?? trees[0], steps: steps, trees: trees,
                    calls: first..<first + count))
            (disk, before) = (end, trees.last)
        }
        self.chapters = chapters
        if !surprises.isEmpty { throw CrashFailure(surprises.joined(separator: "\n")) }
    }

    /// A vault that has been mounted once: the first mount makes the tree.
    private static func used(_ vault: MemoryVault, _ disk: DiskState) throws -> DiskState {
        try play(vault, FaultWork.opening + FaultWork.leaving, on: disk) { _ in }.end
    }

    /// Does the steps, with a comparison after each; returns the disk, and the number of calls.
    private static func play(
        _ vault: MemoryVault, _ steps: [Step], on disk: DiskState, _ look: (FaultSession) throws -> Void
    ) throws -> (end: DiskState, calls: Int) {
        let session = FaultSession(vault, unmountedOn: disk, trashDays: trashDays)
        defer { session.kill() }
        for step in steps {
            do {
                try step.body(session)
                try look(session)
            } catch { throw CrashFailure("\(step.name): \(error)") }
        }
        return (session.disk.state, session.calls.callCount)
    }

    // MARK: With a failure

    /// Does the chapter with the call of this number, and examines the vault.
    /// - Throws: a violation, in words, as `CrashFailure`, or the error of a step that met no fault.
    func suffer(_ fault: FaultyCalls.Fault, at number: Int) throws {
        guard let chapter = chapters.first(where: { $0.calls.contains(number) }) else { return }
        let session = FaultSession(vault, unmountedOn: chapter.start, trashDays: Self.trashDays)
        defer { session.kill() }
        session.calls.inject(fault, after: number - chapter.calls.lowerBound)
        var outcome: Outcome?
        for (index, step) in chapter.steps.enumerated() {
            let words = "\(fault) at call \(number), \(chapter.name): \(step.name)"
            do {
                switch outcome {
                case nil: outcome = try suffer(index, chapter, session, fault)
                case .told: try step.body(session)
                case .silent:
                    // A segment whose sync fails when it is closed is told of by the next commit.
                    do { try step.body(session) } catch {
                        outcome = .told
                        try recover(before: index, chapter, session)
                        try step.body(session)
                    }
                }
            } catch { throw CrashFailure("\(words): \(error)") }
        }
        session.calls.injectNothing()
        try judgeEnd(session, chapter, "\(fault) at call \(number), \(chapter.name)")
    }

    /// The effect of a call that failed.
    private enum Outcome {
        case told
        /// No step has failed yet.
        case silent
    }

    /// Does a step, in which a call may fail; nil if none did.
    private func suffer(
        _ index: Int, _ chapter: Chapter, _ session: FaultSession, _ fault: FaultyCalls.Fault
    ) throws -> Outcome? {
        let step = chapter.steps[index]
        var failure: (any Error)?
        do { try step.body(session) } catch { failure = error }
        if session.calls.isFaultDue {
            if let failure { throw failure }
            return nil
        }
        if let failure, fault == .short { throw CrashFailure("what is short is no error: \(failure)") }
        try judgeDurable(index, chapter, session, hasFailed: failure != nil)
        if vault.host == .cluster, try isOver(session, fault) {
            failure = failure ?? FileError.readOnly
            session.kill()
            try redo(before: index, chapter, session)
        }
        // All files but those it touches are as before.
        try FaultWork.open(session)
        try compare(session, with: chapter.tree(before: index), without: step.touched)
        var outcome = failure == nil ? Outcome.silent : .told
        do { try step.body(session) } catch let second {
            if failure != nil {
                let stop = session.isMounted ? session.library.writeStop : nil
                throw CrashFailure("once more: \(second) after \(failure as Any), \(stop as Any)")
            }
            outcome = .told
            try recover(before: index, chapter, session)
            try step.body(session)
        }
        if session.isMounted { try compare(session, with: chapter.trees[index], without: []) }
        return outcome
    }

    /// Does the steps again that were not durable when a mount ended.
    private func redo(before index: Int, _ chapter: Chapter, _ session: FaultSession) throws {
        let first = (chapter.steps[..<index].lastIndex { $0.isDurable } ?? -1) + 1
        let touched = chapter.steps[first...index].flatMap(\.touched)
        try FaultWork.open(session)
        try compare(session, with: chapter.tree(before: first), without: touched)
        for step in chapter.steps[first..<index] {
            // A soft commit that counts may hold later steps, which have moved the files of this one.
            do { try step.body(session) } catch FileError.noEntry {}
        }
        try FaultWork.open(session)
    }

    /// Mounts the vault again if it is unmounted, or read-only for good as one on a cluster may be.
    private func recover(before index: Int, _ chapter: Chapter, _ session: FaultSession) throws {
        if session.isMounted, vault.host == .cluster, session.library.writeStop != nil {
            session.kill()
            try redo(before: index, chapter, session)
        }
        try FaultWork.open(session)
    }

    /// Whether a mount of a vault on a cluster is read-only for good: once it is shut out, at the latest when something
    /// is to be durable; never because a request failed without any effect.
    private func isOver(_ session: FaultSession, _ fault: FaultyCalls.Fault) throws -> Bool {
        guard session.isMounted else { return false }
        if fault == .fenced {
            // Else it was the client of `grow`, or of a mount before this one.
            guard session.disk.pool.hasClientShutOut else { return false }
            do {
                try session.put("albums/late", noise(3000))
                try session.makeDurable()
                throw CrashFailure("something is durable although it was shut out")
            } catch is FileError {}
        }
        let stop = session.library.writeStop
        switch fault {
        case .fenced where stop != .claimLost: throw CrashFailure("it goes on after it was shut out")
        case .error where stop != nil: throw CrashFailure("an error ends all writing: \(stop as Any)")
        default: return stop != nil
        }
    }

    /// A power cut now leaves the files told to be durable.
    private func judgeDurable(
        _ index: Int, _ chapter: Chapter, _ session: FaultSession, hasFailed: Bool
    ) throws {
        var base = index
        if hasFailed || !chapter.steps[index].isDurable {
            base = chapter.steps[..<index].lastIndex { $0.isDurable } ?? -1
        }
        let known = chapter.tree(before: base + 1)
        let touched = base < index ? chapter.steps[(base + 1)...index].flatMap(\.touched) : []
        let found = try session.treeAfterPowerCut().withoutTimes.without(touched)
        let difference = found.difference(from: known.without(touched))
        if difference != "" { throw CrashFailure("a power cut leaves\n\(difference)") }
    }

    private func compare(
        _ session: FaultSession, with tree: TreeDump, without touched: [String]
    ) throws {
        let found = try session.dump().withoutTimes.without(touched)
        let difference = found.difference(from: tree.without(touched))
        if difference != "" { throw CrashFailure("there is\n\(difference)") }
    }

    /// The vault is as without a failure, and nothing in it is lost, damaged or belongs to nobody.
    private func judgeEnd(_ session: FaultSession, _ chapter: Chapter, _ words: String) throws {
        let report = try SpaceCheck.run(try vault.unlock(session.calls))
        session.disk.closeAll()
        if !report.findings.isEmpty {
            throw CrashFailure("check: " + report.findings.map(\.text).joined(separator: "\n"))
        }
        try audit(try vault.openSpace(session.disk), words)
        session.disk.closeAll()
        try session.mount()
        if let last = chapter.trees.last { try compare(session, with: last, without: []) }
    }
}

extension TreeDump {
    /// Without times of operations; and without the former paths of trashed photos, which is written where it can
    /// be: the photo is kept all the same.
    var withoutTimes: TreeDump {
        var tree = TreeDump(entries: entries.filter { !$0.key.hasSuffix(".trashinfo") })
        for path in tree.entries.keys { tree.entries[path]?.modified = Timestamp(seconds: 0) }
        return tree
    }

    /// Without these paths and those below them, and without versions: work that is done again after a failure replaces
    /// what it left, which is then kept.
    func without(_ paths: [String]) -> TreeDump {
        TreeDump(
            entries: entries.filter { found, _ in
                !(found + "/").contains("/.versions/")
                    && !paths.contains { found == $0 || found.hasPrefix($0 + "/") }
            })
    }
}
