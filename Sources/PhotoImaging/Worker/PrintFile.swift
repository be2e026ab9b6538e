/// Several pictures in one file, as a worker gets them to compose one: a title, and JPEGs with labels.
///
///     words  count, bytes of the title, then for each print: bytes of the JPEG, bytes of the label
///     bytes  the title, then for each print: the JPEG, the label (UTF-8)
package struct PrintFile: Sendable, Equatable {
    /// One picture.
    package struct Print: Sendable, Equatable {
        package var jpeg: [UInt8]
        package var label: String

        package init(jpeg: [UInt8], label: String) {
            self.jpeg = jpeg
            self.label = label
        }
    }

    /// Prints in a pile, at most.
    package static let stackCountMax = 5
    /// Prints on a sheet, at most.
    package static let sheetCountMax = 100

    package var title: String
    package var prints: [Print]

    package init(title: String, prints: [Print]) {
        self.title = title
        self.prints = prints
    }

    /// The file.
    package var bytes: [UInt8] {
        var words = [UInt64(prints.count), UInt64(title.utf8.count)]
        var body = Array(title.utf8)
        for print in prints {
            words += [UInt64(print.jpeg.count), UInt64(print.label.utf8.count)]
            body += print.jpeg
            body += Array(print.label.utf8)
        }
        return words.withUnsafeBytes { Array($0) } + body
    }

    /// What a file holds. Nil where it is none.
    package init?(_ file: UnsafeRawBufferPointer) {
        func word(_ index: Int) -> Int? {
            guard (index + 1) * 8 <= file.count else { return nil }
            return Int(exactly: file.loadUnaligned(fromByteOffset: index * 8, as: UInt64.self))
        }
        guard let count = word(0), (0...Self.sheetCountMax).contains(count) else { return nil }
        var position = (2 + 2 * count) * 8
        func take(_ length: Int?) -> UnsafeRawBufferPointer? {
            guard let length, length <= file.count - position else { return nil }
            defer { position += length }
            return UnsafeRawBufferPointer(rebasing: file[position..<position + length])
        }
        guard let title = take(word(1)) else { return nil }
        self.title = String(decoding: title, as: UTF8.self)
        prints = []
        for index in 0..<count {
            guard let jpeg = take(word(2 + 2 * index)), let label = take(word(3 + 2 * index)) else {
                return nil
            }
            prints.append(Print(jpeg: Array(jpeg), label: String(decoding: label, as: UTF8.self)))
        }
    }
}

/// Where things stand on a contact sheet, in pixels.
package struct SheetLayout: Sendable {
    /// Side of the square that each picture fits in.
    package static let pictureSide = 200
    /// Room below a picture for its label.
    package static let labelHeight = 52
    /// Room between pictures, and around all of them.
    package static let gap = 20
    /// Room above the first row for the title.
    package static let titleHeight = 56

    private static let columnsMax = 10

    /// Pictures side by side.
    package let columns: Int
    /// Pictures one below another.
    package let rows: Int

    /// A sheet for `count` pictures, about as wide as high.
    package init(count: Int) {
        let count = max(count, 1)
        columns = (1...Self.columnsMax).first { $0 * $0 >= count } ?? Self.columnsMax
        rows = (count + columns - 1) / columns
    }

    /// The sheet's size.
    package var size: PixelSize {
        PixelSize(
            width: Self.gap + columns * (Self.pictureSide + Self.gap),
            height: Self.titleHeight + Self.gap + rows * (Self.pictureSide + Self.labelHeight + Self.gap))
    }

    /// The upper left corner of a picture's square.
    package func origin(of index: Int) -> (x: Int, y: Int) {
        (
            Self.gap + index % columns * (Self.pictureSide + Self.gap),
            Self.titleHeight + Self.gap + index / columns * (Self.pictureSide + Self.labelHeight + Self.gap)
        )
    }
}
