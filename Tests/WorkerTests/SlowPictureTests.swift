import CTurboJPEG
import Foundation
import LinuxIO
import Synchronization
import TestSupport
import Testing

@testable import PhotoImaging

extension WorkerTests {
    /// A picture that uses much processor time goes behind all others.
    @Suite("Decoders: slow pictures") struct SlowPictureTests {
        /// Processor time of a quick picture here. A good one takes a fiftieth of it, a stalling one 10 seconds.
        private static let quickMilliseconds = 100

        private let good = TestPicture(width: 32, height: 24).jpeg

        /// Pictures that are being made, each on a thread of its own, until `end`.
        private final class Makings: @unchecked Sendable {
            private let cancellation = Cancellation()
            private let group: DispatchGroup
            private let found: Results

            final class Results: Sendable {
                let all = Mutex<[Result<Int, ThumbnailError>]>([])
            }

            init(_ pictures: [[UInt8]], _ type: MediaType, by workers: ThumbnailWorkers) {
                let found = Results()
                self.found = found
                group = onThreads(pictures.count) { [cancellation] index in
                    let result = Result { () throws(ThumbnailError) in
                        try workers.makeThumbnail(
                            of: MemorySource(bytes: pictures[index]), type: type,
                            size: PictureSize(fitting: 64), unless: cancellation
                        ).count
                    }
                    found.all.withLock { $0.append(result) }
                }
            }

            /// The results so far.
            var results: [Result<Int, ThumbnailError>] { found.all.withLock { $0 } }

            /// The results, when all are finished.
            func finished() -> [Result<Int, ThumbnailError>] {
                group.wait()
                return results
            }

            /// Cancels those that are not finished, and returns all results.
            func end() -> [Result<Int, ThumbnailError>] {
                cancellation.cancel()
                group.wait()
                return results
            }
        }

        private func stall(_ count: Int, _ workers: ThumbnailWorkers) -> Makings {
            Makings([[UInt8]](repeating: [1, 2, 3], count: count), .gif, by: workers)
        }

        @Test(arguments: [1, 2, 3])
        func `pictures that compute without end hold up no other`(count: Int) throws {
            let workers = makeWorkers(
                count: count, trial: "stall-unless-jpeg", quickMilliseconds: Self.quickMilliseconds)
            let endless = stall(6, workers)
            try #require(eventually { !workerProcesses().isEmpty })
            for _ in 1...3 { _ = try workers.thumbnail(good) }
            // As many as are left by one worker are being made, the others wait.
            let slow = max(1, count - 1)
            #expect(eventually { workers.slowWaitingCount == 6 - slow })
            #expect(workers.waitingCount == 0)
            _ = try workers.thumbnail(good)
            #expect(endless.results.isEmpty)
            #expect(endless.end() == [Result<Int, ThumbnailError>](repeating: .failure(.cancelled), count: 6))
            #expect(workers.slowWaitingCount == 0)
            _ = try workers.thumbnail(good)
            workers.shutDown()
            #expect(workerProcesses().isEmpty)
        }

        /// Each occupies a request of the mount.
        @Test func `few callers wait for slow pictures`() throws {
            let workers = makeWorkers(
                trial: "stall-unless-jpeg", quickMilliseconds: Self.quickMilliseconds)
            let most = WorkerPool.slowCallersMax
            let endless = stall(most + 2, workers)
            try #require(eventually { endless.results.count == 2 })
            #expect(endless.results == [.failure(.workerFailed), .failure(.workerFailed)])
            #expect(workers.slowWaitingCount == most - 1)
            _ = try workers.thumbnail(good)
            #expect(endless.end().count { $0 == .failure(.cancelled) } == most)
        }

        @Test func `a slow picture has the lower priority`() throws {
            let workers = makeWorkers(trial: "stall-unless-jpeg", quickMilliseconds: 1)
            let endless = stall(1, workers)
            let hasGivenWay = eventually {
                workerProcesses().contains { worker in
                    workerProcesses(of: worker).contains {
                        getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t($0))
                            == WorkerProtocol.slowNiceness
                    }
                }
            }
            #expect(hasGivenWay)
            #expect(endless.end() == [.failure(.cancelled)])
        }

        /// All exceed a millisecond, some are begun again; then no process is left that gives way.
        @Test func `slow pictures are made`() throws {
            let picture = TestPicture(width: 1600, height: 1200, isProgressive: true).jpeg
            let workers = makeWorkers(count: 2, quickMilliseconds: 1)
            let makings = Makings([[UInt8]](repeating: picture, count: 6), .jpeg, by: workers)
            #expect(try Set(makings.finished().map { try $0.get() }).count == 1)
            #expect(DecodedThumbnail(try workers.thumbnail(picture))?.corners == Corner.stored)
            #expect(workerProcesses().count <= 2)
        }

        @Test func `workers for quick pictures refuse others, which those for slow ones make`() throws {
            let quick = makeWorkers(
                trial: "stall-unless-jpeg", quickMilliseconds: Self.quickMilliseconds, pictures: .quick)
            #expect(stall(1, quick).finished() == [.failure(.slow)])
            _ = try quick.thumbnail(good)
            let slow = makeWorkers(count: 2, pictures: .slow)
            _ = try slow.thumbnail(good)
            #expect(workerProcesses().count <= 1)
        }

        // MARK: Scans

        /// A JPEG whose last scan is there so many times more.
        private func repeatingLastScan(of jpeg: [UInt8], _ count: Int) throws -> [UInt8] {
            let start = try #require(
                jpeg.indices.dropLast().last { jpeg[$0] == 0xFF && jpeg[$0 + 1] == 0xDA })
            let scan = jpeg[start..<jpeg.count - 2]
            return jpeg.dropLast(2) + [[UInt8]](repeating: Array(scan), count: count).joined() + [0xFF, 0xD9]
        }

        /// Decoding all scans would take ten times as long as the picture's thousands of pixels justify.
        @Test func `a JPEG of 300 scans costs its own thumbnail at most`() throws {
            let picture = TestPicture(width: 6000, height: 4000, kind: .gray, isProgressive: true).jpeg
            let hostile = try repeatingLastScan(of: picture, 300)
            let workers = makeWorkers(quickMilliseconds: 50)
            let makings = Makings([[UInt8]](repeating: hostile, count: 6), .jpeg, by: workers)
            try #require(eventually { workers.waitingCount + workers.slowWaitingCount >= 4 })
            _ = try workers.thumbnail(good)
            #expect(makings.results.count < 6)
            _ = makings.end()
        }

        /// After a hundred scans, more than any program writes, the rest is left out. Here it would paint all white.
        @Test func `scans beyond a hundred are not read`() throws {
            let black = TestPicture(width: 64, height: 64, kind: .gray, isProgressive: true)
            let white = black.encode([UInt8](repeating: 255, count: 64 * 64))
            let dark = black.encode([UInt8](repeating: 0, count: 64 * 64))
            let scans = dark.indices.dropLast().count { dark[$0] == 0xFF && dark[$0 + 1] == 0xDA }
            let painting = try firstScan(of: white)
            for (count, expected) in [(98, 255), (99, 255), (100, 0), (299, 0)] {
                let longer = try repeatingLastScan(of: dark, count - scans)
                let bytes = Array(longer.dropLast(2)) + painting + [0xFF, 0xD9]
                let seen = try #require(DecodedThumbnail(try makeWorkers().thumbnail(bytes)))
                #expect(abs(Int(seen.green(32, 32)) - expected) < 20)
            }
        }

        /// The first scan and the tables before it.
        private func firstScan(of jpeg: [UInt8]) throws -> [UInt8] {
            func marker(_ code: UInt8, from: Int) -> Int? {
                (from..<jpeg.count - 1).first { jpeg[$0] == 0xFF && jpeg[$0 + 1] == code }
            }
            let tables = try #require(marker(0xC4, from: 0))
            let scan = try #require(marker(0xDA, from: tables))
            let next = try #require(
                (scan + 2..<jpeg.count - 1).first { jpeg[$0] == 0xFF && jpeg[$0 + 1] != 0 })
            return Array(jpeg[tables..<next])
        }
    }
}
