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
public func contents(ofFile path: String) -> [UInt8]? {
    let calls = LinuxCalls.shared
    do throws(Errno) {
        let descriptor = try calls.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { calls.close(descriptor) }
        var (result, piece) = ([UInt8](), [UInt8](repeating: 0, count: 65_536))
        while true {
            // Not pread(2): files below /proc may only be readable in order.
            let count = try retryingInterrupts { read(descriptor, &piece, piece.count) }
            if count == 0 { return result }
            result += piece[..<count]
        }
    } catch {
        return nil
    }
}
