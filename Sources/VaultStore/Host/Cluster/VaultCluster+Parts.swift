import ClusterIO
import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// Parts of a vault on a cluster, for backups and the restoring of a header.
extension VaultCluster {
    /// The attribute of the header with the name of a backup's log. It is valid while it is named there: a client that
    /// was shut out may still write to an object of a log, but not to the header.
    private static let log = "obscura.log"

    /// Opens a vault for a backup into it, with an empty header if there is no object of this name.
    static func openForCopy(_ address: ClusterAddress) throws(VaultError) -> VaultCluster {
        let pool = try address.connected()
        do throws(Errno) {
            if try pool.size(of: address.header) == nil {
                guard try pool.objects(prefix: address.name + "/").isEmpty else { throw Errno.exists }
                try pool.apply([.creation], on: address.header)
            }
        } catch {
            if error == .exists { throw .notEmpty(address.path) }
            throw CopyTarget.failure(error)
        }
        return VaultCluster(address, pool)
    }

    /// Opens a vault whose header may be missing: then an empty one is made. Throws `notAVault` without any segment.
    static func openForRestoring(
        _ address: ClusterAddress
    ) throws(VaultError) -> (vault: VaultCluster, isMade: Bool) {
        let pool = try address.connected()
        let vault = VaultCluster(address, pool)
        guard try !vault.objects().isEmpty else { throw .notAVault(address.path) }
        do throws(Errno) {
            guard try pool.size(of: address.header) == nil else { return (vault, false) }
            try pool.apply([.creation], on: address.header)
            return (vault, true)
        } catch { throw .system(error, "cannot write the header") }
    }

    // MARK: Opening

    func open(_ part: VaultPart, _ use: PartUse) throws(Errno) -> any PartBytes {
        switch part {
        case .header: return ClusterBytes(self, .header)
        case .segment(let place, let layout):
            let objects = objects(layout)
            if use == .making || use == .replacing { try make(objects.object(place.number)) }
            let segment = ClusterBytes(self, .segment(place, objects))
            _ = try segment.size()
            return segment
        case .copyLog: return ClusterBytes(self, .log(try logName(use)))
        }
    }

    private func make(_ object: String) throws(Errno) {
        try lease.requireHeld()
        do throws(Errno) { try pool.apply([.creation], on: object) } catch
            where error == .exists
        {}
    }

    private func logName(_ use: PartUse) throws(Errno) -> String {
        let name = try pool.attribute(Self.log, of: address.header)
        if !name.isEmpty {
            guard use == .replacing else { return String(decoding: name, as: UTF8.self) }
            try removeLog()
        } else if use == .reading || use == .writing {
            throw .noEntry
        }
        let made = String(randomNumber(), radix: 16)
        try lease.requireHeld()
        try lease.setAttribute(Self.log, to: Array(made.utf8))
        return made
    }

    func segments(_ layout: SegmentLayout) throws(VaultError) -> FoundSegments {
        var found = FoundSegments()
        if layout.isShared {
            for number in 0..<(try segmentCount(layout)) {
                for space in 0..<layout.spaceCount {
                    found.segments.append((SegmentPlace(space: space, number: number), layout.segmentBytes))
                }
            }
            return found
        }
        for number in try listing(layout).numbers {
            let place = SegmentPlace(space: 0, number: number)
            do throws(Errno) {
                found.segments.append((place, try open(.segment(place, layout), .reading).size()))
            } catch { throw .system(error, "cannot open \(name(of: place, layout))") }
        }
        found.missing = (found.segments.last?.place.number ?? -1) + 1 - found.segments.count
        return found
    }

    func name(of place: SegmentPlace, _ layout: SegmentLayout) -> String {
        layout.isShared ? SegmentLayout.sharedName : SegmentLayout.digits(place.number)
    }

    /// A cluster without a manager does not tell.
    func availableBytes() throws(Errno) -> UInt64 { try pool.room()?.available ?? 1 << 50 }

    func isBare() throws(Errno) -> Bool {
        guard try pool.size(of: address.header) ?? 0 == 0 else { return false }
        return try pool.objects(prefix: address.name + "/").allSatisfy { address.place(of: $0) == nil }
    }

    // MARK: Names

    func makeSegmentsPlace(_ layout: SegmentLayout) throws(Errno) {}
    func syncNames() throws(Errno) {}
    func syncSegmentNames(_ layout: SegmentLayout) throws(VaultError) {}

    /// Its name goes last: until then the next program finds the rest of its objects.
    func removeLog() throws(Errno) {
        guard try !pool.attribute(Self.log, of: address.header).isEmpty else { throw .noEntry }
        try lease.requireHeld()
        try pool.settle()
        for object in try pool.objects(prefix: address.logPrefix) {
            do throws(Errno) { try pool.apply([.removal], on: object) } catch  where error == .noEntry {}
        }
        try lease.setAttribute(Self.log, to: [])
    }

    /// The lock goes with it.
    func removeHeader() throws(Errno) {
        lease.end()
        try pool.apply([.removal], on: address.header)
    }

    func requireFitting(_ header: Header) throws(VaultError) {
        let layout = objects(header.layout)
        let found = try objects()
        if let other = found.first(where: { $0.isShared != header.layout.isShared }) {
            throw .foreignHeader(
                other.isShared
                    ? "it describes one space, the vault has several"
                    : "it describes \(header.spaceCount) spaces, the vault has one")
        }
        guard found.allSatisfy({ $0.index < layout.objectsPerSegment }) else {
            throw .foreignHeader("it describes smaller segments than the vault has")
        }
        guard header.layout.isShared else { return }
        guard try segmentCount(header.layout) > 0 else {
            throw .foreignHeader("it describes other spaces than the vault has, or larger segments")
        }
    }
}
