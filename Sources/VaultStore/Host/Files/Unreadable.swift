import LinuxIO
import VaultFormat

/// Bytes of a vault's file that its disk cannot read: EIO.
public struct UnreadablePlace: Sendable, Hashable {
    /// Path from the vault's directory.
    public var path: String
    /// First byte in the file.
    public var offset: UInt64
    public var bytes: UInt64
}

extension FileSystemCalls {
    /// As `readFully`, but unreadable pages become zeros. Returns their ranges in `bytes`, in whole pages.
    func readAround(
        _ descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> (count: Int, unreadable: [Range<Int>]) {
        do throws(Errno) {
            return (try readFully(descriptor, bytes, at: offset), [])
        } catch  where error == .inputOutput {}
        var (end, unreadable) = (0, [Range<Int>]())
        for start in stride(from: 0, to: bytes.count, by: Geometry.pageBytes) {
            let page = bytes.slice(start, min(Geometry.pageBytes, bytes.count - start))
            do throws(Errno) {
                let count = try readFully(descriptor, page, at: offset + UInt64(start))
                end = start + count
                if count < page.count { break }
            } catch  where error == .inputOutput {
                page.zero()
                end = start + page.count
                if let last = unreadable.last, last.upperBound == start {
                    unreadable[unreadable.count - 1] = last.lowerBound..<end
                } else {
                    unreadable.append(start..<end)
                }
            }
        }
        return (end, unreadable)
    }
}
