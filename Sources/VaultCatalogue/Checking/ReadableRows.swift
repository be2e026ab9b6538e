import FileRequests
import VaultFormat

/// Reading a table of which pages are damaged.
public struct ReadableRows {
    private let connection: Connection

    init(_ connection: Connection) { self.connection = connection }

    /// All inodes, or those with one of these contents. A page that cannot be read hides only its own rows.
    public func inodes(of contents: Set<UInt64>? = nil) -> [UInt64] {
        var found: [UInt64] = []
        var last: UInt64 = 0
        let rows = connection.prepare("SELECT ino, content FROM inode WHERE ino>? ORDER BY ino")
        while true {
            let start = last
            rows.bind(1, start)
            do throws(FileError) {
                try rows.each { row in
                    // In pages that refer to each other numbers may descend.
                    let ino = row.count(0, above: last)
                    last = max(last, ino)
                    if contents?.contains(row.unsigned(1)) ?? true { found.append(ino) }
                    return true
                }
                return found
            } catch {
                guard let next = firstReadable(after: last), next - 1 > start else { return found }
                last = next - 1
            }
        }
    }

    /// The least number of an inode, above `last`, whose row would lie in a page that can be read.
    private func firstReadable(after last: UInt64) -> UInt64? {
        let row = connection.prepare("SELECT ino FROM inode WHERE ino>=? ORDER BY ino LIMIT 1")
        func isReadable(_ ino: UInt64) -> Bool {
            row.bind(1, ino)
            return (try? row.all { $0.count(0) }) != nil
        }
        var step: UInt64 = 1
        while !isReadable(last + step) {
            step *= 2
            guard last + step <= Geometry.idMax else { return nil }
        }
        var (hidden, readable) = (last + step / 2, last + step)
        while readable - hidden > 1 {
            let middle = hidden + (readable - hidden) / 2
            if isReadable(middle) { readable = middle } else { hidden = middle }
        }
        return readable
    }
}
