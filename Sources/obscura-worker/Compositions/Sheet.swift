internal import PhotoImaging

/// A contact sheet: tiles in an even grid, a label under each, a title above all. A tile that cannot be decoded stays
/// empty. Nil for no tiles and when memory is short. Without a font there are neither labels nor a title.
func drawSheet(_ composition: CompositionRequest, _ font: LabelFont?) -> Pixels? {
    let layout = SheetLayout(count: composition.tiles.count)
    guard !composition.tiles.isEmpty, let sheet = Pixels(size: layout.size, channels: 4) else { return nil }
    sheet.fillWithWhite()
    if let font { drawTitle(composition.title, font, on: sheet) }
    let side = SheetLayout.tileSide
    for (index, tile) in composition.tiles.enumerated() {
        let (x, y) = layout.origin(of: index)
        if let picture = decodeTile(tile.jpeg, fitting: PixelSize(width: side, height: side)) {
            // Centred, so that rows and columns stay even.
            sheet.place(
                picture, x: x + (side - picture.size.width) / 2, y: y + (side - picture.size.height) / 2)
        }
        if let font { drawLabel(tile.label, font, x: x, y: y + side + labelGap, on: sheet) }
    }
    return sheet
}

/// Room between a picture and its label.
private let labelGap = 4
private let labelStyle = TextStyle(pixels: 14, lineHeight: 20, baseline: 15, shade: 48)
private let titleStyle = TextStyle(pixels: 32, lineHeight: 44, baseline: 34, shade: 24)
private let longTitleStyle = TextStyle(pixels: 16, lineHeight: 22, baseline: 17, shade: 24)

/// Draws the title in the large style if it fits between the margins, else in the small one, shortened.
private func drawTitle(_ title: String, _ font: LabelFont, on sheet: borrowing Pixels) {
    let room = sheet.size.width - 2 * SheetLayout.gap
    var line = TextLine(title, font: font, style: titleStyle)
    if line.width > room { line = TextLine(title, font: font, style: longTitleStyle).shortened(to: room) }
    sheet.draw(line, x: SheetLayout.gap, y: SheetLayout.gap)
}

private func drawLabel(_ label: String, _ font: LabelFont, x: Int, y: Int, on sheet: borrowing Pixels) {
    let side = SheetLayout.tileSide
    let lines = TextLine(label, font: font, style: labelStyle).wrapped(to: side)
    for (index, line) in lines.enumerated() {
        sheet.draw(line, x: x + (side - line.width) / 2, y: y + index * labelStyle.lineHeight)
    }
}
