import Foundation
import PhotoImaging

/// A small file of every family of formats, whole and sound, for tests and the fuzzer to damage.
package enum Samples {
    package static let all: [(name: String, bytes: [UInt8])] = {
        let exif = Picture.camera().bytes
        let packet = Picture.xmp(#"xmp:CreateDate="2012-01-02T03:04:05""#)
        let keyed = Picture.keyed([("com.apple.quicktime.creationdate", "2020-05-12T01:30:00+0200")])
        let movie =
            Picture.movieHeader(3_000_000_000) + keyed
            + Picture.track(width: 9, height: 9, matrix: Picture.upright)
        let iptc = Picture.photoshopSegment([(0x0404, Picture.iptc(date: "20140203", time: "101112"))])
        let packed = Data(base64Encoded: dynamicBlock).map { [UInt8]($0) } ?? []
        let text = Array("XML:com.adobe.xmp\0".utf8) + [1, 0, 0, 0] + packed
        return [
            ("jpeg", Picture.jpeg([Picture.exifSegment(exif), Picture.xmpSegment(packet), iptc])),
            ("tiff", Picture.camera(isBig: true).bytes),
            ("rw2", TIFFBuilder(magic: 0x55, main: [.raw(0x002E, type: 7, Picture.jpeg([]))]).bytes),
            ("heic", Picture.heif("heic", exif: exif, xmp: packet, transforms: [Picture.box("irot", [3])])),
            ("png", Picture.png([("eXIf", exif), ("iTXt", text)], images: 0)),
            (
                "webp",
                Picture.webp([("VP8X", [UInt8](repeating: 1, count: 10)), ("EXIF", exif), ("XMP ", packet)])
            ),
            ("gif", Picture.gif(packet)), ("cr3", Picture.cr3()), ("crw", Picture.crw()),
            ("raf", Picture.raf()),
            ("x3f", Picture.x3f(Picture.jpeg([Picture.exifSegment(exif)]), seconds: "978350644")),
            ("mrw", Picture.mrw(exif)),
            ("jp2", Picture.jp2(Picture.box("uuid", Array("JpgTiffExif->JP2".utf8) + exif))),
            ("mp4", Picture.ftyp("isom") + Picture.box("moov", movie)),
            ("avi", Picture.avi("2017:02:18 09:41:27")),
            ("matroska", Picture.matroska(1)), ("ts", Picture.transportStream(step: 192)),
            (
                "jxl",
                Picture.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + Picture.box("Exif", [0, 0, 0, 0] + exif)
            ),
            (
                "jxl-brob",
                Picture.box("JXL ", [0x0D, 0x0A, 0x87, 0x0A])
                    + Picture.box("brob", Array("Exif".utf8) + Picture.storedBrotli([0, 0, 0, 0] + exif))
            ),
            ("asf", Picture.asf(since1601: 13_000_000_000)), ("xmp", packet),
        ]
    }()

    /// An XMP packet with xmp:CreateDate 2009-08-07 06:05:04, packed by zlib with a code of its own.
    package static let dynamicBlock = """
        eNqF181q20AYheFb0S6rkPn+5kcoXnWfTW7AtZWiUttBUYkvv9m1nQM6W6EXBA/SGU338X55v8zb8TCt57fx2/xxWpf3bbld\
        h/m+fF04bvPrcplf1uXHcj3+en7QlNpjqo+pvKY8phiTPxym82n8+P3953zaDp+39ZyG4/U8XG7rPNzehmUb0vT0zy1Df3+T\
        1heyX1SrfaH7RYnSF7Zf5JL7wveLaNEXQQrxvsj7hZv1RdkvLLQv6n6hRfqi7RfSwFwIuiREJ+oK6ELUm4O6EPaagV2Ie6ng\
        LgS+JIAXIp8V5IXQhwO9EHvPYC8E3yrgK8HXBvjK8AVfeaIvBvpK9APwleC3AvhK8GsDfCX4VQBfCX4xwFeCnwPwleBHAXwj\
        +F4B3wi+J8A3gm+KH3yCrw76RvQlg74xfcA3gg/0RuibAr1V9lRAb4S+ZKD3xDYV6F3YqAK9K1tVoHdjs4pj72xXgd6DDSvY\
        e2bLCvpO9EVA34m+Ab4T/BaAH4ktK+CHsGUF/GAHvQT4wU56CvjBjnqOR71gywr4wV78CvjBTnsJ8IMd9xT043/96an7Pfi6\
        8vff4Q+0uiH0
        """
}
