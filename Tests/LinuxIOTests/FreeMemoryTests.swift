import Foundation
import Glibc
import LinuxIO
import TestSupport
import Testing

/// Memory of this process that it has freed, and the system does not have.
@Suite("System calls: free memory") struct FreeMemoryTests {
    private static let pieceBytes = 4096
    private static let pieceCount = 1 << 14

    @Test func `memory below what is in use is given back`() throws {
        let pieces = (0..<Self.pieceCount).map { _ in
            let piece = UnsafeMutableRawPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
            memset(piece, 1, Self.pieceBytes)
            return piece
        }
        let full = try Self.usedBytes()
        // The last pieces keep what was freed from being the end of the heap.
        let kept = pieces.suffix(64)
        for piece in pieces.dropLast(kept.count) { piece.deallocate() }
        returnFreeMemory()
        // Other tests may use some meanwhile.
        #expect(full - (try Self.usedBytes()) > Self.pieceBytes * Self.pieceCount / 2)
        for piece in kept { piece.deallocate() }
    }

    /// Resident memory: the second number of /proc/self/statm, in pages.
    private static func usedBytes() throws -> Int {
        let words = try #require(kernelText("/proc/self/statm")).split(separator: " ")
        return try #require(Int(words[1])) * Int(getpagesize())
    }
}
