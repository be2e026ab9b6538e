import ClusterIO
import Glibc
import LinuxIO
import VaultFormat

/// A part of a vault on a cluster, striped over objects.
final class ClusterBytes: PartBytes {
    /// The objects of a part.
    enum Stripe {
        case header
        case segment(SegmentPlace, ClusterLayout)
        /// Of a log with that name.
        case log(String)
    }

    private let vault: VaultCluster
    private let stripe: Stripe
    /// The part's end, once it is known.
    private var end: UInt64?

    private static let objectBytes = ClusterAddress.objectBytes

    init(_ vault: VaultCluster, _ stripe: Stripe) { (self.vault, self.stripe) = (vault, stripe) }

    private func object(_ index: Int) -> String {
        switch stripe {
        case .header: vault.address.header
        case .segment(let place, let layout): layout.object(place.number, index)
        case .log(let log): vault.address.object(ofLog: log, index)
        }
    }

    private func parts(_ range: Range<UInt64>) -> [(index: Int, range: Range<UInt64>)] {
        if case .segment(let place, let layout) = stripe { return layout.parts(range, ofSpace: place.space) }
        return ClusterAddress.parts(range)
    }

    // MARK: Sizes

    func size() throws(Errno) -> UInt64 {
        if let end { return end }
        let found =
            switch stripe {
            case .header: try vault.pool.size(of: object(0)) ?? 0
            case .segment(let place, let layout): try segmentEnd(place.space, layout)
            case .log: try logEnd()
            }
        end = found
        return found
    }

    /// Its objects may be missing in between.
    private func segmentEnd(_ space: Int, _ layout: ClusterLayout) throws(Errno) -> UInt64 {
        var exists = false
        for index in (0..<layout.objectsPerSegment).reversed() {
            guard let size = try vault.pool.size(of: object(index)) else { continue }
            if let end = layout.end(space, index: index, size: size) { return end }
            exists = true
        }
        if exists { return 0 }
        throw .noEntry
    }

    /// A log was written from the beginning on.
    private func logEnd() throws(Errno) -> UInt64 {
        var end: UInt64 = 0
        while let size = try vault.pool.size(of: object(Int(end / Self.objectBytes))) {
            end += size
            if size < Self.objectBytes { break }
        }
        return end
    }

    // MARK: Bytes

    func readAround(
        _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64
    ) throws(Errno) -> (count: Int, unreadable: [Range<Int>]) {
        (try read(bytes, at: offset), [])
    }

    func read(_ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        let end = try size()
        let count = offset < end ? Int(min(UInt64(bytes.count), end - offset)) : 0
        let reads = ClusterAddress.reads(
            bytes.slice(0, count), parts(offset..<offset + UInt64(count)), of: object)
        for (read, found) in zip(reads, try vault.pool.read(reads)) { read.fillHole(after: found) }
        return count
    }

    func write(_ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) {
        // One that writes behind its end has to know it.
        let end = try size()
        var done = 0
        for (index, range) in parts(offset..<offset + UInt64(bytes.count)) {
            let some = bytes.slice(done, range.count)
            try noting { () throws(Errno) in
                if completesRow(index) { try vault.pool.settle() }
                try vault.pool.start(
                    locked(index) + [.write(some, at: range.lowerBound)], on: object(index), .refuse)
            }
            done += range.count
        }
        self.end = max(end, offset + UInt64(bytes.count))
    }

    /// Whether a row of segments may count as whole once an object has all its bytes.
    private func completesRow(_ index: Int) -> Bool {
        guard case .segment(_, let layout) = stripe, layout.layout.isShared else { return false }
        return index == layout.objectsPerSegment - 1
    }

    /// Only of the header, which is one object.
    func truncate(to size: UInt64) throws(Errno) {
        try noting { () throws(Errno) in
            try vault.pool.apply(locked(0) + [.truncation(size)], on: object(0))
        }
        end = size
    }

    func sync() throws(Errno) {
        try noting { () throws(Errno) in
            try vault.pool.settle()
            try vault.lease.requireHeld()
        }
    }

    /// The step by which the header and the objects with roots are changed only under this client's lock.
    private func locked(_ index: Int) throws(Errno) -> [ClusterPool.Step] {
        try vault.lease.requireHeld()
        switch stripe {
        case .header: return [.lock(vault.lease.clusterLock)]
        case .segment(let place, let layout):
            return try vault.lockNeeded(layout, place.number, index).map { [.lock($0)] } ?? []
        case .log: return []
        }
    }

    private func noting(_ body: () throws(Errno) -> Void) throws(Errno) {
        do throws(Errno) { try body() } catch {
            vault.lease.note(error)
            throw error.rawValue == EBUSY ? Errno(ESHUTDOWN) : error
        }
    }
}
