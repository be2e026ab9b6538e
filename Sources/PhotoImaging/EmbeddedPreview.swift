/// Where the smallest JPEG that a camera embedded in a picture lies: what can be shown at once, without
/// decoding anything. Nil where there is none. Costs what ``readFacts(_:)`` costs.
public func embeddedPreview(in source: some ByteSource) -> Range<UInt64>? {
    readFacts(source)?.embeddedPreview
}
