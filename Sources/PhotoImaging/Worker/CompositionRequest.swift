/// The input of a composition (a stack or a contact sheet), in one file for a worker: a title, and JPEGs with labels.
///
///     words  count, bytes of the title, then for each tile: bytes of the JPEG, bytes of the label
///     bytes  the title, then for each tile: the JPEG, the label (UTF-8)
package struct CompositionRequest: Sendable, Equatable {
    /// One picture of a composition.
    package struct Tile: Sendable, Equatable {
        /// An existing JPEG.
        package var jpeg: [UInt8]
        /// The text under it on a contact sheet.
        package var label: String

        /// A tile of a JPEG and its label.
        package init(jpeg: [UInt8], label: String) {
            self.jpeg = jpeg
            self.label = label
        }
    }

    /// Tiles in a stack, at most.
    package static let stackTilesMax = 5
    /// Tiles on a contact sheet, at most.
    package static let sheetTilesMax = 100

    /// The text above a contact sheet.
    package var title: String
    /// Newest first.
    package var tiles: [Tile]

    /// A request to compose `tiles`.
    package init(title: String, tiles: [Tile]) {
        self.title = title
        self.tiles = tiles
    }

    /// The content of the file.
    package var bytes: [UInt8] {
        var words = [UInt64(tiles.count), UInt64(title.utf8.count)]
        var body = Array(title.utf8)
        for tile in tiles {
            words += [UInt64(tile.jpeg.count), UInt64(tile.label.utf8.count)]
            body += tile.jpeg
            body += Array(tile.label.utf8)
        }
        return words.withUnsafeBytes { Array($0) } + body
    }

    /// Parses a file. Nil if its lengths exceed the file or the count exceeds ``sheetTilesMax``.
    package init?(_ file: UnsafeRawBufferPointer) {
        func word(_ index: Int) -> Int? {
            guard (index + 1) * 8 <= file.count else { return nil }
            return Int(exactly: file.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        guard let count = word(0), (0...Self.sheetTilesMax).contains(count) else { return nil }
        var position = (2 + 2 * count) * 8
        func take(_ length: Int?) -> UnsafeRawBufferPointer? {
            guard let length, length <= file.count - position else { return nil }
            defer { position += length }
            return UnsafeRawBufferPointer(rebasing: file[position..<position + length])
        }
        guard let title = take(word(1)) else { return nil }
        self.title = String(decoding: title, as: UTF8.self)
        tiles = []
        for index in 0..<count {
            guard let jpeg = take(word(2 + 2 * index)), let label = take(word(3 + 2 * index)) else {
                return nil
            }
            tiles.append(Tile(jpeg: Array(jpeg), label: String(decoding: label, as: UTF8.self)))
        }
    }
}
