import PhotoRules
import Testing

@testable import PhotoLibrary

/// What an inode number means: see `Node`.
@Suite("The tree: the meaning of inode numbers") struct NodeTests {
    @Test(arguments: [1, 2, 4711, 1 << 59] as [UInt64])
    func `small numbers are of the tables`(number: UInt64) {
        #expect(Node(number) == .real(number))
        #expect(Node(number).isReal)
    }

    @Test func `a directory of versions or views is decoded as it was numbered`() {
        let versions: [VersionNode] = [.beside(7), .of(1 << 40)]
        for node in versions { #expect(Node(node.number) == .version(node)) }
        let views: [ViewNode] =
            ViewNode.groups.map(\.node) + [
                .root, .camera(3), .year(2024), .month(202_412), .kind(PhotoKind.allCases[0]), .rating(5),
                .group(17), .country(0), .country(244), .town(0, in: 0), .town(65_534, in: 244),
            ]
        for node in views { #expect(Node(node.number) == .view(node)) }
    }

    @Test func `all other numbers are of thumbnails, forged ones too`() {
        let thumbs = VirtualInode.number(encoding: .thumbs(of: 9)) ?? 0
        // The last has the bits of a view, and no kind's number.
        let numbers: [UInt64] = [thumbs, VirtualInode.counted(12), 3 << 60 | 10 << 56 | 99]
        for number in numbers {
            #expect(Node(number) == .thumbnail(number))
            #expect(!Node(number).isReal)
        }
    }
}
