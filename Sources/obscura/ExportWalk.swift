import FileRequests
import HostFiles
import PhotoLibrary

/// The entries of a library in the order of an export: a directory, its entries, its end.
///
/// On a host where each read waits for an answer, entries are known some steps ahead, and the bytes of their files are
/// asked for before they are read: also the next file's while one is written.
struct ExportWalk {
    enum Step {
        /// A directory. Its entries and `.end` follow.
        case directory(DirectoryEntry, Contents)
        /// Anything else.
        case entry(DirectoryEntry)
        /// The end of the last directory that has begun.
        case end
    }

    enum Contents {
        case listed
        /// None follow: they cannot be read.
        case unreadable
        /// None follow: it was listed before, as it is within itself, for example.
        case repeated
    }

    private struct Known {
        let step: Step
        var file: ExpectedFile?
    }

    private let walk: SpaceWalk
    private let caller: Caller
    /// Whether each name of a file is read: else only the first one.
    private let readsEachName: Bool
    private let hasVersions: Bool
    /// Of each directory from the top to the innermost one: its entries that have not become steps yet.
    private var left: [ArraySlice<DirectoryEntry>]
    private var listed: Set<UInt64> = []
    /// The next steps. Files of the first `opened` are open.
    private var known: [Known] = []
    private var opened = 0
    /// Files with several names that are among the steps so far.
    private var linked: Set<UInt64> = []
    /// The file that is being read, and how far.
    private var current: ExpectedFile?
    private var offset: UInt64 = 0
    /// Whether files are expected to be read: not as long as they are there already.
    private var isReading: Bool

    /// Bytes that are asked for ahead, at most: fewer than a host keeps.
    private static let bytesMax: UInt64 = 8 << 20
    private static let stepsMax = 64

    /// - Parameters:
    ///   - isResumed: whether the first files may be there already.
    init(
        _ top: [DirectoryEntry], _ walk: SpaceWalk, _ caller: Caller, versions: Bool, readsEachName: Bool,
        isResumed: Bool
    ) {
        (left, self.walk, self.caller, hasVersions) = ([top[...]], walk, caller, versions)
        (self.readsEachName, isReading) = (readsEachName, !isResumed)
    }

    /// The next step; nil at the end.
    mutating func next() -> Step? {
        current = nil
        askForMore()
        return take()
    }

    private mutating func take() -> Step? {
        if known.isEmpty, !lookAhead() { return nil }
        let first = known.removeFirst()
        if opened > 0 { opened -= 1 }
        (current, offset) = (first.file, 0)
        return first.step
    }

    /// Passes over the steps of the directory that has just begun, its end included.
    mutating func skipDirectory() {
        var depth = 1
        while depth > 0, let step = take() {
            switch step {
            case .directory: depth += 1
            case .end: depth -= 1
            case .entry: break
            }
        }
    }

    /// Notes that the file of the last step is read up to an offset.
    mutating func read(upTo offset: UInt64) {
        self.offset = offset
        isReading = true
        askForMore()
    }

    /// Notes that the file of the last step was not read.
    mutating func passOver() { isReading = false }

    // MARK: Ahead

    /// Takes one more step into `known`. Returns false at the end.
    private mutating func lookAhead() -> Bool {
        while let entry = left.last?.first {
            left[left.count - 1].removeFirst()
            guard let attributes = entry.entry?.attributes else { continue }
            known.append(Known(step: attributes.isDirectory ? begin(entry, attributes.ino) : .entry(entry)))
            return true
        }
        guard left.count > 1 else { return false }
        left.removeLast()
        known.append(Known(step: .end))
        return true
    }

    private mutating func begin(_ entry: DirectoryEntry, _ ino: UInt64) -> Step {
        // Each name of a file has its versions beside it.
        guard SpaceWalk.isOfVersions(ino) || listed.insert(ino).inserted else {
            left.append([])
            return .directory(entry, .repeated)
        }
        do throws(FileError) {
            left.append(try walk.entries(of: ino, versions: hasVersions)[...])
            return .directory(entry, .listed)
        } catch {
            left.append([])
            return .directory(entry, .unreadable)
        }
    }

    /// Asks for bytes of the next files, as many as may be on their way.
    private mutating func askForMore() {
        guard isReading, walk.expectsFiles else { return }
        var bytes: UInt64 = 0
        if let current {
            bytes = current.asked - min(current.asked, offset)
            guard askForAll(of: current, &bytes) else { return }
        }
        var index = 0
        while index < Self.stepsMax {
            if index == known.count, !lookAhead() { return }
            if index == opened { open(index) }
            if let file = known[index].file {
                bytes += file.asked
                guard askForAll(of: file, &bytes) else { return }
            }
            index += 1
        }
    }

    /// Returns false if that were too many bytes.
    private func askForAll(of file: ExpectedFile, _ bytes: inout UInt64) -> Bool {
        while !file.isWholeAsked {
            guard bytes + ExpectedFile.stepBytes <= Self.bytesMax else { return false }
            let before = file.asked
            file.askForMore()
            bytes += file.asked - before
        }
        return true
    }

    private mutating func open(_ index: Int) {
        opened = index + 1
        guard case .entry(let entry) = known[index].step, let attributes = entry.entry?.attributes,
            attributes.isRegular,
            readsEachName || attributes.nlink < 2 || linked.insert(attributes.ino).inserted
        else { return }
        known[index].file = walk.expect(attributes.ino, caller)
    }
}

extension SpaceWalk {
    /// The entries of a directory to export.
    func entries(of ino: UInt64, versions: Bool) throws(FileError) -> [DirectoryEntry] {
        versions ? try entriesWithVersions(of: ino) : try entries(of: ino)
    }
}

/// A directory of the library that is being exported.
struct EnteredDirectory {
    let path: HostPath
    /// The path in the library, for messages; empty at the top.
    let shown: HostPath
    /// The names that an interrupted run, or somebody else, has left in it.
    let present: Set<Name>
    /// Nil at the top.
    var attributes: Attributes?

    /// The paths of a name in it.
    func paths(of name: Name) -> (path: HostPath, shown: HostPath) {
        (path.appending(name), shown.bytes.isEmpty ? HostPath(name.bytes) : shown.appending(name))
    }
}
