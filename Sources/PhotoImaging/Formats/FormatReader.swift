/// One family of formats: how to identify it, and how to read its facts. To add a format, write one file with a reader
/// and list it in ``formatReaders``.
protocol FormatReader: SendableMetatype {
    /// The type of the data in `region`, or nil if it is not of this family. Reads the first
    /// ``ReadLimits/identifyBytes`` bytes, and little else.
    static func identify(_ region: Region) -> MediaType?

    /// Adds the facts that it finds to `facts`, whose type is the answer of `identify`. Damage ends the reading, never
    /// the program; facts found before it stay.
    static func read(_ region: Region, into facts: inout MediaFacts)
}

/// All formats, the most frequent first. No two of them claim the same bytes.
let formatReaders: [any FormatReader.Type] = [
    JPEGReader.self, HEIFReader.self, QuickTimeReader.self, PNGReader.self, TIFFReader.self, WebPReader.self,
    CR3Reader.self, RAFReader.self, CRWReader.self, GIFReader.self, JXLReader.self, BMPReader.self,
    AVIReader.self, MatroskaReader.self, MPEGTSReader.self, MPEGPSReader.self, ASFReader.self, OggReader.self,
    FLVReader.self, DVReader.self, PSDReader.self, X3FReader.self, MRWReader.self, JPEG2000Reader.self,
]

/// The type of a picture or video, from its bytes alone; nil if they are neither. Costs a read of 4 KiB; TIFF-based
/// formats whose first directory lies elsewhere cost a second one, hostile bytes at most 20.
public func identifyMedia(_ source: some ByteSource) -> MediaType? {
    let region = Region(BoundedReader(source, headBytes: ReadLimits.identifyBytes))
    for reader in formatReaders {
        if let type = reader.identify(region) { return type }
    }
    return nil
}

/// The metadata of a picture or video; nil if the bytes are neither. Hostile bytes cost at most 1 MiB of reading, in at
/// most 64 reads, and bounded memory; a common JPEG costs one read of 64 KiB.
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
