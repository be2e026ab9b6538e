import FileRequests
import Glibc
import HostFiles
import LinuxIO
import PhotoLibrary

/// Sources to remove once their bytes are safe: on disk, and read back from there equal.
final class Removals {
    private static let countMax = 64
    private static let bytesMax: UInt64 = 256 << 20

    private struct Entry {
        var path: HostPath
        var identity: FileIdentity
        var modified: Timestamp
        /// The file of the library with its bytes.
        var ino: UInt64

        init(_ source: SourceFile, _ ino: UInt64) {
            path = source.path
            identity = source.status.identity
            modified = source.modified
            self.ino = ino
        }
    }

    private let library: Library
    private let isCancelled: () -> Bool
    private var entries: [Entry] = []
    /// Kept until their directory is done: a raw file and its JPEG share one.
    private var sidecars: [Entry] = []
    private var byteCount: UInt64 = 0
    /// Symbolic links, FIFOs and the like, which have no bytes to compare.
    private var specials: [(path: HostPath, identity: FileIdentity)] = []

    init(_ library: Library, unless isCancelled: @escaping () -> Bool) {
        (self.library, self.isCancelled) = (library, isCancelled)
    }

    func add(_ source: SourceFile, _ ino: UInt64) {
        entries.append(Entry(source, ino))
        byteCount = sizeSum(byteCount, source.byteCount)
    }

    func add(sidecar: SourceFile, _ ino: UInt64) {
        if !sidecars.contains(where: { $0.path == sidecar.path }) { sidecars.append(Entry(sidecar, ino)) }
    }

    /// A special file that was restored as it is.
    func add(special path: HostPath, _ status: stat) { specials.append((path, status.identity)) }

    /// - Parameter isDirectoryDone: no more photos follow to which these sidecars might belong.
    func flushIfDue(_ report: inout ImportReport, isDirectoryDone: Bool) throws(FileError) {
        if isDirectoryDone, !sidecars.isEmpty {
            try flush(&report)
        } else if entries.count >= Self.countMax || byteCount >= Self.bytesMax {
            try flush(&entries, &report)
        }
    }

    /// Makes the library durable and removes the sources whose bytes it then proves to have.
    func flush(_ report: inout ImportReport) throws(FileError) {
        entries += sidecars
        sidecars = []
        try flush(&entries, &report)
        guard !specials.isEmpty else { return }
        try library.makeDurable()
        for (path, identity) in specials {
            do throws(Errno) {
                guard try path.status().identity == identity else { continue }
                guard unsafe path.withCString({ unsafe unlink($0) }) == 0 else { throw .last }
                report.removed += 1
            } catch { report.addUnremoved(path, "\(error)") }
        }
        specials = []
    }

    private func flush(_ entries: inout [Entry], _ report: inout ImportReport) throws(FileError) {
        guard !entries.isEmpty else { return }
        try library.makeDurable()
        for entry in entries { remove(entry, &report) }
        entries = []
        byteCount = 0
    }

    private func remove(_ entry: Entry, _ report: inout ImportReport) {
        do throws(Errno) {
            // Every byte is read: data that the host wrongly reports as a hole must not be lost.
            let source = try SourceFile(entry.path, believesHoles: false)
            let isTheSame =
                source.status.identity == entry.identity
                && source.modified == entry.modified
            let isHeld =
                isTheSame && (try? library.search.holds(entry.ino, source, unless: isCancelled)) == true
            if isCancelled() { return }
            guard isHeld else {
                report.addUnremoved(entry.path, "it has changed since it was imported, and is kept")
                return
            }
            // The name must still be of the file that was read, unchanged.
            guard source.isSame(try entry.path.status()) else {
                report.addUnremoved(entry.path, "it changed meanwhile, and is kept")
                return
            }
            guard unsafe entry.path.withCString({ unsafe unlink($0) }) == 0 else { throw .last }
            report.removed += 1
        } catch {
            report.addUnremoved(entry.path, "\(error)")
        }
    }
}
