import CatalogueRows
import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import VaultStore

/// Random work in a session: all that users do, and commits of both kinds between.
struct CrashWork {
    let session: CrashSession
    var random: RandomSource
    /// Whether system calls may fail.
    var isFailing = true

    private static let days = ["2024-05-01", "2024-05-02", "2023-12-31"]
    private static let directories = ["albums", "albums/A", "albums/B"]
    private static let trash = ".Trash-0"

    mutating func run(steps: Int) throws {
        for _ in 0..<steps {
            if !session.isMounted { try session.mount() }
            session.scatter(&random)
            session.seconds += 61
            let kind = Int.random(in: 0..<43, using: &random)
            let isFaulty = isFailing && kind < Self.leaving && Int.random(in: 0..<6, using: &random) == 0
            if isFaulty {
                session.calls.inject(pick(Self.faults), after: Int.random(in: 0..<25, using: &random))
            }
            do { try step(kind) } catch let error as FileError {
                // Not possible just now, because a name is taken or nothing is there.
                guard isFaulty || Self.refusals.contains(error) else { throw error }
            }
            session.calls.injectNothing()
            try session.settle()
            // A file that found no room is not in later commits, though it can be read.
            if session.isMounted, !session.library.session.context.unsavedFiles.isEmpty { session.abandon() }
        }
    }

    /// Makes many small commits, so that slots are used again.
    mutating func age() throws {
        for _ in 0..<Int.random(in: 0..<80, using: &random) {
            _ = try session.library.setAttributes(3, AttributeChanges(modified: .now), session.caller)
            try session.commit(durable: Int.random(in: 0..<4, using: &random) == 0)
        }
    }

    private static let faults: [FaultyCalls.Fault] = [
        .error(.inputOutput), .error(.inputOutput), .error(.noSpace), .error(.quotaExceeded), .short,
    ]

    /// The step that unmounts.
    private static let leaving = 42

    private static let refusals: Set<FileError> = [
        .noRoom, .noEntry, .exists, .notDirectory, .isDirectory, .notEmpty, .notPermitted, .stale, .invalid,
    ]

    private mutating func step(_ kind: Int) throws {
        switch kind {
        case 0..<4: try session.put(newPath("f"), content())
        case 4..<7: try session.put(newPath("p", ".jpg"), picture())
        case 7..<9: try overwriteInPlace()
        case 9..<11: try renameOver()
        case 11: try truncate()
        case 12: try removeFile()
        case 13: try removePhoto()
        case 14: try moveSomething()
        case 15: try session.ln(somePhoto(), newPath("p", ".jpg"))
        case 16: try trashAndRestore()
        case 17: try emptyTrash()
        case 18: try setAttribute()
        case 19: try makeThumbnail()
        case 20: try importPhoto()
        case 21: try removeWhileOpen()
        case 22..<28: try session.commit(durable: false)
        case 28..<30: try session.commit(durable: true)
        case 30..<32: try commitBetween()
        case 32..<35: try fsync()
        case 35: try commitWithDirty()
        case 36: session.space.eraser.overwrite(most: 1 << 20)
        case 37: try fsyncDirectory()
        case 38:
            if isFailing { try session.failToCommit(afterSyncs: Int.random(in: 0..<4, using: &random)) }
        case 39, 40: try editPhoto()
        case 41: try endVersion()
        default: try leave()
        }
    }

    // MARK: Existing files

    private mutating func content() -> [UInt8] {
        let size =
            switch Int.random(in: 0..<10, using: &random) {
            case 0: 0
            case 1..<7: Int.random(in: 1...3000, using: &random)
            case 7..<9: Int.random(in: 3000...40_000, using: &random)
            default: Int.random(in: 100_000...300_000, using: &random)
            }
        return noise(size, seed: Int.random(in: 0..<1_000_000, using: &random))
    }

    private mutating func picture() -> [UInt8] {
        let picture = jpeg(
            pick(Self.days), more: Int.random(in: 0..<1000, using: &random),
            size: Int.random(in: 400...20_000, using: &random))
        // Some have several chunks.
        guard Int.random(in: 0..<8, using: &random) == 0 else { return picture }
        let rest = Int.random(in: 140_000...400_000, using: &random)
        return picture + noise(rest, seed: Int.random(in: 0..<1_000_000, using: &random))
    }

    private mutating func pick<T>(_ all: [T]) -> T { all[Int.random(in: 0..<all.count, using: &random)] }

    private mutating func newPath(_ letter: String, _ suffix: String = "") throws -> String {
        let directory = pick(Self.directories)
        if !session.exists(directory) { try session.mkdir(directory) }
        return "\(directory)/\(letter)\(Int.random(in: 0..<5, using: &random))\(suffix)"
    }

    private mutating func some(_ directories: [String]) throws -> String {
        var all: [String] = []
        for directory in directories where session.exists(directory) {
            for entry in try session.list(directory) where entry.mode & fileTypeMask == regularType {
                all.append(directory + "/" + entry.name.description)
            }
        }
        guard !all.isEmpty else { throw FileError.noEntry }
        return pick(all.sorted())
    }

    private mutating func someFile() throws -> String { try some(Self.directories) }

    private mutating func somePhoto() throws -> String {
        try some(try session.ls("moments").map { "moments/" + $0 })
    }

    // MARK: Versions

    /// Changes a part of a photo, not its beginning.
    private mutating func editPhoto() throws {
        let photo = try somePhoto()
        let size = Int(try session.stat(photo).size)
        guard size > 400 else { throw FileError.noEntry }
        let file = try session.open(photo)
        defer { session.library.release(file) }
        let offset = UInt64(Int.random(in: 400..<size, using: &random))
        switch Int.random(in: 0..<4, using: &random) {
        case 0: try session.library.ranges.allocate(file, mode: 3, offset: offset, length: UInt64(size))
        case 1: try session.write(file, content(), at: offset / 131_072 * 131_072 + 131_072)
        default: try session.write(file, content(), at: offset)
        }
        try session.library.flush(file)
    }

    /// Ends a version, as its age does.
    private mutating func endVersion() throws {
        var rows: [DentryRow] = []
        try session.library.session.change { change throws(FileError) in
            guard let root = try change.tree.existing(WellKnownInode.versions) else { return }
            for row in try change.tree.rows(of: root) {
                rows += try change.tree.rows(of: try change.tree.inode(row.ino))
            }
        }
        guard !rows.isEmpty else { throw FileError.noEntry }
        let row = pick(rows.sorted { $0.id < $1.id })
        try session.library.session.change { change throws(FileError) in
            try change.tree.versions.discardVersion(row, change)
        }
    }

    // MARK: Files

    private mutating func overwriteInPlace() throws {
        let file = try session.open(try someFile())
        defer { session.library.release(file) }
        try session.write(file, content(), at: UInt64(Int.random(in: 0..<150_000, using: &random)))
        try session.library.flush(file)
    }

    private mutating func renameOver() throws {
        let target = try someFile()
        let bytes = target.hasSuffix(".jpg") ? picture() : content()
        try session.put("albums/.new~", bytes)
        try session.mv("albums/.new~", target)
    }

    private mutating func truncate() throws {
        try session.truncate(try someFile(), UInt64(Int.random(in: 0..<200_000, using: &random)))
    }

    private mutating func removeFile() throws { try session.rm(try someFile()) }

    private mutating func removePhoto() throws { try session.rm(try somePhoto()) }

    private mutating func moveSomething() throws {
        if Bool.random(using: &random) {
            try session.mv(try someFile(), newPath("f"))
        } else {
            try session.mv(try somePhoto(), "moments/\(pick(Self.days))/q.jpg")
        }
    }

    private mutating func trashAndRestore() throws {
        for path in [Self.trash, Self.trash + "/files", Self.trash + "/info"] where !session.exists(path) {
            try session.mkdir(path, mode: 0o700)
        }
        let name = try someFile()
        try session.mv(name, Self.trash + "/files/t\(Int.random(in: 0..<3, using: &random))")
        if Bool.random(using: &random) { try session.commit(durable: Bool.random(using: &random)) }
        if Bool.random(using: &random) {
            try session.mv(try some([Self.trash + "/files"]), newPath("p", ".jpg"))
        }
    }

    private mutating func emptyTrash() throws { try session.rm(try some([Self.trash + "/files"])) }

    private mutating func setAttribute() throws {
        // Every third is larger than two pages, which are free again when it goes.
        let note = content()
        let value = note.count % 3 == 0 ? noise(10_000, seed: note.count) : Array(note.prefix(500))
        try session.library.setExtendedAttribute(
            try session.ino(try someFile()), name: Array("user.note".utf8), value: value, policy: .any)
    }

    private mutating func makeThumbnail() throws {
        let photo = try somePhoto().split(separator: "/")
        _ = try session.get("moments/\(photo[1])/.thumbs/\(photo[2])")
    }

    private mutating func importPhoto() throws {
        let bytes = picture()
        let name = "i\(Int.random(in: 0..<5, using: &random)).jpg"
        _ = try session.bring(name, bytes)
    }

    private mutating func removeWhileOpen() throws {
        let path = try someFile()
        let file = try session.open(path)
        defer { session.library.release(file) }
        try session.rm(path)
        try session.write(file, content())
        try session.library.flush(file)
        try session.commit(durable: Bool.random(using: &random))
    }

    // MARK: Commits

    private mutating func commitBetween() throws {
        let work = try (0..<Int.random(in: 1...4, using: &random)).map { _ in
            (new: try newPath("f"), bytes: content(), old: try? someFile(), more: content())
        }
        let (isDurable, interval) = (Bool.random(using: &random), pick(CrashSession.Interval.allCases))
        var places = random
        try session.commit(durable: isDurable, interval) { [session] in
            for (new, bytes, old, more) in work {
                session.scatter(&places)
                if let old, session.exists(old) { try append(more, to: old) }
                try session.put(new, bytes)
            }
            func append(_ bytes: [UInt8], to path: String) throws {
                let file = try session.open(path)
                defer { session.library.release(file) }
                try session.write(file, bytes, at: try session.stat(path).size)
                try session.library.flush(file)
            }
        }
    }

    private mutating func fsync() throws {
        let file = try session.createOpen(try newPath("f"))
        defer { session.library.release(file) }
        try session.write(file, content())
        try session.publish(try session.dump()) { try session.library.fsync(file, dataOnly: false) }
    }

    private mutating func fsyncDirectory() throws {
        let directory = try session.library.openDirectory(3)
        try session.put(newPath("f"), content())
        try session.publish(try session.dump()) { try session.library.fsyncDirectory(directory) }
    }

    /// A commit while a file has bytes that nobody has saved.
    private mutating func commitWithDirty() throws {
        var tree = try session.dump()
        let file = try session.open(try someFile())
        defer { session.library.release(file) }
        try session.write(file, content(), at: UInt64(Int.random(in: 0..<10_000, using: &random)))
        // The commit has a photo's new version, and not the write for which it was made.
        for (path, entry) in try session.dump().entries where path.contains("/.versions") {
            tree.entries[path] = entry
        }
        let isDurable = Bool.random(using: &random)
        let directory = try session.ino("albums")
        _ = try session.library.setAttributes(directory, AttributeChanges(modified: .now), session.caller)
        try session.publish(tree) { session.library.session.committer.commitByHand(durable: isDurable) }
        try session.library.flush(file)
    }

    /// Unmounts, with or without work on the unmounted vault.
    private mutating func leave() throws {
        if Int.random(in: 0..<3, using: &random) == 0 { try session.grow() }
        try session.unmount()
        if Bool.random(using: &random) { try session.changePassword() }
    }
}
