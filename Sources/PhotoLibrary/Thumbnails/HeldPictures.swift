/// LRU cache of pictures in memory.
struct HeldPictures {
    package let bytesMax: Int
    private var pictures: [PictureKey: (bytes: [UInt8], use: UInt64)] = [:]
    private var byteCount = 0
    private var useCount: UInt64 = 0

    package init(bytesMax: Int) { self.bytesMax = bytesMax }

    package mutating func find(_ key: PictureKey) -> [UInt8]? {
        guard let found = pictures[key] else { return nil }
        useCount += 1
        pictures[key]?.use = useCount
        return found.bytes
    }

    package func first(where isSuitable: (PictureKey) -> Bool) -> [UInt8]? {
        pictures.first { isSuitable($0.key) }?.value.bytes
    }

    /// Adds a picture, in place of the least recently used ones. A picture larger than half of the cache is not added.
    package mutating func add(_ key: PictureKey, _ bytes: [UInt8]) {
        guard bytes.count <= bytesMax / 2 else { return }
        if let old = pictures.removeValue(forKey: key) { byteCount -= old.bytes.count + Self.overhead }
        useCount += 1
        pictures[key] = (bytes, useCount)
        byteCount += bytes.count + Self.overhead
        if byteCount > bytesMax { dropOldest() }
    }

    /// Bytes that a picture costs beside its own; bounds the number of small ones.
    private static let overhead = 512

    /// Evicts until a quarter is free, so that sorting is rare.
    private mutating func dropOldest() {
        for (key, picture) in pictures.sorted(by: { $0.value.use < $1.value.use }) {
            guard byteCount > bytesMax / 4 * 3 else { return }
            pictures[key] = nil
            byteCount -= picture.bytes.count + Self.overhead
        }
    }
}
