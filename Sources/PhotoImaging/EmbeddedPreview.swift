/// The range of the smallest JPEG that a camera embedded in a picture: it can be shown at once, without decoding
/// anything. Nil if there is none. Costs as much as ``readFacts(_:)``.
public func embeddedPreview(in source: some ByteSource) -> Range<UInt64>? {
    readFacts(source)?.embeddedPreview
}
