/// Why the bytes of a segment are not available.
public enum SegmentFault: Sendable, Hashable {
    case missing(Int)
    /// The file ends before bytes in use.
    case short(Int)

    public var segment: Int {
        switch self {
        case .missing(let number), .short(let number): number
        }
    }

    /// Nil for an error that is not about a segment's file.
    init?(_ error: StoreError) {
        switch error {
        case .segmentMissing(let number): self = .missing(number)
        case .segmentShort(let number): self = .short(number)
        case .noRoom, .damaged, .io, .readOnly, .newer: return nil
        }
    }

    /// `segment 000012`.
    public var subject: String { "segment \(SegmentLayout.name(segment).dropLast(4))" }

    /// `missing`.
    public var cause: String {
        switch self {
        case .missing: "missing"
        case .short: "truncated"
        }
    }

    /// `segment 000012 is missing`.
    public var text: String { "\(subject) is \(cause)" }
}
