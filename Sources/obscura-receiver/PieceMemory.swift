internal import Glibc
internal import ReceiveProtocol

/// Memory that this process shares with its parent. Bytes of uploads are collected here, a piece at a time, and the
/// parent writes them from here: they are copied once.
struct PieceMemory {
    /// The file in memory is inherited under this number.
    static let descriptor: Int32 = 5

    /// A piece that is being filled.
    struct Piece {
        let index: PieceIndex
        fileprivate(set) var count = 0
    }

    private let start: UnsafeMutableRawPointer
    private let pieceBytes: Int
    /// Used last, filled next: pages that were never used take no memory.
    private var free: [PieceIndex]

    /// Nil if the memory cannot be mapped.
    init?(_ limits: ReceiveLimits) {
        let byteCount = limits.pieces * limits.pieceBytes
        guard let start = mmap(nil, byteCount, PROT_READ | PROT_WRITE, MAP_SHARED, Self.descriptor, 0),
            start != MAP_FAILED
        else { return nil }
        close(Self.descriptor)
        (self.start, pieceBytes) = (start, limits.pieceBytes)
        free = (0..<PieceIndex(limits.pieces)).reversed()
    }

    /// Nil if all are in use.
    mutating func take() -> Piece? { free.popLast().map { Piece(index: $0) } }

    mutating func giveBack(_ index: PieceIndex) { free.append(index) }

    /// Copies into a piece what fits, and returns its number of bytes.
    func fill(_ piece: inout Piece, _ bytes: UnsafeRawBufferPointer) -> Int {
        let count = min(bytes.count, pieceBytes - piece.count)
        if let source = bytes.baseAddress, count > 0 {
            memcpy(start + Int(piece.index) * pieceBytes + piece.count, source, count)
        }
        piece.count += count
        return count
    }

    func isFull(_ piece: Piece) -> Bool { piece.count == pieceBytes }
}
