import LinuxIO
import VaultCrypto
import VaultFormat

/// Writing whole pages of the host. Before a part of a page can be changed, the kernel must read the page from the disk,
/// and with several spaces every page has bytes.
extension Space {
    /// Writes the first `count` bytes of `buffer`, extents that begin at a reserved sector. With several spaces random
    /// bytes are written behind them up to the end of the host's page, if those sectors are free, or are part of the
    /// same run and so about to be written. The next write begins there, and finds the page in the cache.
    ///
    /// - Parameters:
    ///   - buffer: a page longer than `count` at least.
    ///   - isLast: whether the run ends here.
    func writePages(
        _ sector: UInt64, _ buffer: UnsafeMutableRawBufferPointer, _ count: Int, isLast: Bool
    ) throws(StoreError) {
        let end = sector + UInt64(count / Geometry.sectorBytes)
        let rest =
            grows
            ? 0
            : (Geometry.sectorsPerPage - Int(end % UInt64(Geometry.sectorsPerPage))) % Geometry.sectorsPerPage
        let isFree = rest > 0 && isLast && reserveRest(end, rest)
        defer {
            // The segment's bits are in memory, because sectors were reserved.
            if isFree { lock.withLock { try? sectors.abandon(end, rest) } }
        }
        var written = count
        if rest > 0, isFree || !isLast {
            fillRandom(buffer.slice(count, rest * Geometry.sectorBytes))
            written += rest * Geometry.sectorBytes
        }
        try files.write(sector, UnsafeRawBufferPointer(buffer.slice(0, written)))
    }

    /// Reserves the sectors up to a page's end; returns false if one is in use.
    private func reserveRest(_ sector: UInt64, _ count: Int) -> Bool {
        // The mount that this one took over from may still be writing there.
        guard claim?.hasTakenOver != true,
            lock.withLock({ (try? sectors.reserve(sector, count)) ?? false })
        else { return false }
        let range = sector..<sector + UInt64(count)
        do throws(StoreError) {
            if try isReferenced?(range) != true { return true }
        } catch {
            // What cannot be known may be in use.
        }
        lock.withLock { try? sectors.abandon(sector, count) }
        return false
    }
}
