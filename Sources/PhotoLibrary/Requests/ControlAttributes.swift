import Encodings
import FileRequests
import Synchronization
import VaultCatalogue
import VaultFormat
import VaultStore

/// The interface of a mounted space to `obscura status DIR` and `obscura check DIR`: virtual attributes of its root,
/// read-only and unlisted, for the mounting user and root alone. Each value is lines of `key=value`.
///
/// - `user.obscura.mount`: a random number, another in each mount.
/// - `user.obscura.status`: the room, the counts and the state of the space.
/// - `user.obscura.settle`: writes all pending changes; the value says which cannot be written, and why.
/// - `user.obscura.check.CURSOR`: checks the part of the space at the cursor. `cursor` in the value is the next cursor,
///   or empty. The first is `CheckCursor.start`. A `note` line for each that is no damage; a `damage` line for each
///   other finding is followed, in the same order, by its `kind` and `path` lines; paths are in hexadecimal.
struct ControlAttributes {
    let library: Library

    private var session: TreeSession { library.session }
    private var options: LibraryOptions { library.options }

    /// XATTR_SIZE_MAX, the limit of an answer.
    private static let answerBytesMax = 65_536

    /// The value of the root's attribute `user.obscura.NAME`; nil for another name.
    func value(_ name: [UInt8], _ caller: Caller?) throws(FileError) -> [UInt8]? {
        let name = String(decoding: name, as: UTF8.self)
        let isCheck = name.hasPrefix(Self.checkPrefix)
        guard isCheck || ["mount", "status", "settle"].contains(name) else { return nil }
        // The kernel checks no permissions for attributes that are only read.
        if let caller, caller.uid != 0, caller.uid != options.owner.uid { throw .accessDenied }
        if name == "mount" { return lines([("mount", "\(library.mark)")]) }
        if name == "status" { return lines(try status()) }
        if name == "settle" { return lines(try settledLines()) }
        guard let cursor = CheckCursor(String(name.dropFirst(Self.checkPrefix.count))) else { throw .noData }
        return try checkAnswer(cursor)
    }

    private static let checkPrefix = "check."

    private func lines(_ values: [(String, String)]) -> [UInt8] {
        Array(values.map { "\($0.0)=\($0.1)\n" }.joined().utf8)
    }

    /// Checks as much as fits into one answer.
    private func checkAnswer(_ cursor: CheckCursor) throws(FileError) -> [UInt8] {
        var limit = 256
        while true {
            let step = try LiveCheck(session).step(cursor, runs: limit)
            var values = [
                ("cursor", step.next.map { $0.description } ?? ""), ("bytes", "\(step.bytes)"),
                ("total", "\(step.total)"),
            ]
            let damage = step.findings.filter { !$0.isNote }
            values += step.findings.filter(\.isNote).map { ("note", $0.text) }
            values += damage.map { ("damage", $0.text) }
            // Last, so that an answer that is too long loses none of the above. Names may hold newlines.
            values += damage.flatMap { finding in
                [("kind", finding.kind.rawValue)] + finding.paths.map { ("path", hexText($0)) }
            }
            let answer = lines(values)
            if answer.count <= Self.answerBytesMax { return answer }
            // An extent with more names than fit is reported without the last of them.
            if limit == 1 { return Array(answer.prefix(Self.answerBytesMax - 1)) + [0x0A] }
            limit = max(1, limit / 4)
        }
    }

    private func status() throws(FileError) -> [(String, String)] {
        let use = library.room
        var counts: [(String, String)] = []
        do throws(FileError) { counts = try countLines() } catch {
            // Of a space whose disk is out of reach the reason is told.
            if session.space.writeStop == nil { throw error }
        }
        let unsaved = session.context.unsavedFiles.count
        return [
            ("total", "\(use.total)"), ("free", "\(use.free)"), ("available", "\(use.available)"),
            ("unsaved", "\(unsaved)"),
            ("committed", library.isCommitted ? "yes" : "no"),
            ("durable", options.readOnly || session.space.isClean && unsaved == 0 ? "yes" : "no"),
            ("readonly", library.isReadOnly ? "yes" : "no"),
            ("unwritten", session.hasUnwritten ? "yes" : "no"),
        ] + counts + placeLines + stopLines + hostLines + (library.mountStatus?() ?? [])
    }

    /// Requests to a cluster, in the form of those of the kernel.
    private var hostLines: [(String, String)] {
        guard let counts = library.unlocked?.requestCounts else { return [] }
        return [("cluster", counts.map { "\($0.name):\($0.value)" }.joined(separator: " "))]
    }

    /// Why a view is missing.
    private var placeLines: [(String, String)] {
        guard options.views, let reason = session.views.whyNoPlaces else { return [] }
        return [("no_places", oneLine(reason))]
    }

    private func countLines() throws(FileError) -> [(String, String)] {
        try session.views.withStoredRows { tree throws(FileError) in
            let changes = tree.tables.changeCount
            if let known = library.countLines.withLock({ $0 }), known.changes == changes {
                return known.lines
            }
            let versions = try tree.tables.versions.totals()
            let lines = [
                ("photos", "\(try tree.tables.photos.shownCount())"),
                ("trashed", "\(try tree.tables.trash.photoCount())"),
                ("thumbnails", "\(try tree.tables.thumbnails.count())"),
                ("versions", "\(versions.count)"), ("version_bytes", "\(versions.bytes)"),
            ]
            library.countLines.withLock { $0 = (changes, lines) }
            return lines
        }
    }

    /// Why a space that was opened for writing is not written, and advice to the user.
    private var stopLines: [(String, String)] {
        guard let stop = session.space.writeStop else {
            return options.readOnly || !library.isFull ? [] : fullLines
        }
        let advice = stop.advice(vault: library.unlocked?.path ?? "VAULT", isMounted: true)
        return [("reason", stop.reason)] + (advice.map { [("advice", oneLine($0))] } ?? [])
    }

    /// The reason and the advice for a full space.
    private var fullLines: [(String, String)] {
        let path = library.unlocked?.path ?? "VAULT"
        return session.space.grows
            ? [
                ("reason", "the disk of the vault is full"),
                ("advice", "remove something from the space, or from the disk"),
            ]
            : [
                ("reason", "the space is full"),
                ("advice", oneLine("remove something, or run obscura grow \(path) SIZE")),
            ]
    }

    /// Limits of the answer: files named, and bytes of their paths.
    private static let pathsMax = 32
    private static let pathBytesMax = 32_768

    /// Writes unwritten changes. Returns whether everything is written, else the rest and the reason.
    private func settledLines() throws(FileError) -> [(String, String)] {
        var failure = FileError.readOnly
        do throws(FileError) {
            try session.flushAfterStop()
            return [("written", "yes")]
        } catch { failure = error }
        let changes = try session.unwrittenChanges(paths: Self.pathsMax)
        if !changes.isAny { return [("written", "yes")] }
        let isFull = failure == .noRoom
        let reason =
            isFull ? "the space, or the disk of the vault, is full" : "the vault's disk reports an error"
        return [
            ("written", "no"), ("files", "\(changes.fileCount)"), ("more", changes.isMore ? "yes" : "no"),
            ("full", isFull ? "yes" : "no"),
            ("reason", session.space.writeStop?.reason ?? reason),
        ]
            + pathLines(changes.paths)
    }

    private func pathLines(_ paths: [String]) -> [(String, String)] {
        var left = Self.pathBytesMax
        return paths.map { ("path", oneLine($0)) }.prefix { line in
            left -= line.1.utf8.count
            return left >= 0
        }
    }
}
