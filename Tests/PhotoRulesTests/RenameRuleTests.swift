import CatalogueRows
import FileRequests
import Testing

@testable import PhotoRules

/// *The tree* of the contract: the effect of rename(2), by the places of both names.
@Suite("The tree: rules of renames") struct RenameRuleTests {
    private struct Case: Hashable {
        var from: Area
        var to: Area
        var trash = TrashMove.outside
        var isDirectory = false
    }

    private func told(_ one: Case) -> RenameEffect? {
        effect(
            of: RenameFacts(
                from: one.from, to: one.to, trash: one.trash, isDirectory: one.isDirectory))
    }

    private static let allowed: [Case: RenameEffect] = [
        Case(from: .album, to: .album): .moveInAlbums,
        Case(from: .album, to: .album, isDirectory: true): .moveDirectory,
        Case(from: .album, to: .day): .moveIntoDay,
        Case(from: .album, to: .day, isDirectory: true): .moveIntoDay,
        Case(from: .day, to: .day): .moveInDays,
        Case(from: .day, to: .day, isDirectory: true): .moveInDays,
        Case(from: .day, to: .album): .addToAlbum,
        Case(from: .day, to: .album, isDirectory: true): .addToAlbum,
        Case(from: .moments, to: .moments): .renameDay,
        Case(from: .moments, to: .moments, isDirectory: true): .renameDay,
        Case(from: .moments, to: .album): .copyDay,
        Case(from: .moments, to: .album, isDirectory: true): .copyDay,
        Case(from: .album, to: .album, trash: .into): .moveToTrash,
        Case(from: .album, to: .album, trash: .into, isDirectory: true): .moveToTrash,
        Case(from: .album, to: .album, trash: .outOf): .restoreToAlbum,
        Case(from: .album, to: .album, trash: .outOf, isDirectory: true): .restoreToAlbum,
        Case(from: .day, to: .album, trash: .into): .removeToTrash,
        Case(from: .day, to: .album, trash: .into, isDirectory: true): .removeToTrash,
        Case(from: .moments, to: .album, trash: .into): .removeDayToTrash,
        Case(from: .moments, to: .album, trash: .into, isDirectory: true): .removeDayToTrash,
        Case(from: .album, to: .day, trash: .outOf): .restoreIntoDay,
        Case(from: .album, to: .day, trash: .outOf, isDirectory: true): .restoreIntoDay,
        Case(from: .album, to: .moments, trash: .outOf): .restoreDay,
        Case(from: .album, to: .moments, trash: .outOf, isDirectory: true): .restoreDay,
    ]

    @Test func `each pair of places has its effect, and all others are refused`() {
        for from in Area.allCases {
            for to in Area.allCases {
                for trash in TrashMove.allCases {
                    for isDirectory in [false, true] {
                        let one = Case(from: from, to: to, trash: trash, isDirectory: isDirectory)
                        #expect(told(one) == Self.allowed[one], "\(one)")
                    }
                }
            }
        }
    }

    @Test func `each row of the table is used, and no two tell of one case`() {
        #expect(Set(renameRules.map(\.effect)).count == RenameEffect.allCases.count)
        for (index, one) in renameRules.enumerated() {
            for other in renameRules[..<index] {
                let isSame =
                    one.from == other.from && one.to == other.to && one.trash == other.trash
                #expect(!isSame || one.isDirectory != other.isDirectory)
            }
        }
    }

    @Test func `names are exchanged in albums, within a day, and never between the trash and outside`() {
        func may(
            _ from: Area, _ to: Area, same: Bool = false, _ fromTrash: Bool = false, _ into: Bool = false
        )
            -> Bool
        {
            mayExchange(from, to, isSameDirectory: same, isFromTrash: fromTrash, isIntoTrash: into)
        }
        #expect(may(.album, .album) && may(.album, .album, true, true) && may(.day, .day, same: true))
        #expect(!may(.day, .day) && !may(.day, .album) && !may(.moments, .moments, same: true))
        #expect(!may(.album, .album, true, false) && !may(.album, .album, false, true))
    }

    @Test func `a day takes files, moments takes days, the root takes trash directories, albums take all`() {
        let names = ["a.jpg", "2024-05-01", ".Trash-1000", "2024-02-31", ".Trash-x", ".Trash-01"]
        for area in Area.allCases {
            for file in NewFile.allCases {
                for name in names {
                    let isAllowed =
                        switch area {
                        case .album: true
                        case .day: file == .regularFile
                        case .moments: file == .directory && name == "2024-05-01"
                        case .root: file == .directory && name == ".Trash-1000"
                        }
                    #expect(
                        mayMake(file, named: Array(name.utf8), in: area) == isAllowed,
                        "\(area) \(file) \(name)")
                }
            }
        }
    }
}
