import Foundation
import PhotoImaging
import Testing

private let photos = ProcessInfo.processInfo.environment["OBSCURA_PHOTOS"] ?? "/work/shared/photos"

extension WorkerTests {
    /// Real and damaged files: every picture that another program decodes has a thumbnail of the right size.
    @Suite(
        "Decoders: the shared collection",
        .enabled(if: FileManager.default.fileExists(atPath: photos + "/expected.tsv")))
    struct CorpusTests {
        @Test func `every file of the collection is answered`() throws {
            let table = try String(contentsOfFile: photos + "/expected.tsv", encoding: .utf8)
            let workers = makeWorkers()
            var made = 0
            for line in table.split(separator: "\n").dropFirst() {
                let fields = line.split(separator: "\t", omittingEmptySubsequences: false)
                guard let data = FileManager.default.contents(atPath: "\(photos)/dev/\(fields[0])"),
                    !data.isEmpty
                else { continue }
                let source = MemorySource(bytes: Array(data))
                guard let type = identifyMedia(source), ThumbnailWorkers.decodes(type), !type.isRaw else {
                    continue
                }
                let thumbnail = try? workers.makeThumbnail(of: source, type: type, box: 256)
                guard let width = Int(fields[4]), let height = Int(fields[5]),
                    width * height <= WorkerProtocol.pixelsMax, fields[9] == "y" || fields[9] == "warn"
                else { continue }
                let stored = PixelSize(width: width, height: height)
                let upright = (5...8).contains(Int(fields[6]) ?? 1) ? stored.transposed : stored
                let size = thumbnail.flatMap { DecodedThumbnail($0)?.size }
                #expect(
                    size == upright.fitted(in: PixelSize(width: 256, height: 256)),
                    "\(fields[0]) \(fields[9])")
                made += size == nil ? 0 : 1
            }
            #expect(made > 0)
            print("corpus: \(made) thumbnails")
        }
    }
}
