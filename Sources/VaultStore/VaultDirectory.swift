import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// The files of a vault, by descriptors, so that nothing that happens to paths meanwhile matters.
final class VaultDirectory: Sendable {
    let calls: any FileSystemCalls
    let directory: Int32
    let header: Int32
    private let ownsHeader: Bool

    static let headerName = "obscura.vault"

    /// Opens a vault's directory and header; read-only where the host allows no more.
    static func open(_ path: String, calls: any FileSystemCalls) throws(VaultError) -> VaultDirectory {
        let directory = try openDirectory(path, calls)
        do throws(Errno) {
            let header = try openHeader(directory, calls)
            return VaultDirectory(calls: calls, directory: directory, header: header, ownsHeader: true)
        } catch {
            calls.close(directory)
            if error == .noEntry { throw .notAVault(path) }
            throw .system(error, "cannot open \(path)/\(headerName)")
        }
    }

    /// Opens a vault whose header is open already, locked by whoever handed it over.
    static func adopt(_ path: String, header: Int32, calls: any FileSystemCalls) throws(VaultError)
        -> VaultDirectory
    {
        VaultDirectory(
            calls: calls, directory: try openDirectory(path, calls), header: header, ownsHeader: true)
    }

    /// Opens a vault whose header may be gone: then one without a valid copy is made.
    ///
    /// - Returns: also whether the header's file was made by this.
    static func openForRestoring(
        _ path: String, calls: any FileSystemCalls
    ) throws(VaultError) -> (vault: VaultDirectory, isMade: Bool) {
        let directory = try openDirectory(path, calls)
        do throws(Errno) {
            // What has no segments is no vault, and nothing is made in it.
            try requireSegments(directory, calls)
            var (header, isMade) = (Int32(-1), false)
            do throws(Errno) {
                header = try calls.openRegular(directory, headerName, flags: O_RDWR, mode: 0)
            } catch  where error == .noEntry {
                let flags = O_RDWR | O_CREAT | O_EXCL
                header = try calls.openRegular(directory, headerName, flags: flags, mode: 0o600)
                isMade = true
            }
            return (
                VaultDirectory(calls: calls, directory: directory, header: header, ownsHeader: true), isMade
            )
        } catch {
            calls.close(directory)
            if error == .noEntry || error == .notDirectory { throw .notAVault(path) }
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot open \(path)/\(headerName)")
        }
    }

    /// Throws `noEntry` where there is neither what a vault of one space has nor what one of several has.
    private static func requireSegments(_ directory: Int32, _ calls: any FileSystemCalls) throws(Errno) {
        do throws(Errno) {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
            calls.close(try calls.open(directory, SegmentLayout.directoryName, flags: flags, mode: 0))
        } catch {
            calls.close(
                try calls.openRegular(directory, SegmentLayout.sharedName, flags: O_RDONLY, mode: 0))
        }
    }

    private static func openDirectory(_ path: String, _ calls: any FileSystemCalls) throws(VaultError)
        -> Int32
    {
        do throws(Errno) {
            return try calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        } catch {
            if error == .noEntry || error == .notDirectory { throw .notAVault(path) }
            throw .system(error, "cannot open \(path)")
        }
    }

    private static func openHeader(_ directory: Int32, _ calls: any FileSystemCalls) throws(Errno) -> Int32 {
        do throws(Errno) {
            return try calls.openRegular(directory, headerName, flags: O_RDWR, mode: 0)
        } catch  where error.refusesWriting {
            return try calls.openRegular(directory, headerName, flags: O_RDONLY, mode: 0)
        }
    }

    /// Throws `notWritable` where the host lets the header only be read.
    func requireWritableHeader() throws(VaultError) {
        do throws(Errno) {
            let flags = O_RDWR | O_NOFOLLOW
            calls.close(try calls.open(directory, Self.headerName, flags: flags, mode: 0))
        } catch {
            if error.refusesWriting { throw .notWritable(.io(error)) }
            throw .system(error, "cannot open \(Self.headerName)")
        }
    }

    init(calls: any FileSystemCalls, directory: Int32, header: Int32, ownsHeader: Bool) {
        self.calls = calls
        self.directory = directory
        self.header = header
        self.ownsHeader = ownsHeader
    }

    deinit {
        calls.close(directory)
        if ownsHeader { calls.close(header) }
    }

    /// Takes the vault for this process alone; the lock goes with the descriptor.
    func lockHeader() throws(VaultError) {
        do throws(Errno) { try calls.lock(header) } catch {
            if error == .wouldBlock { throw .inUse }
            throw .system(error, "cannot lock the vault")
        }
    }

    /// Opens the directory that the segments' files are in.
    func openSegments(_ layout: SegmentLayout) throws(VaultError) -> Int32 {
        do throws(Errno) {
            let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
            return try calls.open(directory, layout.directoryPath, flags: flags, mode: 0)
        } catch {
            if error == .noEntry { throw .damaged("the directory of segments is missing") }
            throw .system(error, "cannot open the vault's segments")
        }
    }

    /// The size in bytes of a regular file, nil where there is none.
    func fileBytes(_ path: String) -> UInt64? {
        do throws(Errno) {
            let descriptor = try calls.openRegular(directory, path, flags: O_RDONLY, mode: 0)
            defer { calls.close(descriptor) }
            return try calls.status(descriptor).size
        } catch {
            return nil
        }
    }

    /// How many segments, from 0 on without a gap, every space has whole.
    func segmentCount(_ layout: SegmentLayout) -> Int {
        if layout.isShared { return layout.rows(ofFile: fileBytes(SegmentLayout.sharedName) ?? 0) }
        // What is no file at the end of a vault that grows is no segment.
        let numbers = (try? listing(layout).numbers) ?? []
        var count = zip(numbers, 0...).prefix { $0 == $1 }.count
        while count > 0, fileBytes(layout.path(SegmentPlace(space: 0, number: count - 1))) == nil {
            count -= 1
        }
        return count
    }
}
