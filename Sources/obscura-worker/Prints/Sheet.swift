internal import PhotoImaging

/// A contact sheet: pictures in an even grid, a label under each, a title above all. A picture that cannot be
/// decoded leaves its place empty. Nil when there is none, or no memory. Without a font there are neither labels nor a
/// title.
func drawSheet(_ prints: PrintFile, _ font: LabelFont?) -> Pixels? {
    let layout = SheetLayout(count: prints.prints.count)
    guard !prints.prints.isEmpty, let sheet = Pixels(size: layout.size, channels: 4) else { return nil }
    sheet.fillWithWhite()
    if let font { drawTitle(prints.title, font, on: sheet) }
    let side = SheetLayout.pictureSide
    for (index, print) in prints.prints.enumerated() {
        let (x, y) = layout.origin(of: index)
        if let picture = decodePrint(print.jpeg, fitting: PixelSize(width: side, height: side)) {
            // In the middle, so that rows and columns stay even.
            sheet.place(
                picture, x: x + (side - picture.size.width) / 2, y: y + (side - picture.size.height) / 2)
        }
        if let font { drawLabel(print.label, font, x: x, y: y + side + labelGap, on: sheet) }
    }
    return sheet
}

/// Room between a picture and its label.
private let labelGap = 4
private let labelStyle = TextStyle(pixels: 14, lineHeight: 20, baseline: 15, shade: 48)
private let titleStyle = TextStyle(pixels: 32, lineHeight: 44, baseline: 34, shade: 24)
private let longTitleStyle = TextStyle(pixels: 16, lineHeight: 22, baseline: 17, shade: 24)

/// As large as fits beside the margins.
private func drawTitle(_ title: String, _ font: LabelFont, on sheet: borrowing Pixels) {
    let room = sheet.size.width - 2 * SheetLayout.gap
    var line = TextLine(title, font: font, style: titleStyle)
    if line.width > room { line = TextLine(title, font: font, style: longTitleStyle).shortened(to: room) }
    sheet.draw(line, x: SheetLayout.gap, y: SheetLayout.gap)
}

private func drawLabel(_ label: String, _ font: LabelFont, x: Int, y: Int, on sheet: borrowing Pixels) {
    let side = SheetLayout.pictureSide
    let lines = TextLine(label, font: font, style: labelStyle).wrapped(to: side)
    for (index, line) in lines.enumerated() {
        sheet.draw(line, x: x + (side - line.width) / 2, y: y + index * labelStyle.lineHeight)
    }
}
