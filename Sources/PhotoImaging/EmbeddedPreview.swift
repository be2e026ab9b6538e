/// The range of the smallest JPEG that a camera embedded in a picture and that has the picture's aspect ratio: it can
/// be shown at once, without decoding anything. Nil if there is none: a preview of another aspect ratio was made before
/// the picture was cropped, or has bars. Costs a few reads more than ``readFacts(_:)``.
public func embeddedPreview(in source: some ByteSource) -> Range<UInt64>? {
    guard let facts = readFacts(source), let smallest = facts.embeddedPreview,
        let largest = facts.largestPreview
    else { return nil }
    let file = Region(BoundedReader(source, headBytes: ReadLimits.identifyBytes))
    let picture = storedSize(facts, file)
    for range in smallest == largest ? [smallest] : [smallest, largest] {
        guard let preview = jpegSize(file, range), let picture else { continue }
        if facts.type.isRaw, !hasEnd(file, range) { continue }
        if preview.hasAspect(of: picture) { return range }
    }
    return nil
}

/// The size of the picture before it is turned upright, as its thumbnails show it. Nil if unknown.
private func storedSize(_ facts: MediaFacts, _ file: Region) -> PixelSize? {
    switch facts.type {
    case .heic, .avif:
        guard let item = HEIFGeometry(file: file).primary, let size = item.size else { return nil }
        return item.shown(of: size).part.size
    case let type where type.isRaw:
        // Thumbnails of raw files are made of the largest preview: sensors have borders that nobody sees.
        return facts.largestPreview.flatMap { jpegSize(file, $0) }
    default:
        guard facts.width > 0, facts.height > 0 else { return nil }
        return PixelSize(width: facts.width, height: facts.height)
    }
}

/// Whether the JPEG in that range has the marker of its end, behind which some cameras fill a block: a preview that
/// ends before would be half grey.
private func hasEnd(_ file: Region, _ range: Range<UInt64>) -> Bool {
    let tailBytes = min(UInt64(range.count), 4096)
    let isThere = file.withView(range.upperBound - tailBytes, tailBytes) { view -> Bool? in
        (1..<max(view.count, 1)).contains { view[$0 - 1] == 0xFF && view[$0] == 0xD9 }
    }
    return isThere ?? false
}

/// The size that the JPEG in that range of a file claims.
private func jpegSize(_ file: Region, _ range: Range<UInt64>) -> PixelSize? {
    guard let region = file.inside(range.lowerBound, UInt64(range.count)) else { return nil }
    var facts = MediaFacts(type: .jpeg)
    JPEGReader.read(region, into: &facts)
    guard facts.width > 0, facts.height > 0 else { return nil }
    return PixelSize(width: facts.width, height: facts.height)
}
