/// The stages of a check of a space, in their order. `LiveCheck` takes a mounted space through them in bounded steps;
/// `SpaceCheck` of Recovery takes one through them that is not mounted.
package enum CheckStage: CaseIterable, Sendable {
    /// Roots, deltas, nodes, pages, slots, and the segments that they lie in.
    case structure
    /// SQLite's own check of the catalogue, and the constraints on its rows.
    case catalogue
    /// The bytes of files, thumbnails and identity records.
    case content
    /// The bitmaps of sectors.
    case allocation

    package var next: CheckStage? { Self.allCases.drop { $0 != self }.dropFirst().first }
}

extension CheckCursor {
    /// The beginning of a stage.
    init(_ stage: CheckStage) {
        switch stage {
        case .structure: self = .pages(0)
        case .catalogue: self = .constraint(0)
        case .content: self = .extents(content: 0, offset: 0)
        case .allocation: self = .allocation(segment: 0)
        }
    }

    /// The beginning of the stage after one; nil after the last.
    static func after(_ stage: CheckStage) -> CheckCursor? { stage.next.map { CheckCursor($0) } }
}
