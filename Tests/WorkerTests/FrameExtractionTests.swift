import Foundation
import Testing

@testable import PhotoImaging

/// A video of one grey frame of 64 by 64 pixels: HEVC, perceptual quantizer with the code of about 200 nits, BT.2020.
private let videoHDR = """
    AAAAHGZ0eXBpc29tAAACAGlzb21pc28ybXA0MQAAAAhmcmVlAAAAGW1kYXQAAAANKAGvHYD3AVuqhh+zPAAAA0Jtb292AAAAbG12
    aGQAAAAAAAAAAAAAAAAAAAPoAAAAKAABAAABAAAAAAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAEAAAAAA
    AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAACAAACkXRyYWsAAABcdGtoZAAAAAMAAAAAAAAAAAAAAAEAAAAAAAAAKAAAAAAAAAAA
    AAAAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAEAAAAAAAAAAAAAAAAAAEAAAAAAQAAAAEAAAAAAACRlZHRzAAAAHGVsc3QAAAAAAAAA
    AQAAACgAAAAAAAEAAAAAAgltZGlhAAAAIG1kaGQAAAAAAAAAAAAAAAAAADIAAAACAFXEAAAAAAAtaGRscgAAAAAAAAAAdmlkZQAA
    AAAAAAAAAAAAAFZpZGVvSGFuZGxlcgAAAAG0bWluZgAAABR2bWhkAAAAAQAAAAAAAAAAAAAAJGRpbmYAAAAcZHJlZgAAAAAAAAAB
    AAAADHVybCAAAAABAAABdHN0YmwAAAEQc3RzZAAAAAAAAAABAAABAGh2YzEAAAAAAAAAAQAAAAAAAAAAAAAAAAAAAAAAQABAAEgA
    AABIAAAAAAAAAAEMTGF2YyBsaWJ4MjY1AAAAAAAAAAAAAAAAAAAAAAAAAAAY//8AAAB5aHZjQwECIAAAAJAAAAAAAB7wAPz9+voA
    AA8DoAABABhAAQwB//8CIAAAAwCQAAADAAADAB6VmAmhAAEALEIBAQIgAAADAJAAAAMAAAMAHqAggQTZZWaSTK5qEiASCAAAAwAI
    AAADAMhAogABAAdEAcFytCJAAAAACmZpZWwBAAAAABNjb2xybmNseAAJABAACQAAAAAUYnRydAAAAAAAAA1IAAANSAAAABhzdHRz
    AAAAAAAAAAEAAAABAAACAAAAABxzdHNjAAAAAAAAAAEAAAABAAAAAQAAAAEAAAAUc3RzegAAAAAAAAARAAAAAQAAABRzdGNvAAAA
    AAAAAAEAAAAsAAAAPXVkdGEAAAA1bWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAbWRpcmFwcGwAAAAAAAAAAAAAAAAIaWxzdA==
    """

extension WorkerTests {
    @Suite("Decoders: frames of videos") struct FrameExtractionTests {
        private let home: DataHome
        private let video: [UInt8]

        init() throws {
            home = try DataHome()
            video = Array(try #require(Data(base64Encoded: videoHDR, options: .ignoreUnknownCharacters)))
        }

        private func facts(isHDR: Bool, type: MediaType = .mp4) -> MediaFacts {
            var facts = MediaFacts(type: type)
            facts.isHDR = isHDR
            facts.durationSeconds = 12
            return facts
        }

        @Test func `ffmpeg comes first for HDR and last for other videos`() throws {
            let entry = try #require(
                ThumbnailerEntry("[Thumbnailer Entry]\nExec=a %i %o\nMimeType=video/mp4\n"))
            let installed = [ThumbnailerCatalogue.Thumbnailer(entry: entry, program: "/usr/bin/a")]
            func programs(_ facts: MediaFacts?) -> [String] {
                FrameExtraction.thumbnailers(installed, for: facts).map(\.program)
            }
            let hasFFmpeg = isProgram("/usr/bin/ffmpeg")
            let ffmpeg = hasFFmpeg ? ["/usr/bin/ffmpeg"] : []
            #expect(programs(facts(isHDR: true)) == ffmpeg + ["/usr/bin/a"])
            #expect(programs(facts(isHDR: false)) == ["/usr/bin/a"] + ffmpeg)
            #expect(programs(facts(isHDR: false, type: .psd)) == ["/usr/bin/a"])
            #expect(programs(nil) == ["/usr/bin/a"])
            #expect(FrameExtraction.thumbnailers([], for: facts(isHDR: true)).isEmpty)
            let first = try #require(FrameExtraction.thumbnailers(installed, for: facts(isHDR: true)).first)
            #expect(!hasFFmpeg || first.entry.words.contains("1200ms"))
        }

        /// The frame's own code is 148: tone-mapped it is 157, see HEIFTests. The installed program draws another
        /// picture, or none where `isHDR` is false: the marks of HDR are then taken from the file.
        @Test(.enabled(if: isProgram("/usr/bin/ffmpeg")), arguments: [true, false])
        func `ffmpeg draws what installed programs cannot`(isHDR: Bool) throws {
            var bytes = video
            if isHDR {
                try home.add(DataHome.writing(TestPNG().bytes))
            } else {
                try home.add("exit 1")
                let mark = try #require(Data(bytes).range(of: Data("colrnclx".utf8)))
                // BT.709 instead of the perceptual quantizer.
                bytes[mark.upperBound + 3] = 1
            }
            let workers = makeWorkers(installed: home.installed())
            let source = MemorySource(bytes: bytes)
            #expect(readFacts(source)?.isHDR == isHDR)
            let jpeg = try workers.makeThumbnail(of: source, type: .mp4, box: 256)
            let thumbnail = try #require(DecodedThumbnail(jpeg))
            #expect(thumbnail.size == PixelSize(width: 64, height: 64))
            let level = Int(thumbnail.pixel(32, 32)[1])
            #expect(isHDR ? abs(level - 157) <= 3 : abs(level - 148) <= 3, "\(level)")
        }
    }
}
