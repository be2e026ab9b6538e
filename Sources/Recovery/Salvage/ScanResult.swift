import CatalogueRows
import Glibc
import LinuxIO
package import PhotoLibrary
import Synchronization
package import VaultFormat
package import VaultStore

/// Adjacent extents of one content, as a run of the catalogue.
package struct FoundRun: Sendable {
    package var content: UInt64
    package var run: ExtentRun

    package var sectors: Range<UInt64> { run.sector..<run.endSector }
}

/// An identity record that authenticates.
package struct FoundRecord: Sendable {
    package var id: UInt64
    package var run: ExtentRun
    package var history: RecordedHistory
    /// Whether it is of a file that a repair made without its newest record, or of the root of a tree that a repair
    /// made while records were away.
    package var isGuess = false
}

/// All extents of a space that authenticate, current or outdated.
package struct ScanResult: Sendable {
    /// By sector.
    package var contents: [FoundRun] = []
    package var thumbnails: [FoundRun] = []
    package var records: [FoundRecord] = []
    /// By content: the end of the extents of which only the descriptor authenticates.
    package var damagedEnds: [UInt64: UInt64] = [:]
    /// The highest generation and the highest content number that were found.
    package var newestGeneration: UInt64 = 0
    package var highestContent: UInt64 = 0
    /// The version of the first record found that a later release wrote; nil if there is none.
    package var newer: NewerVersion?

    package mutating func add(_ found: FoundExtent, _ plain: UnsafeRawBufferPointer?) {
        let descriptor = found.descriptor
        guard let plain = unsafe plain else {
            guard descriptor.role == .content else { return }
            let end = descriptor.offset + UInt64(descriptor.length)
            damagedEnds[descriptor.content] = max(damagedEnds[descriptor.content] ?? 0, end)
            return
        }
        let run = ExtentRun(
            offset: descriptor.offset, length: UInt64(descriptor.length), sector: found.sector,
            generation: descriptor.generation, epoch: descriptor.epoch)
        newestGeneration = max(newestGeneration, descriptor.generation)
        if descriptor.role != .identity && descriptor.content > Geometry.idMax { return }
        switch descriptor.role {
        case .content: Self.append(FoundRun(content: descriptor.content, run: run), to: &contents)
        case .thumbnail: Self.append(FoundRun(content: descriptor.content, run: run), to: &thumbnails)
        case .identity:
            newer = unsafe newer ?? Recorded.newerVersion(plain)
            guard let (history, recorded) = unsafe Recorded.decode(plain) else { return }
            var record = FoundRecord(id: descriptor.content, run: run, history: history)
            if case .inode(let told) = recorded {
                record.isGuess = told.row.flags.isGuess
            }
            records.append(record)
            return
        }
        highestContent = max(highestContent, descriptor.content)
    }

    private static func append(_ found: FoundRun, to runs: inout [FoundRun]) {
        if let last = runs.last, last.content == found.content, last.run.isContinued(by: found.run) {
            runs[runs.count - 1].run.length += found.run.length
        } else {
            runs.append(found)
        }
    }

    package mutating func add(_ other: ScanResult) {
        contents += other.contents
        thumbnails += other.thumbnails
        records += other.records
        damagedEnds.merge(other.damagedEnds) { max($0, $1) }
        newestGeneration = max(newestGeneration, other.newestGeneration)
        highestContent = max(highestContent, other.highestContent)
        newer = newer ?? other.newer
    }

    /// Scans all segments, on all cores. Calls `progress`, on the calling thread, with the number of finished segments.
    package static func scan(
        _ state: NewState, progress: (_ done: Int, _ total: Int) throws(VaultError) -> Void
    ) throws(VaultError) -> ScanResult {
        let segments = state.segmentsToScan
        let scan = SegmentScan(ExtentScan(of: state.space), segments)
        let threads = min(segments.count, coreCount)
        for _ in 0..<threads { startThread { scan.work() } }
        defer { scan.stop(threads) }
        for done in 0...segments.count {
            scan.wait(for: done)
            try progress(done, segments.count)
        }
        return scan.scan
    }
}

/// Scans segments on several threads.
private final class SegmentScan: @unchecked Sendable {
    private let extents: ExtentScan
    private let segments: [Int]
    private let lock = Lock()
    private let change = Condition()
    // All under `lock`.
    private var next = 0
    private var done = 0
    private var ended = 0
    private var isStopping = false
    private var parts: [Int: ScanResult] = [:]

    package init(_ extents: ExtentScan, _ segments: [Int]) {
        (self.extents, self.segments) = (extents, segments)
    }

    package func work() {
        while let place = lock.withLock({ take() }) {
            var scan = ScanResult()
            unsafe extents.scan(segment: segments[place]) { unsafe scan.add($0, $1) }
            lock.withLock {
                parts[place] = scan
                done += 1
                change.signalAll()
            }
        }
        lock.withLock {
            ended += 1
            change.signalAll()
        }
    }

    private func take() -> Int? {
        guard !isStopping, next < segments.count else { return nil }
        next += 1
        return next - 1
    }

    /// Waits until `count` segments are done.
    package func wait(for count: Int) {
        lock.withLock { while done < count { change.wait(lock) } }
    }

    /// Waits until the threads have ended.
    package func stop(_ threads: Int) {
        lock.withLock {
            isStopping = true
            while ended < threads { change.wait(lock) }
        }
    }

    /// All results, by sector.
    package var scan: ScanResult {
        lock.withLock {
            var all = ScanResult()
            for place in segments.indices { if let part = parts[place] { all.add(part) } }
            return all
        }
    }
}
