import CShims
import Encodings
import FileRequests
import Glibc
import HostFiles
import Importing
import LinuxIO
import ReceiveProtocol
import VaultCrypto

/// The directory of an export.
///
/// As long as the export is not complete, it holds a marker. Only with it does a later export go on in a directory that
/// is not empty, and only one of the same space; without the space's password the marker tells nothing. All other files
/// here are written under a temporary name, synced and renamed: a file under its own name is whole, also after a power
/// cut.
final class ExportTarget {
    /// Nothing at the top of a library can have a name that begins so.
    private static let temporaryPrefix = ".obscura-export-"
    /// That of earlier versions.
    private static let formerTemporary: Name = ".obscura-export"
    private static let markerText =
        "An export into this directory is not complete: run obscura export again.\n"
    private static let saltBytes = 16
    private static let markBytes = 32

    /// The directory's path.
    let root: HostPath
    /// Whether an interrupted export goes on.
    let isResumed: Bool
    /// Of the directory, and of the marker, which is locked.
    private let directory: Int32
    private let marker: Int32

    /// Whether an export may go on at a path: false if nothing is there. Throws if something else is there, with which
    /// the export must not mix.
    static func isUnfinished(_ root: HostPath, named directory: String) throws(Failure) -> Bool {
        let names: [Name]
        do throws(Errno) { names = try root.list() } catch {
            if error == .noEntry { return false }
            throw Failure(directory, "looking into it", error)
        }
        if names.isEmpty { return false }
        if names.contains(ExportMarker.name), ExportMarker.isIn(root) { return true }
        throw Failure(.failed, directory, "the directory is not empty: name a new or an empty one")
    }

    /// Makes the directory if it is missing, and the marker, and locks it.
    ///
    /// - Parameters:
    ///   - name: as the user named it.
    ///   - mark: the mark of the space for a salt.
    init(_ root: HostPath, named name: String, mark: ([UInt8]) -> [UInt8]) throws(Failure) {
        self.root = root
        let isMade = root.withCString { mkdir($0, 0o700) } == 0
        if !isMade, errno != EEXIST { throw Failure(name, "making the directory", .last) }
        let isResumed = try Self.isUnfinished(root, named: name)
        self.isResumed = isResumed
        do throws(Errno) {
            directory = try root.open(O_RDONLY | O_DIRECTORY)
        } catch { throw Failure(name, "opening it", error) }
        do throws(Errno) {
            let flags = O_RDWR | O_NOFOLLOW | (isResumed ? 0 : O_CREAT | O_EXCL)
            marker = try root.appending(ExportMarker.name).open(flags, mode: 0o600)
        } catch {
            close(directory)
            throw Failure(name, "marking it as not complete", error)
        }
        // A disk without locks gives another error, which does not matter.
        if flock(marker, LOCK_EX | LOCK_NB) != 0, errno == EWOULDBLOCK {
            throw Failure(.inUse, name, "another export into it is running: wait for its end")
        }
        if isResumed {
            try compareMark(name, mark)
            removeTemporaries()
        } else {
            var salt = [UInt8](repeating: 0, count: Self.saltBytes)
            salt.withUnsafeMutableBytes { fillRandom($0) }
            try writeMarker(name, hexText(salt + mark(salt)))
        }
    }

    deinit {
        close(marker)
        close(directory)
    }

    /// Two spaces in one directory would look like one complete library.
    private func compareMark(_ name: String, _ mark: ([UInt8]) -> [UInt8]) throws(Failure) {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = max(0, pread(marker, &bytes, bytes.count, 0))
        // A power cut may have left a marker without a text, and then nothing beside it.
        let lines = bytes[..<count].split(separator: UInt8(ascii: "\n"))
        guard lines.count > 1, let found = hexBytes(lines[1], count: Self.saltBytes + Self.markBytes),
            mark(Array(found.prefix(Self.saltBytes))) != Array(found.dropFirst(Self.saltBytes))
        else { return }
        throw Failure(
            .failed, name, "an export of another space was interrupted here: name another directory")
    }

    /// The marker must be there before any file is.
    private func writeMarker(_ name: String, _ mark: String) throws(Failure) {
        do throws(Errno) {
            let text = Array((Self.markerText + mark + "\n").utf8)
            guard write(marker, text, text.count) == text.count else { throw .last }
            guard fsync(marker) == 0 else { throw .last }
            // Some hosts cannot sync a directory.
            _ = fsync(directory)
        } catch {
            removeMarker()
            throw Failure(name, "marking it as not complete", error)
        }
    }

    /// Syncs everything that was written.
    func sync() throws(Errno) { guard obscura_sync_filesystem(directory) == 0 else { throw .last } }

    /// Ends the export. All is synced.
    func removeMarker() {
        _ = root.appending(ExportMarker.name).withCString { unlink($0) }
        _ = fsync(directory)
    }

    // MARK: Files

    /// The path of a temporary file. The number is free again once that has its own name.
    func temporary(_ number: Int) -> HostPath { root.appending("\(Self.temporaryPrefix)\(number)") }

    /// Removes the temporary files of an interrupted run.
    private func removeTemporaries() {
        for name in (try? root.list()) ?? [] {
            let text = name.description
            let isNumbered =
                text.hasPrefix(Self.temporaryPrefix)
                && parseNumber(String(text.dropFirst(Self.temporaryPrefix.count)), in: 0...UInt64(Int.max))
                    != nil
            guard isNumbered || name == Self.formerTemporary else { continue }
            let path = root.appending(name)
            if (try? path.status())?.isRegular == true { _ = path.withCString { unlink($0) } }
        }
    }

    /// Gives the file at a path another name, as `cp --backup` does, and returns its new path: `NAME~`, `NAME.~2~`.
    func moveAside(_ path: HostPath) throws(Errno) -> HostPath {
        var number = 0
        while true {
            number += 1
            let suffix = number == 1 ? "~" : ".~\(number)~"
            let other = HostPath(path.bytes + Array(suffix.utf8))
            do throws(Errno) { _ = try other.status() } catch .noEntry {
                guard path.withCString({ old in other.withCString { rename(old, $0) } }) == 0 else {
                    throw .last
                }
                return other
            }
        }
    }
}

/// Whether `found` is `time` as a disk keeps it that is less exact: ext3, FAT, exFAT, NTFS.
func isKept(_ time: Timestamp, as found: Timestamp) -> Bool {
    if found == time { return true }
    // FAT keeps even seconds.
    if found.nanoseconds == 0, found.seconds & 1 == 0, found.seconds == time.seconds & ~1 { return true }
    guard found.seconds == time.seconds else { return false }
    let granularities: [UInt32] = [100, 1000, 10_000_000, 1_000_000_000]
    return granularities.contains { found.nanoseconds == time.nanoseconds / $0 * $0 }
}
