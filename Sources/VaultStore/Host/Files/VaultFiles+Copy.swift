import Glibc
import LinuxIO

/// The directory of a copy.
extension VaultFiles {
    /// Opens a copy, or begins one with an empty header if there is none. Throws `notEmpty` if the directory has other
    /// files.
    static func openForCopy(_ path: String, calls: any FileSystemCalls) throws(VaultError) -> VaultFiles {
        let directory = try openCopyDirectory(path, calls)
        VaultFiles.dropTraces(in: directory, calls)
        do throws(VaultError) {
            let file = try openCopyHeader(directory, path, calls)
            return VaultFiles(calls: calls, directory: directory, header: file, ownsHeader: true)
        } catch {
            calls.close(directory)
            throw error
        }
    }

    private static func openCopyDirectory(
        _ path: String, _ calls: any FileSystemCalls
    ) throws(VaultError) -> Int32 {
        do throws(Errno) {
            do throws(Errno) { try calls.makeDirectory(AT_FDCWD, path, mode: 0o700) } catch
                where error == .exists
            {}
            return try calls.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
        } catch { throw .system(error, "cannot make \(path)") }
    }

    /// Opens the copy's header; creates an empty one if the directory is empty.
    private static func openCopyHeader(
        _ directory: Int32, _ path: String, _ calls: any FileSystemCalls
    ) throws(VaultError) -> Int32 {
        do throws(Errno) {
            let isEmpty = try calls.list(directory).isEmpty
            let flags = O_RDWR | (isEmpty ? O_CREAT : 0)
            return try calls.openRegular(directory, headerName, flags: flags, mode: 0o600)
        } catch {
            throw error == .noEntry ? .notEmpty(path) : CopyTarget.failure(error)
        }
    }
}
