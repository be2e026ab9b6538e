internal import PhotoImaging

/// A contact sheet: pictures in an even grid, a label under each, a title above all. A picture that cannot be
/// decoded leaves its place empty. Nil when there is none, or no memory.
func drawSheet(_ prints: PrintFile) -> Pixels? {
    let layout = SheetLayout(count: prints.prints.count)
    guard !prints.prints.isEmpty, let sheet = Pixels(size: layout.size, channels: 4) else { return nil }
    sheet.fillWithWhite()
    drawTitle(prints.title, on: sheet)
    let side = SheetLayout.pictureSide
    for (index, print) in prints.prints.enumerated() {
        let (x, y) = layout.origin(of: index)
        if let picture = decodePrint(print.jpeg, fitting: PixelSize(width: side, height: side)) {
            // In the middle, so that rows and columns stay even.
            sheet.place(
                picture, x: x + (side - picture.size.width) / 2, y: y + (side - picture.size.height) / 2)
        }
        drawLabel(print.label, x: x, y: y + side + labelGap, on: sheet)
    }
    return sheet
}

private let labelGap = 4
private let labelShade: UInt8 = 64
private let titleShade: UInt8 = 24

/// As large as fits beside the margins, twice or once doubled.
private func drawTitle(_ title: String, on sheet: borrowing Pixels) {
    let room = sheet.size.width - 2 * SheetLayout.gap
    var line = TextLine(TextLine.shortened(title, toWidth: room / 2)).doubled
    if line.width * 2 <= room { line = line.doubled }
    sheet.draw(line, x: SheetLayout.gap, y: SheetLayout.gap, shade: titleShade)
}

private func drawLabel(_ label: String, x: Int, y: Int, on sheet: borrowing Pixels) {
    let side = SheetLayout.pictureSide
    for (index, text) in TextLine.wrapped(label, toWidth: side / 2).enumerated() {
        let line = TextLine(text).doubled
        sheet.draw(line, x: x + (side - line.width) / 2, y: y + index * line.height, shade: labelShade)
    }
}
