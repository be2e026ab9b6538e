/// The sizes of pictures that the kernel was told last. Remembers between `picturesMax` and twice as many.
struct ToldSizes: Sendable {
    private let picturesMax: Int
    private var newer: [UInt64: UInt64] = [:]
    private var older: [UInt64: UInt64] = [:]

    init(picturesMax: Int) { self.picturesMax = picturesMax }

    /// The size of a virtual inode, in bytes; nil if it is not known any more.
    subscript(ino: UInt64) -> UInt64? { newer[ino] ?? older[ino] }

    mutating func note(_ size: UInt64, of ino: UInt64) {
        if newer.count >= picturesMax && newer[ino] == nil { (older, newer) = (newer, [:]) }
        newer[ino] = size
    }
}
