import Glibc

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
