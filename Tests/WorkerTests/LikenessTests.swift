import CTurboJPEG
import Foundation
import TestSupport
import Testing

@testable import PhotoImaging

extension WorkerTests {
    @Suite("Decoders: likeness") struct LikenessTests {
        let workers = makeWorkers()

        /// A picture of smooth shapes that depend on `seed`, cut by `cut` pixels at each side.
        private func picture(
            _ seed: Int, width: Int = 256, height: Int = 192, cut: Int = 0, quality: Int32 = 90,
            light: Double = 1
        ) -> [UInt8] {
            var random = RandomSource(UInt64(seed))
            func unit() -> Double { Double(random.next() >> 11) / Double(1 << 53 as UInt64) }
            let waves = (0..<12).map { _ in
                (across: unit() * 9, down: unit() * 9, phase: unit() * 6, size: unit())
            }
            var pixels = [UInt8](repeating: 0, count: width * height)
            for y in 0..<height {
                for x in 0..<width {
                    let u = (Double(x + cut) + 0.5) / Double(width + 2 * cut)
                    let v = (Double(y + cut) + 0.5) / Double(height + 2 * cut)
                    let sum = waves.reduce(0) {
                        $0 + $1.size * cos($1.across * u * .pi + $1.down * v * .pi + $1.phase)
                    }
                    pixels[y * width + x] = UInt8(max(0, min(255, (110 + sum * 18) * light)))
                }
            }
            return encoded(pixels, width: width, height: height, quality: quality)
        }

        private func encoded(_ pixels: [UInt8], width: Int, height: Int, quality: Int32) -> [UInt8] {
            let handle = tjInitCompress()!
            defer { tjDestroy(handle) }
            var start: UnsafeMutablePointer<UInt8>?
            var count: UInt = 0
            let result = tjCompress2(
                handle, pixels, Int32(width), 0, Int32(height), TJPF_GRAY.rawValue, &start, &count,
                Int32(TJSAMP_GRAY.rawValue), quality, 0)
            precondition(result == 0)
            defer { tjFree(start) }
            return Array(UnsafeBufferPointer(start: start, count: Int(count)))
        }

        private func hash(_ jpeg: [UInt8]) throws -> UInt64 {
            try #require(try workers.likenessHash(of: jpeg))
        }

        @Test(arguments: 1...4)
        func `a picture remains similar when it is compressed, resized, lit or cut a little`(seed: Int) throws
        {
            let own = try hash(picture(seed))
            let changed = [
                picture(seed, quality: 35), picture(seed, width: 128, height: 96), picture(seed, light: 0.85),
                picture(seed, light: 1.15), picture(seed, width: 254, height: 190, cut: 1),
            ]
            for jpeg in changed { #expect(try (hash(jpeg) ^ own).nonzeroBitCount <= 7) }
            #expect(try hash(picture(seed)) == own)
            for other in 5...8 { #expect(try (hash(picture(other)) ^ own).nonzeroBitCount > 12) }
        }

        @Test func `a picture without contrast has no hash, and a damaged one none either`() throws {
            let plain = encoded([UInt8](repeating: 90, count: 64 * 64), width: 64, height: 64, quality: 90)
            #expect(try workers.likenessHash(of: plain) == nil)
            #expect(throws: ThumbnailError.undecodable) {
                _ = try workers.likenessHash(of: Array("no picture".utf8))
            }
        }

        @Test(arguments: [(1, 1), (1, 300), (300, 1), (31, 33)])
        func `a picture of any size has a hash`(width: Int, height: Int) throws {
            // As large as a pixel, it has no contrast.
            let found = try workers.likenessHash(of: picture(9, width: width, height: height))
            #expect((found != nil) == (width * height > 1))
        }
    }
}
