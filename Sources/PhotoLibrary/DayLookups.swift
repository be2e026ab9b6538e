/// The file that each thread found last by a name in a day: a link that the same thread makes of it next is a
/// membership. The newest threads are remembered, `threadsMax` at least and twice as many at most.
struct DayLookups {
    private let threadsMax: Int
    private var newer: [Int32: UInt64] = [:]
    private var older: [Int32: UInt64] = [:]

    init(threadsMax: Int) { self.threadsMax = threadsMax }

    /// The inode that the thread found last in a day, unless it found the same one elsewhere since.
    subscript(thread: Int32) -> UInt64? { newer[thread] ?? older[thread] }

    /// Notes by which kind of name a thread found an inode.
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
