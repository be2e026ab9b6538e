/// Parts of objects that are kept, the oldest first, up to a number of bytes. No two have a byte in common.
struct RecentParts<Content> {
    struct Part {
        let object: String
        let range: Range<UInt64>
        let content: Content
    }

    /// A piece of a range: where it is in a part; nil if no part has it.
    struct Piece {
        let range: Range<UInt64>
        let part: Part?
    }

    private let bytesMax: Int
    private let countMax: Int
    private(set) var parts: [Part] = []
    private var bytes = 0

    init(bytesMax: Int, countMax: Int) { (self.bytesMax, self.countMax) = (bytesMax, countMax) }

    /// All pieces of a range, in order.
    func pieces(of object: String, _ range: Range<UInt64>) -> [Piece] {
        let found = parts.filter { $0.range.overlaps(range) && $0.object == object }
            .sorted { $0.range.lowerBound < $1.range.lowerBound }
        var pieces: [Piece] = []
        var position = range.lowerBound
        for part in found {
            let here = part.range.clamped(to: range)
            if position < here.lowerBound {
                pieces.append(Piece(range: position..<here.lowerBound, part: nil))
            }
            pieces.append(Piece(range: here, part: part))
            position = here.upperBound
        }
        if position < range.upperBound { pieces.append(Piece(range: position..<range.upperBound, part: nil)) }
        return pieces
    }

    /// The part that has all of a range; nil if none has.
    func part(with object: String, _ range: Range<UInt64>) -> Part? {
        parts.last {
            $0.range.lowerBound <= range.lowerBound && range.upperBound <= $0.range.upperBound
                && $0.object == object
        }
    }

    /// Keeps a part, instead of all that has some of its bytes. Returns what is no longer kept.
    mutating func insert(_ part: Part) -> [Part] {
        var removed = remove(part.object, part.range)
        parts.append(part)
        bytes += part.range.count
        let surplus = parts.indices.dropLast().first { index in
            bytes - parts[..<index].reduce(0) { $0 + $1.range.count } <= bytesMax
                && parts.count - index <= countMax
        }
        let oldest = parts.prefix(surplus ?? parts.count - 1)
        parts.removeFirst(oldest.count)
        removed += oldest
        bytes -= oldest.reduce(0) { $0 + $1.range.count }
        return removed
    }

    /// Removes all parts that have bytes of a range, and returns them.
    mutating func remove(_ object: String, _ range: Range<UInt64>) -> [Part] {
        let removed = parts.filter { $0.range.overlaps(range) && $0.object == object }
        guard !removed.isEmpty else { return [] }
        parts.removeAll { $0.range.overlaps(range) && $0.object == object }
        bytes -= removed.reduce(0) { $0 + $1.range.count }
        return removed
    }
}
