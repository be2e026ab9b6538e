import CTurboJPEG
import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

private let width = 640
private let height = 480

extension WorkerTests {
    /// The distance of thumbnails from an ideal filter of the same pixels.
    @Suite("Decoders: how near a picture is to the ideal") struct QualityTests {
        let workers = makeWorkers()
        /// PSNR that every picture has at least.
        private static let decibelsMin = 35.0

        enum Scene: CaseIterable {
            /// Slow shades with a few edges.
            case ordinary
            /// Every channel of every pixel at random: no JPEG loses more.
            case noise
            /// Red and cyan by turns, of one brightness: colour at half resolution would lose them.
            case stripes

            /// Red, green and blue of a pixel.
            func color(_ x: Int, _ y: Int, _ random: inout RandomSource) -> [UInt8] {
                switch self {
                case .ordinary:
                    let isInside = (x - 320) * (x - 320) + (y - 240) * (y - 240) < 150 * 150
                    return [UInt8(x * 255 / width), UInt8(y * 255 / height), isInside ? 200 : 60]
                case .noise:
                    let word = random.next()
                    return [UInt8(word & 0xFF), UInt8(word >> 8 & 0xFF), UInt8(word >> 16 & 0xFF)]
                case .stripes:
                    return x / 4 % 2 == 0 ? [200, 40, 40] : [10, 120, 120]
                }
            }

            fileprivate func draw() -> [[UInt8]] {
                var random = RandomSource(7)
                return (0..<height).map { y in (0..<width).flatMap { x in color(x, y, &random) } }
            }
        }

        /// Each scene's rows, and as a PNG.
        private static let pictures = Dictionary(
            uniqueKeysWithValues: Scene.allCases.map { scene -> (Scene, (rows: [[UInt8]], png: [UInt8])) in
                let rows = scene.draw()
                return (scene, (rows, TestPNG(width: width, height: height).encode(rows)))
            })

        @Test(
            arguments: Scene.allCases,
            [
                PictureSize(fitting: 200), PictureSize(fitting: 540),
                PictureSize(width: 150, height: 150, isFilled: true),
            ])
        func `a picture is near the ideal`(scene: Scene, size: PictureSize) throws {
            let (rows, png) = try #require(Self.pictures[scene])
            let jpeg = try workers.makeThumbnail(of: MemorySource(bytes: png), type: .png, size: size)
            let made = try #require(DecodedThumbnail(jpeg))
            let ideal = Ideal(rows, size)
            #expect(made.size == ideal.size)
            let decibels = ideal.decibels(made.rgb)
            #expect(decibels >= Self.decibelsMin, "\(scene) \(size): \(decibels) dB")
        }

        /// Transparent stripes are white ones, at their edges too.
        @Test func `transparency is laid on white as a whole`() throws {
            let isFree: (Int) -> Bool = { $0 / 4 % 2 == 0 }
            let clear = (0..<height).map { _ in
                (0..<width).flatMap { isFree($0) ? [0, 0, 0, 0] : [90, 40, 140, 255] as [UInt8] }
            }
            let white = (0..<height).map { _ in
                (0..<width).flatMap { isFree($0) ? [255, 255, 255] : [90, 40, 140] as [UInt8] }
            }
            let size = PictureSize(fitting: 400)
            let png = TestPNG(width: width, height: height, kind: .colorWithAlpha).encode(clear)
            let jpeg = try workers.makeThumbnail(of: MemorySource(bytes: png), type: .png, size: size)
            let decibels = Ideal(white, size).decibels(try #require(DecodedThumbnail(jpeg)).rgb)
            #expect(decibels >= Self.decibelsMin, "\(decibels) dB")
        }

        /// A picture that loses little anyway is written as before.
        @Test func `an ordinary picture costs no more`() throws {
            let png = try #require(Self.pictures[.ordinary]).png
            for (side, subsampling) in [(200, TJSAMP_444), (540, TJSAMP_420)] {
                let jpeg = try workers.makeThumbnail(of: MemorySource(bytes: png), type: .png, box: side)
                #expect(manner(of: jpeg) == Manner(subsampling: subsampling, firstDivisor: 2))
            }
        }

        private struct Manner: Equatable {
            var subsampling: TJSAMP
            /// libjpeg's divisor of a block's mean: 16 at quality 50, 2 at 93 (ITU-T T.81, table K.1).
            var firstDivisor: UInt8
        }

        private func manner(of jpeg: [UInt8]) -> Manner? {
            guard let table = Data(jpeg).range(of: Data([0xFF, 0xDB]))?.upperBound else { return nil }
            let handle = tjInitDecompress()!
            defer { tjDestroy(handle) }
            var (width, height, subsampling, colorSpace): (Int32, Int32, Int32, Int32) = (0, 0, 0, 0)
            tjDecompressHeader3(handle, jpeg, UInt(jpeg.count), &width, &height, &subsampling, &colorSpace)
            return Manner(subsampling: TJSAMP(UInt32(subsampling)), firstDivisor: jpeg[table + 3])
        }
    }
}

/// A picture made smaller in one step by a Lanczos filter of three lobes, in floating point: the reference.
private struct Ideal {
    let size: PixelSize
    /// Red, green and blue, row by row.
    private var samples: [Double] = []

    init(_ rows: [[UInt8]], _ box: PictureSize) {
        let source = PixelSize(width: rows[0].count / 3, height: rows.count)
        size = source.placed(in: box)
        let scale = max(
            Double(size.width) / Double(source.width), Double(size.height) / Double(source.height))
        let across = Self.weights(source.width, size.width, part: Double(size.width) / scale)
        let down = Self.weights(source.height, size.height, part: Double(size.height) / scale)
        for taps in down {
            var line = [Double](repeating: 0, count: source.width * 3)
            line.withUnsafeMutableBufferPointer { line in
                for (index, weight) in taps {
                    rows[index].withUnsafeBufferPointer { row in
                        for x in 0..<line.count { line[x] += weight * Double(row[x]) }
                    }
                }
            }
            for taps in across {
                for channel in 0..<3 {
                    samples.append(taps.reduce(0) { $0 + $1.weight * line[$1.index * 3 + channel] })
                }
            }
        }
    }

    /// The weights of each sample of a line's middle `part`.
    private static func weights(_ count: Int, _ target: Int, part: Double) -> [[(index: Int, weight: Double)]]
    {
        let step = min(part, Double(count)) / Double(target)
        let start = (Double(count) - step * Double(target)) / 2
        return (0..<target).map { number in
            let center = start + (Double(number) + 0.5) * step
            let taps = (0..<count).compactMap { index -> (index: Int, weight: Double)? in
                let x = abs(Double(index) + 0.5 - center) / step * .pi
                if x >= 3 * .pi { return nil }
                return (index, x < 1e-9 ? 1 : 3 * sin(x) * sin(x / 3) / (x * x))
            }
            let sum = taps.reduce(0) { $0 + $1.weight }
            return taps.map { ($0.index, $0.weight / sum) }
        }
    }

    /// PSNR of a picture against this one.
    func decibels(_ rgb: [UInt8]) -> Double {
        let sum = zip(samples, rgb).reduce(0) { sum, pair in
            let difference = min(max(pair.0, 0), 255) - Double(pair.1)
            return sum + difference * difference
        }
        return 10 * log10(255 * 255 / (sum / Double(samples.count)))
    }
}
