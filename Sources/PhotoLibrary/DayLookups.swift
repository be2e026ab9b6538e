/// For each thread, the file that it last looked up in a day: if the same thread then links that file, the link is a
/// membership. Remembers between `threadsMax` and twice as many of the newest threads.
struct DayLookups {
    private let threadsMax: Int
    private var newer: [Int32: UInt64] = [:]
    private var older: [Int32: UInt64] = [:]

    init(threadsMax: Int) { self.threadsMax = threadsMax }

    /// The inode that the thread last looked up in a day, unless it has looked it up elsewhere since.
    subscript(thread: Int32) -> UInt64? { newer[thread] ?? older[thread] }

    /// Notes a lookup of an inode, and whether it was in a day.
    mutating func note(_ ino: UInt64, inDay isInDay: Bool, by thread: Int32) {
        if isInDay {
            if newer.count >= threadsMax && newer[thread] == nil {
                older = newer
                newer = [:]
            }
            newer[thread] = ino
        } else if self[thread] == ino {
            newer[thread] = nil
            older[thread] = nil
        }
    }
}
