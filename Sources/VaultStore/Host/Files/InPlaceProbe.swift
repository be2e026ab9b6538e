import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// A file by which a vault's directory shows whether files there can be changed in place. Some hosts accept only whole
/// files, written once and from the beginning (rclone without a cache, object stores as directories).
struct InPlaceProbe {
    let calls: any FileSystemCalls
    let directory: Int32

    private static let name = "obscura.probe"
    private static let page = Geometry.pageBytes

    /// Writes, overwrites, syncs and reads back past the page cache. Throws `unsuitableHost` if the bytes are others.
    /// Errors such as a lack of room are left for what follows. The file is removed again.
    func run() throws(VaultError) {
        defer { try? calls.unlink(directory, Self.name) }
        let isSuitable: Bool
        do throws(Errno) { isSuitable = try isKept() } catch {
            isSuitable = !Self.refusals.contains(error.rawValue)
        }
        if !isSuitable { throw .unsuitableHost }
    }

    /// As `run`, in a directory where perhaps no file can be made: then what follows finds the reason. A second look
    /// decides: on hosts whose locks do not reach other computers another mount may have the same file.
    func isPassed() -> Bool {
        for _ in 0..<2 {
            do throws(Errno) { calls.close(try openToChange()) } catch { return true }
            do throws(VaultError) {
                try run()
                return true
            } catch {}
        }
        return false
    }

    /// Answers of such hosts to a read or a second write of a file that is open for both.
    static let refusals: Set<Int32> = [EBADF, EPERM, ESPIPE, ENOSYS, EOPNOTSUPP]

    private func isKept() throws(Errno) -> Bool {
        var content = randomPages(3)
        try changeTwice(&content)
        let file = try calls.openRegular(directory, Self.name, flags: O_RDONLY, mode: 0)
        defer { calls.close(file) }
        calls.forget(file, offset: 0, length: UInt64(content.count))
        var found = [UInt8](repeating: 0, count: content.count)
        return try calls.readFully(file, at: 0, into: &found) == found.count && found == content
    }

    private func changeTwice(_ content: inout [UInt8]) throws(Errno) {
        let file = try openToChange()
        defer { calls.close(file) }
        try calls.writeFully(file, content, at: 0)
        try calls.sync(file)
        let changed = randomPages(1)
        try calls.writeFully(file, changed, at: UInt64(Self.page))
        content.replaceSubrange(Self.page..<2 * Self.page, with: changed)
        try calls.sync(file)
    }

    private func openToChange() throws(Errno) -> Int32 {
        let flags = O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW
        return try calls.openRegular(directory, Self.name, flags: flags, mode: 0o600)
    }

    private func randomPages(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count * Self.page)
        bytes.withUnsafeMutableBytes { fillRandom($0) }
        return bytes
    }
}
