import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

extension FilesPlace {
    func requireFree() throws(VaultError) {
        var made = MadeFiles(calls: calls, path: path)
        defer { made.remove() }
        let directory = try made.openRoot()
        defer { calls.close(directory) }
        try InPlaceProbe(calls: calls, directory: directory).run()
    }

    func create(
        _ header: Header, segments: Int, password: SecretBytes, stretcher: any PasswordStretcher,
        coverBytes: UInt64?, progress: (_ done: UInt64, _ total: UInt64) throws(VaultError) -> Void
    ) throws(VaultError) {
        var made = MadeFiles(calls: calls, path: path)
        do throws(VaultError) {
            let directory = try made.openRoot()
            try InPlaceProbe(calls: calls, directory: directory).run()
            let layout = header.layout
            if !layout.isShared { try made.directory(SegmentLayout.directoryName) }
            // First, so that a machine without enough memory fails before hours of filling.
            let stretched = try header.stretched(password, by: stretcher)
            let total = UInt64(segments) * layout.rowBytes
            if layout.isShared {
                try VaultFiles.requireRoom(for: total, directory, calls)
                made.hasSpaces = true
                let cover = coverBytes ?? CoverAmount.ofCreation()
                try VaultFiles.fill(directory, layout, to: segments, calls, coverBytes: cover, progress)
            }
            try progress(total, total)
            try VaultFiles.syncDirectory(layout.directoryPath, directory, calls)
            let file = try made.headerFile()
            let vault = VaultFiles(calls: calls, directory: directory, header: file, ownsHeader: true)
            try Vault.writeFirstSpace(vault, header, stretched)
            vault.blurTraces(layout, isNew: true)
            try vault.syncDirectories(layout)
            try progress(total, total)
        } catch {
            made.remove()
            throw error
        }
    }
}

/// The files that `create` has made so far, to be removed if it fails.
struct MadeFiles {
    let calls: any FileSystemCalls
    let path: String
    /// Whether there may be a file of all spaces.
    var hasSpaces = false
    private var directories: [String] = []
    private var hasHeader = false
    private var madeRoot = false
    private var root: Int32 = -1

    init(calls: any FileSystemCalls, path: String) {
        self.calls = calls
        self.path = path
    }

    /// Opens the vault's directory, which must be empty; creates it if it is missing.
    mutating func openRoot() throws(VaultError) -> Int32 {
        do throws(Errno) {
            do throws(Errno) {
                try calls.makeDirectory(AT_FDCWD, path, mode: 0o700)
                madeRoot = true
            } catch  where error == .exists {}
            root = try calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
            guard try calls.list(root).isEmpty else { throw Errno(ENOTEMPTY) }
            return root
        } catch {
            if error == Errno(ENOTEMPTY) { throw .notEmpty(path) }
            throw .system(error, "cannot make \(path)")
        }
    }

    mutating func directory(_ name: String) throws(VaultError) {
        do throws(Errno) {
            try calls.makeDirectory(root, name, mode: 0o700)
            directories.append(name)
        } catch { throw .system(error, "cannot make \(path)/\(name)") }
    }

    /// Creates the header's file, full of random bytes.
    mutating func headerFile() throws(VaultError) -> Int32 {
        hasHeader = true
        do throws(Errno) {
            let flags = O_RDWR | O_CREAT | O_EXCL
            let file = try calls.openRegular(root, VaultFiles.headerName, flags: flags, mode: 0o600)
            var bytes = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
            bytes.withUnsafeMutableBytes { fillRandom($0) }
            try calls.writeFully(file, bytes, at: 0)
            return file
        } catch {
            if error.meansNoRoom { throw VaultError.noRoom }
            throw .system(error, "cannot write the header")
        }
    }

    /// Removes everything. Best effort.
    func remove() {
        defer { if madeRoot { _ = rmdir(path) } }
        guard let again = try? calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0) else {
            return
        }
        defer { calls.close(again) }
        for name in directories.reversed() {
            if let directory = try? calls.open(again, name, flags: O_RDONLY | O_DIRECTORY, mode: 0) {
                for file in (try? calls.list(directory)) ?? [] { try? calls.unlink(directory, file) }
                calls.close(directory)
            }
            _ = unlinkat(again, name, Int32(AT_REMOVEDIR))
        }
        if hasSpaces { try? calls.unlink(again, SegmentLayout.sharedName) }
        if hasHeader { try? calls.unlink(again, VaultFiles.headerName) }
    }
}
