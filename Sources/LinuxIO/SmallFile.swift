import Glibc

/// All bytes of a regular file of at most `bytesMax` bytes. Nil for any other, and if it cannot be read.
public func contents(ofFile path: String, bytesMax: Int) -> [UInt8]? {
    var found = stat()
    // Checked first: reading a pipe could last for ever.
    guard stat(path, &found) == 0, found.st_mode & mode_t(S_IFMT) == mode_t(S_IFREG),
        found.st_size <= bytesMax
    else { return nil }
    return contents(ofFile: path).flatMap { $0.count <= bytesMax ? $0 : nil }
}

/// All bytes of a small file, such as one below /proc, whose size fstat(2) does not report. Nil if it cannot be read.
///
/// - Parameter bytesWanted: as many of the first bytes as the caller needs; below /proc the kernel then writes no more
///   than their lines.
public func contents(ofFile path: String, bytesWanted: Int = .max) -> [UInt8]? {
    let calls = LinuxCalls.shared
    do throws(Errno) {
        let descriptor = try calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { calls.close(descriptor) }
        // Below /proc, where hundreds of files are read at a time, read(2) returns a page at most.
        var (result, piece) = ([UInt8](), [UInt8](repeating: 0, count: min(4096, bytesWanted)))
        while true {
            // Not pread(2): files below /proc may only be readable in order.
            let count = try retryingInterrupts { read(descriptor, &piece, piece.count) }
            result += piece[..<count]
            if count == 0 || result.count >= bytesWanted { return result }
            if result.count >= 4 * piece.count { piece = [UInt8](repeating: 0, count: result.count) }
        }
    } catch {
        return nil
    }
}
