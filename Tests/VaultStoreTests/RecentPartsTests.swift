import TestSupport
import Testing

@testable import ClusterIO

/// What is kept of the objects of a vault on a cluster, compared with a model that has each byte.
@Suite("Space: bytes of a cluster that are kept") struct RecentPartsTests {
    private static let objects = ["a", "b"]
    private static let length: UInt64 = 64

    /// The number of the part that last had each byte; nil if it was removed.
    private struct Model {
        var newest: [String: [Int?]] = [:]

        init() { for object in objects { newest[object] = Array(repeating: nil, count: Int(length)) } }

        mutating func set(_ object: String, _ range: Range<UInt64>, _ number: Int?) {
            for place in range { newest[object]?[Int(place)] = number }
        }
    }

    private func range(_ random: inout RandomSource) -> Range<UInt64> {
        let start = UInt64.random(in: 0..<Self.length - 1, using: &random)
        return start..<UInt64.random(in: start + 1...min(Self.length, start + 20), using: &random)
    }

    @Test(arguments: 1...20) func `no byte of before a write is found`(seed: UInt64) throws {
        var random = RandomSource(seed)
        var parts = RecentParts<Int>(bytesMax: 60, countMax: 6)
        var model = Model()
        for number in 0..<2000 {
            let object = try #require(Self.objects.randomElement(using: &random))
            let range = range(&random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                let removed = parts.remove(object, range)
                #expect(removed.allSatisfy { $0.object == object && $0.range.overlaps(range) })
                model.set(object, range, nil)
            case 1:
                let kept = parts.parts.map(\.content)
                let removed = parts.insert(.init(object: object, range: range, content: number))
                #expect(
                    Set(kept).subtracting(removed.map(\.content)).union([number])
                        == Set(parts.parts.map(\.content)))
                model.set(object, range, number)
            default:
                let pieces = parts.pieces(of: object, range)
                #expect(pieces.first?.range.lowerBound == range.lowerBound)
                #expect(pieces.last?.range.upperBound == range.upperBound)
                for (piece, next) in zip(pieces, pieces.dropFirst()) {
                    #expect(piece.range.upperBound == next.range.lowerBound)
                }
                let lent = parts.part(with: object, range)
                #expect(lent?.content == (pieces.count == 1 ? pieces[0].part?.content : nil))
                for piece in pieces {
                    guard let part = piece.part else { continue }
                    #expect(part.range.clamped(to: piece.range) == piece.range)
                    for place in piece.range { #expect(model.newest[object]?[Int(place)] == part.content) }
                }
            }
            #expect(parts.parts.count <= 6)
            #expect(parts.parts.reduce(0) { $0 + $1.range.count } <= 60)
        }
    }

    @Test func `the oldest goes first, and a part is found in pieces`() throws {
        var parts = RecentParts<Int>(bytesMax: 30, countMax: 10)
        #expect(parts.insert(.init(object: "a", range: 0..<10, content: 1)).isEmpty)
        #expect(parts.insert(.init(object: "a", range: 15..<25, content: 2)).isEmpty)
        let pieces = parts.pieces(of: "a", 5..<20)
        #expect(pieces.map(\.range) == [5..<10, 10..<15, 15..<20])
        #expect(pieces.map { $0.part?.content } == [1, nil, 2])
        #expect(parts.pieces(of: "b", 5..<20).map { $0.part?.content } == [nil])
        #expect(parts.insert(.init(object: "b", range: 0..<20, content: 3)).map(\.content) == [1])
        // One that is larger than all is kept alone.
        #expect(parts.insert(.init(object: "b", range: 20..<90, content: 4)).map(\.content) == [2, 3])
        #expect(parts.parts.map(\.content) == [4])
    }
}
