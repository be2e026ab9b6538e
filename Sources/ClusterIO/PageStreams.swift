/// Windows of objects in which pages were read lately. Pages of one table lie near each other, mostly in order; so once
/// a second page of a window is read, or one of the window after it, the rest of it and the next ones will be.
struct PageStreams {
    private struct Window: Equatable {
        let object: String
        let number: UInt64
    }

    /// The newest is the last.
    private var windows: [Window] = []

    static let windowBytes: UInt64 = 128 << 10
    /// Windows that are read ahead of a page's own.
    private static let aheadCount: UInt64 = 2
    /// Tables that are read at the same time, a page of each in turn.
    private static let countMax = 16

    /// Notes that a page is read. Returns the windows to read now; nil if it is not known to be one of several.
    mutating func read(_ object: String, _ offset: UInt64) -> [Range<UInt64>]? {
        let window = Window(object: object, number: offset / Self.windowBytes)
        let isOneOfSeveral = windows.contains {
            $0.object == object && ($0.number == window.number || $0.number + 1 == window.number)
        }
        windows.removeAll { $0 == window }
        windows.append(window)
        if windows.count > Self.countMax { windows.removeFirst() }
        guard isOneOfSeveral else { return nil }
        return (window.number...window.number + Self.aheadCount).map {
            $0 * Self.windowBytes..<($0 + 1) * Self.windowBytes
        }
    }

    /// Notes that bytes are written: where pages are read and written in turn, windows would be read again and again.
    mutating func wrote(_ object: String, _ range: Range<UInt64>) {
        windows.removeAll {
            $0.object == object && $0.number * Self.windowBytes < range.upperBound
                && range.lowerBound < ($0.number + 1) * Self.windowBytes
        }
    }
}
