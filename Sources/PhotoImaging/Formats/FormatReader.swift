/// One family of formats: how to know it, and how to read its facts. To add a format, write one file with a
/// reader and name it in ``formatReaders``.
protocol FormatReader: SendableMetatype {
    /// The type of what is in `region`, or nil when it is not of this family. It looks at the first
    /// ``ReadLimits/identifyBytes`` bytes, and at little else.
    static func identify(_ region: Region) -> MediaType?

    /// Adds what can be found to `facts`, whose type `identify` has answered. Damage ends the reading, never
    /// the program; what was found till then stays.
    static func read(_ region: Region, into facts: inout MediaFacts)
}

/// All formats, the most frequent first. No two of them claim the same bytes.
let formatReaders: [any FormatReader.Type] = [
    JPEGReader.self, HEIFReader.self, QuickTimeReader.self, PNGReader.self, TIFFReader.self, WebPReader.self,
    CR3Reader.self, RAFReader.self, CRWReader.self, GIFReader.self, JXLReader.self, BMPReader.self,
    AVIReader.self, MatroskaReader.self, MPEGTSReader.self, MPEGPSReader.self, ASFReader.self, PSDReader.self,
]

/// What the bytes are, by themselves alone: nil when they are no picture and no video. A read of 4 KiB; TIFF-based
/// formats whose first directory lies elsewhere cost a second one, hostile bytes at most 20.
public func identifyMedia(_ source: some ByteSource) -> MediaType? {
    let region = Region(BoundedReader(source, headBytes: ReadLimits.identifyBytes))
    for reader in formatReaders {
        if let type = reader.identify(region) { return type }
    }
    return nil
}

/// What a picture or video says about itself; nil when the bytes are neither. Hostile bytes cost at most
/// 1 MiB of reading, in at most 64 reads, and bounded memory; a common JPEG costs one read of 64 KiB.
public func readFacts(_ source: some ByteSource) -> MediaFacts? {
    let region = Region(BoundedReader(source))
    for reader in formatReaders {
        guard let type = reader.identify(region) else { continue }
        var facts = MediaFacts(type: type)
        reader.read(region, into: &facts)
        return facts
    }
    return nil
}
