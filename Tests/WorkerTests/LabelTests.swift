import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

/// Fonts of the package fonts-dejavu-core, which `scripts/test` installs.
private enum DejaVu {
    static let sans = "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf"
    static let mono = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
}

/// A contact sheet, decoded again.
private struct LabelledSheet {
    let pixels: DecodedThumbnail
    let layout: SheetLayout

    init(_ labels: [String], title: String = "", fonts: [[String]] = [[DejaVu.sans]]) throws {
        let workers = makeWorkers(fonts: InstalledFonts(paths: fonts))
        let jpeg = TestPicture(width: 256, height: 256).jpeg
        let sheet = try workers.composeSheet(labels.map { (jpeg: jpeg, label: $0) }, title: title)
        pixels = try #require(DecodedThumbnail(sheet))
        layout = SheetLayout(count: labels.count)
    }

    /// Darkness of every pixel below a picture.
    func label(_ index: Int) -> [[Int]] {
        let (x, y) = layout.origin(of: index)
        return darkness(x..<x + SheetLayout.tileSide, from: y + SheetLayout.tileSide + 2, to: y + 252)
    }

    /// Darkness of every pixel above the pictures.
    var title: [[Int]] {
        darkness(0..<pixels.size.width, from: 0, to: SheetLayout.titleHeight + SheetLayout.gap - 2)
    }

    /// Darkness of the room between the columns, and around all.
    var gaps: [[Int]] {
        let top = SheetLayout.titleHeight + SheetLayout.gap
        return (0...layout.columns).flatMap { column in
            let left = column * (SheetLayout.tileSide + SheetLayout.gap)
            return darkness(left + 2..<left + SheetLayout.gap - 2, from: top, to: pixels.size.height)
        }
            + darkness(
                0..<pixels.size.width, from: pixels.size.height - SheetLayout.gap + 2, to: pixels.size.height)
    }

    private func darkness(_ columns: Range<Int>, from top: Int, to bottom: Int) -> [[Int]] {
        (top..<bottom).map { y in columns.map { 255 - Int(pixels.green($0, y)) } }
    }
}

/// Sum of all darkness, but for what JPEG makes of edges nearby.
private func ink(_ rows: [[Int]]) -> Int {
    rows.joined().filter { $0 > 32 }.reduce(0, +)
}

extension WorkerTests {
    /// Texts on contact sheets.
    @Suite("Decoders: labels") struct LabelTests {
        @Test func `labels are drawn in many scripts`() throws {
            let labels = [
                "Ünïcode", "Unicode", "Ελληνικά", "Кириллица",
                "עברית", "العربية", "Հայերեն", "",
            ]
            let missing = labels.map { String(repeating: "\u{E000}", count: $0.count) }
            let (found, boxes) = (try LabelledSheet(labels), try LabelledSheet(missing))
            for index in labels.indices.dropLast() {
                #expect(ink(found.label(index)) > 5000, "\(labels[index])")
                #expect(found.label(index) != boxes.label(index), "\(labels[index])")
            }
            #expect(ink(found.label(0)) > ink(found.label(1)))
            #expect(ink(found.label(7)) == 0 && ink(found.title) == 0 && ink(found.gaps) == 0)
        }

        @Test func `titles are as large as fits`() throws {
            let short = try LabelledSheet(["", "", "", ""], title: "Ünïcode")
            let long = try LabelledSheet(["", "", "", ""], title: String(repeating: "Ünïcode ", count: 30))
            func rows(_ sheet: LabelledSheet) -> Int { sheet.title.count { ink([$0]) > 0 } }
            #expect(ink(short.title) > 5000 && rows(short) > rows(long) && rows(long) > 8)
        }

        /// The same letter with its mark in one character or in two.
        @Test func `marks lie on their letters`() throws {
            let sheet = try LabelledSheet(["u\u{308}", "u"])
            let columns = (0...1).map { index in
                let rows = sheet.label(index)
                return rows[0].indices.filter { column in rows.contains { $0[column] > 96 } }
            }
            #expect(columns[0].first == columns[1].first && columns[0].last == columns[1].last)
            #expect(ink(sheet.label(0)) > ink(sheet.label(1)))
        }

        /// A wide letter and a narrow one: the first of them stands on the right.
        @Test func `Hebrew runs from right to left`() throws {
            let sheet = try LabelledSheet(["שווו", "וווש", "abc שווו.jpg"])
            for (index, isWideFirst) in [(0, true), (1, false)] {
                let columns = (0..<SheetLayout.tileSide).map { column in
                    sheet.label(index).reduce(0) { $0 + $1[column] }
                }
                let inked = columns.indices.filter { columns[$0] > 200 }
                let middle = try (#require(inked.first) + #require(inked.last)) / 2
                // The three narrow letters leave gaps.
                let left = inked.count { $0 < middle }
                #expect((left < inked.count - left) == isWideFirst, "\(inked)")
            }
            #expect(ink(sheet.label(2)) > ink(sheet.label(0)))
        }

        /// Characters that the first font lacks are drawn by the second.
        @Test func `fonts fill in for each other`() throws {
            let labels = ["abc", "שלום"]
            let mono = try LabelledSheet(labels, fonts: [["/nonexistent.ttf", DejaVu.mono]])
            let both = try LabelledSheet(labels, fonts: [[DejaVu.mono], [DejaVu.sans]])
            #expect(mono.label(0) == both.label(0) && ink(mono.label(0)) > 1000)
            #expect(mono.label(1) != both.label(1) && ink(both.label(1)) > 1000)
        }

        /// Pictures without labels where no font can be read; its file may be missing, empty or no font.
        @Test func `without a font there is no label`() throws {
            let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
            try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: directory) }
            let (empty, noise) = (
                directory.appendingPathComponent("empty"), directory.appendingPathComponent("noise")
            )
            try Data().write(to: empty)
            try Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }).write(to: noise)
            for fonts in [[], [["/nonexistent.ttf"]], [[empty.path]], [[noise.path]], [[directory.path]]] {
                let sheet = try LabelledSheet(["a.jpg", "b.jpg"], title: "May", fonts: fonts)
                #expect(ink(sheet.label(0)) == 0 && ink(sheet.label(1)) == 0 && ink(sheet.title) == 0)
                let (x, y) = sheet.layout.origin(of: 1)
                #expect(sheet.pixels.pixel(x + 60, y + 60)[0] > 200)
            }
            let sheet = try LabelledSheet(["a.jpg"], fonts: [[noise.path], [DejaVu.sans]])
            #expect(ink(sheet.label(0)) > 1000)
        }

        /// Names that a stranger chose.
        @Test func `hostile names stay in their place`() throws {
            var random = RandomSource(18)
            var names = [
                "\0\u{1}\u{1B}[31m\r\n\t\u{7F}\u{85}\u{9B}",
                "\u{202E}gpj.exe\u{2066}\u{200F}\u{200D}\u{FE0F}\u{AD}",
                "\u{2028}\u{2029}\u{FFFE}\u{FFFF}\u{10FFFF}\u{FEFF}",
                "a" + String(repeating: "\u{301}", count: 127),
                String(repeating: "\u{489}", count: 127), String(repeating: "\u{FDFD}", count: 85),
                String(repeating: "\u{3164}", count: 85), String(repeating: "\u{E0041}", count: 63),
                String(repeating: "👩‍👩‍👧‍👦", count: 10), String(repeating: "ש", count: 127),
                String(repeating: "W", count: 255),
                String(repeating: " ", count: 255), String(repeating: "aש1-", count: 50),
                "ﷺ\u{610}\u{65F}\u{6DD}",
                String(
                    decoding: [0xFF, 0xC0, 0x80, 0xED, 0xA0, 0x80, 0xF4, 0x90, 0x80, 0x80, 0xE2, 0x82],
                    as: UTF8.self),
            ]
            names += (0..<20).map { _ in
                String(
                    decoding: (0..<255).map { _ in UInt8.random(in: 0...255, using: &random) }, as: UTF8.self)
            }
            names += (0..<20).map { _ in
                let scalars = (0..<80).compactMap { _ in
                    Unicode.Scalar(UInt32.random(in: 0..<0x3000, using: &random))
                }
                return String(String.UnicodeScalarView(scalars))
            }
            let sheet = try LabelledSheet(names)
            #expect(ink(sheet.gaps) == 0)
            for index in names.indices {
                // The last rows below a label belong to nobody.
                #expect(ink(sheet.label(index).suffix(2)) == 0, "\(Array(names[index].utf8))")
                // A hidden photo leaves no gap; one without a picture does.
                #expect(index != 7 || ink(sheet.label(index)) == 0)
            }
            for name in names {
                let titled = try LabelledSheet([""], title: name)
                #expect(ink(titled.label(0)) == 0 && ink(titled.gaps) == 0)
                let margins = titled.title.map {
                    $0.prefix(SheetLayout.gap - 2) + $0.suffix(SheetLayout.gap - 2)
                }
                #expect(ink(margins.map(Array.init)) == 0, "\(Array(name.utf8))")
            }
        }

        /// The first line of a label that is too long for one ends where a word does.
        @Test func `labels are parted between words`() throws {
            let labels = try ["PXL_20240505_113857_original.jpg", "PXL_20240505_113857_"].map { label in
                try LabelledSheet([label]).label(0)
            }
            // Without the last rows, where the second line may show in the same block of the JPEG.
            let first = labels.map { $0.prefix(16).map { $0.map { $0 > 96 } } }
            #expect(first[0] == first[1] && ink(Array(labels[1].prefix(16))) > 1000)
            #expect(ink(Array(labels[0].dropFirst(24))) > 1000 && ink(Array(labels[1].dropFirst(24))) == 0)
        }

        @Test func `long labels are shortened`() throws {
            let long = "IMG_" + String(repeating: "0123456789", count: 24) + ".jpg"
            let sheet = try LabelledSheet([long, String(repeating: "W", count: 1000)])
            #expect(ink(sheet.label(0)) > 10000 && ink(sheet.label(1)) > 10000 && ink(sheet.gaps) == 0)
        }

        @Test func `the first font of each group serves`() {
            let fonts = InstalledFonts(paths: [
                ["/nonexistent.ttf", DejaVu.mono, DejaVu.sans], ["/x"], [DejaVu.sans],
            ])
            let paths = fonts.withDescriptors { descriptors in
                descriptors.map {
                    try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")
                }
            }
            #expect(paths == [DejaVu.mono, DejaVu.sans])
        }
    }
}
