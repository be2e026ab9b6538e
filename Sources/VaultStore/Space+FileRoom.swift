import LinuxIO
import Synchronization
import VaultFormat

/// How many files of a size have room in a space.
public struct FileRoom: Sendable, Equatable {
    /// Bytes that can surely be written, in files of any size from 4 KiB on.
    public var bytes: UInt64
    /// Empty files that can surely be made.
    public var files: UInt64
}

/// Room for files. A file takes sectors for its bytes and its identity record, and page slots for its rows: both must
/// be there, and more slots take segments that content would have.
extension Space {
    /// The room for new files.
    ///
    /// - Parameters:
    ///   - reserved: bytes reserved for accepted writes.
    ///   - purgeable: bytes of photos that make way for new files.
    public func fileRoom(besides reserved: UInt64, purgeable: UInt64) -> FileRoom {
        let use = capacity
        let available = use.available - min(use.available, reserved) + purgeable
        return lock.withLock {
            let slotsPerFile = Self.slotsPerFile
            let bitmaps = min(Self.bitmapsPerCommit, sectors.segmentCount * sectors.pagesPerSegment)
            let least = leastSlots(
                pages: limits.reservedSlots / 2 + Self.pagesPerChange, .addition, bitmaps: bitmaps)
            let made = Double(purgeable / Self.purgedBytesUsual) * slotsPerFile
            let slots = max(0, Double(slotsAfterCommits - least)) + made
            let returnable = returnableBytes
            func files(_ bytes: Int) -> Double {
                let sectors = (bytes == 0 ? 0 : Geometry.sectors(forPlaintext: bytes)) + Self.sectorsPerRecord
                return filesThatFit(
                    bytesPerFile: Double(sectors * Geometry.sectorBytes), slotsPerFile,
                    content: Double(available), slots: slots, returnable: returnable)
            }
            let small = files(Geometry.pageBytes) * Double(Geometry.pageBytes)
            // Larger files are split where the room is scattered, and never take more than the smallest.
            let bytes = min(small * Self.tolerance, Double(available) * Self.largeShare)
            return FileRoom(bytes: UInt64(bytes), files: UInt64(files(0)))
        }
    }

    /// An identity record takes a sector, or two where the names are long.
    private static let sectorsPerRecord = 1
    /// The shown room may exceed what files of 4 KiB fill by this factor. Large files get a little less.
    private static let tolerance = 1.04
    private static let largeShare = 0.99

    /// Pages of a change, for which additions stop.
    private static let pagesPerChange = 32
    /// Pages of the sector bitmap that the commits before a refusal change: then nothing may be shown any more.
    private static let bitmapsPerCommit = 32
    /// Page slots that the rows of a file take.
    private static let slotsPerFile = 0.085
    /// Bytes of a photo that makes way.
    private static let purgedBytesUsual: UInt64 = 4 << 20

    /// How many files fit, if the catalogue takes more segments or more of the host's disk as it grows. Under `lock`.
    ///
    /// - Parameter returnable: `returnableBytes`, which take some time to count.
    private func filesThatFit(
        bytesPerFile: Double, _ slotsPerFile: Double, content: Double, slots: Double, returnable: UInt64
    ) -> Double {
        var best = min(content / bytesPerFile, slots / slotsPerFile)
        let pairBytes = Double(2 * files.segmentBytes)
        guard !grows else {
            let left = content - best * bytesPerFile
            let host = lastHostBytes.load(ordering: .relaxed)
            let disk = Double(host + returnable) - Double(stepBytes)
            // Where little of it is whole pages, files are in pieces, and take more rows.
            let unused = Double(host + reusableBytes + 1)
            let scattered = host < Self.hostPlentyBytes ? 1 - Double(host + returnable) / unused : 0
            let diskPerFile = slotsPerFile * (1 + scattered) * Double(2 * Geometry.pageBytes)
            return best + min(max(0, left) / (bytesPerFile + diskPerFile), max(0, disk) / diskPerFile)
        }
        var (content, slots) = (content, slots)
        var added = 0
        let excluded = excludedForPages
        while added < pairsToAdd {
            added += 1
            slots += Double(slotsPerPair)
            // Segments that are set aside for pages are not counted as content's.
            if 2 * added > excluded { content -= pairBytes }
            guard content > 0 else { break }
            best = max(best, min(content / bytesPerFile, slots / slotsPerFile))
        }
        return best
    }

    /// Disk of free sectors that a full host can have back for slots, as far as their bits are in memory. Under `lock`.
    private var returnableBytes: UInt64 {
        let host = lastHostBytes.load(ordering: .relaxed)
        guard grows, host < Self.hostPlentyBytes else { return 0 }
        return min(reusableBytes, UInt64(sectors.freePages * Geometry.pageBytes))
    }

    /// Pairs of segments that the catalogue can still get: where none are free, content makes way. Under `lock`.
    private var pairsToAdd: Int {
        let byShare = sectors.segmentCount / 4 - pairs.count
        let byFormat = min(RootLayout.pairsMaxWithRoom, RootLayout.slotsMax / slotsPerPair) - pairs.count
        return max(0, min(byShare, byFormat))
    }

    /// Segments that are set aside for pages. Under `lock`.
    private var excludedForPages: Int {
        sectors.excluded.subtracting(lostSegments).count - 2 * pairs.count
    }
}
