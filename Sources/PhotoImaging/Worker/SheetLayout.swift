/// The layout of a contact sheet. Lengths are in pixels.
package struct SheetLayout: Sendable {
    /// Side of the square around each tile.
    package static let tileSide = 200
    /// Room below a tile for its label.
    static let labelHeight = 52
    /// Room between tiles, and around all of them.
    package static let gap = 20
    /// Room above the first row for the title.
    package static let titleHeight = 56

    private static let columnsMax = 10

    /// Tiles per row.
    package let columns: Int
    /// Number of rows.
    package let rows: Int

    /// A sheet for `count` tiles, roughly square up to 100 tiles.
    package init(count: Int) {
        let count = max(count, 1)
        columns = (1...Self.columnsMax).first { $0 * $0 >= count } ?? Self.columnsMax
        rows = (count + columns - 1) / columns
    }

    /// The sheet's size.
    package var size: PixelSize {
        PixelSize(
            width: Self.gap + columns * (Self.tileSide + Self.gap),
            height: Self.titleHeight + Self.gap + rows * (Self.tileSide + Self.labelHeight + Self.gap))
    }

    /// The upper left corner of the tile at `index`.
    package func origin(of index: Int) -> (x: Int, y: Int) {
        (
            Self.gap + index % columns * (Self.tileSide + Self.gap),
            Self.titleHeight + Self.gap + index / columns * (Self.tileSide + Self.labelHeight + Self.gap)
        )
    }
}
