import Glibc
import PhotoImaging
import ReceiveProtocol

/// Memory that the server shares with this process: bytes of uploads are collected there, a piece at a time, and
/// written from there.
///
/// A compromised server may change a piece while it is read. That harms only files that it has sent itself:
/// nothing here relies on two reads giving the same bytes.
final class PieceBuffer: Sendable {
    private let file: MemoryFile
    private let start: UInt
    private let limits: ReceiveLimits

    /// Nil if memory or descriptors are short.
    init?(_ limits: ReceiveLimits) {
        let byteCount = limits.pieces * limits.pieceBytes
        guard let file = MemoryFile.forResult(byteCount: byteCount),
            let start = mmap(nil, byteCount, PROT_READ, MAP_SHARED, file.descriptor, 0), start != MAP_FAILED
        else { return nil }
        self.file = file
        self.limits = limits
        self.start = UInt(bitPattern: start)
    }

    deinit { munmap(UnsafeMutableRawPointer(bitPattern: start), limits.pieces * limits.pieceBytes) }

    /// For the server.
    var descriptor: Int32 { file.descriptor }

    /// The first bytes of a piece. Nil if there is no such piece, or not so many bytes in it.
    func bytes(_ index: PieceIndex, _ count: UInt32) -> UnsafeRawBufferPointer? {
        guard Int(index) < limits.pieces, Int(count) <= limits.pieceBytes else { return nil }
        let piece = UnsafeRawPointer(bitPattern: start + UInt(index) * UInt(limits.pieceBytes))
        return UnsafeRawBufferPointer(start: piece, count: Int(count))
    }
}
