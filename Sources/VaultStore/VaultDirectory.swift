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
    static let spacesName = "spaces"

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
            calls.close(
                try calls.open(directory, spacesName, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, mode: 0))
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

    func openSpace(_ index: Int) throws(VaultError) -> Int32 {
        do throws(Errno) {
            let path = "\(Self.spacesName)/\(index)"
            return try calls.open(directory, path, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW, mode: 0)
        } catch {
            if error == .noEntry { throw .damaged("a directory of segments is missing") }
            throw .system(error, "cannot open the vault's segments")
        }
    }

    /// The size of a segment, nil where there is no such file.
    func segmentBytes(space: Int, number: Int) -> UInt64? {
        do throws(Errno) {
            let path = "\(Self.spacesName)/\(space)/\(SegmentFiles.name(number))"
            let descriptor = try calls.openRegular(directory, path, flags: O_RDONLY, mode: 0)
            defer { calls.close(descriptor) }
            return try calls.status(descriptor).size
        } catch {
            return nil
        }
    }

    /// How many segments, from 0 on without a gap, every given space has whole. Of one that grows the names tell. Else
    /// looks from `start` on, which is known to be there, in ever longer steps and then by halves: few calls for any
    /// number.
    func segmentCount(spaces: Range<Int>, segmentBytes: UInt64, from start: Int, isGrowing: Bool) -> Int {
        if isGrowing { return spaces.map { grownCount(space: $0) }.min() ?? 0 }
        func exists(_ number: Int) -> Bool {
            number < Geometry.segmentsMax
                && spaces.allSatisfy { self.segmentBytes(space: $0, number: number) == segmentBytes }
        }
        var step = 1
        var known = start
        while exists(known + step - 1) {
            known += step
            step *= 2
        }
        while step > 1 {
            step /= 2
            if exists(known + step - 1) { known += step }
        }
        return known
    }

    /// How many segments a space that grows has without a gap. What is no file at its end is no segment.
    private func grownCount(space: Int) -> Int {
        let numbers = (try? listing(space: space).numbers) ?? []
        var count = zip(numbers, 0...).prefix { $0 == $1 }.count
        while count > 0, segmentBytes(space: space, number: count - 1) == nil { count -= 1 }
        return count
    }
}

/// How many segments a space has now; asked anew when `grow` may have added some.
final class SegmentCounter: @unchecked Sendable {
    private let vault: VaultDirectory
    private let spaces: Range<Int>
    private let segmentBytes: UInt64
    private let isGrowing: Bool
    private let lock = Lock()
    private var known = 0

    init(vault: VaultDirectory, spaces: Range<Int>, segmentBytes: UInt64, isGrowing: Bool) {
        self.vault = vault
        self.spaces = spaces
        self.segmentBytes = segmentBytes
        self.isGrowing = isGrowing
    }

    func now() -> Int {
        lock.withLock {
            known = vault.segmentCount(
                spaces: spaces, segmentBytes: segmentBytes, from: known, isGrowing: isGrowing)
            return known
        }
    }
}
