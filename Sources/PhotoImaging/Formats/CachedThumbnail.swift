/// The URI of the original of a file manager's thumbnail: its text `Thumb::URI`, which stands before the pixels
/// (Thumbnail Managing Standard 0.9, section "Thumbnail Attributes"). Nil for anything else.
///
/// GLib's programs write it uncompressed; Qt's compress texts of more than 40 characters.
public func thumbnailURI(in source: some ByteSource) -> [UInt8]? {
    let region = Region(BoundedReader(source, headBytes: ReadLimits.identifyBytes))
    guard PNGReader.identify(region) != nil else { return nil }
    var offset = PNGChunk.firstOffset
    for _ in 0..<chunksMax {
        guard let chunk = PNGChunk(region, at: offset) else { return nil }
        switch chunk.type {
        case fourCC("IDAT"), fourCC("IEND"): return nil
        case fourCC("tEXt"), fourCC("zTXt"), fourCC("iTXt"):
            let text = PNGText.contents(chunk.body, chunk.type)
            if let text, text.keyword == "Thumb::URI" { return text.value.withView { $0.array } }
        default: break
        }
        offset = chunk.end
    }
    return nil
}

/// Maximum number of chunks before the pixels; real thumbnails have about ten.
private let chunksMax = 64
