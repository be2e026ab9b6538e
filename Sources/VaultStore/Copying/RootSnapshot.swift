import Glibc
import LinuxIO
import VaultFormat

/// What decides which state of a vault counts: its header, and the slots of roots at the beginning of each space's
/// segments 0 and 1. A copy reads them before all else and writes them after all else.
struct RootSnapshot: Equatable {
    /// All of `obscura.vault`.
    private(set) var header: [UInt8]
    /// Root slots of every space's segments 0 and 1; shorter where a file is.
    private(set) var roots: [SegmentPlace: [UInt8]] = [:]
    /// What of `roots` the disk does not give: zeros there.
    private(set) var unreadable: [SegmentPlace: [Range<Int>]] = [:]
    private let layout: SegmentLayout
    /// The same of `header`, which has what the other copy has in the place of a copy.
    private var unreadableHeader: [Range<Int>] = []

    static let rootBytes = RootLayout.rootSlots * Geometry.pageBytes
    /// Where a claim may stand among the roots. A copy is nobody's: it keeps what it has there.
    static let claimBytes =
        RootLayout.claimSlot * Geometry.pageBytes..<(RootLayout.claimSlot + 1) * Geometry.pageBytes

    init(_ vault: VaultDirectory, _ layout: SegmentLayout) throws(VaultError) {
        self.layout = layout
        do throws(Errno) {
            (header, unreadableHeader) = try Self.read(vault, vault.header, Int(HeaderLayout.fileBytes))
        } catch { throw .system(error, "cannot read the header") }
        mendHeader()
        for space in 0..<layout.spaceCount {
            for number in 0..<2 {
                let place = SegmentPlace(space: space, number: number)
                let (bytes, unreadable) = try Self.readRoots(vault, layout, place)
                roots[place] = bytes
                if !unreadable.isEmpty { self.unreadable[place] = unreadable }
            }
        }
    }

    /// Places that the disk does not give.
    var unreadablePlaces: [UnreadablePlace] {
        let header = unreadableHeader.map { range in
            UnreadablePlace(
                path: VaultDirectory.headerName, offset: UInt64(range.lowerBound), bytes: UInt64(range.count))
        }
        let roots = unreadable.sorted { ($0.key.number, $0.key.space) < ($1.key.number, $1.key.space) }
            .flatMap { place, ranges in
                ranges.map { range in
                    UnreadablePlace(
                        path: layout.path(place), offset: layout.start(place) + UInt64(range.lowerBound),
                        bytes: UInt64(range.count))
                }
            }
        return header + roots
    }

    /// Puts the copy of the header that can be read in the place of one that cannot.
    private mutating func mendHeader() {
        let places = HeaderLayout.copyOffsets.map { Int($0)..<Int($0) + HeaderLayout.copyBytes }
        for (copy, place) in places.enumerated() where header.count >= places[1].upperBound {
            guard unreadableHeader.contains(where: { $0.overlaps(place) }) else { continue }
            header.replaceSubrange(place, with: Array(header[places[1 - copy]]))
        }
    }

    /// As many of the first bytes of a file as there are, and what of them cannot be read.
    private static func read(
        _ vault: VaultDirectory, _ file: Int32, _ count: Int, at offset: UInt64 = 0
    ) throws(Errno) -> ([UInt8], [Range<Int>]) {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = bytes.withUnsafeMutableBytes {
            bytes -> Result<(count: Int, unreadable: [Range<Int>]), Errno> in
            do throws(Errno) { return .success(try vault.calls.readAround(file, bytes, at: offset)) } catch {
                return .failure(error)
            }
        }
        let found = try result.get()
        return (Array(bytes.prefix(found.count)), found.unreadable)
    }

    private static func readRoots(
        _ vault: VaultDirectory, _ layout: SegmentLayout, _ place: SegmentPlace
    ) throws(VaultError) -> ([UInt8], [Range<Int>]) {
        let path = layout.path(place)
        do throws(Errno) {
            let file = try vault.calls.openRegular(vault.directory, path, flags: O_RDONLY, mode: 0)
            defer { vault.calls.close(file) }
            return try read(vault, file, rootBytes, at: layout.start(place))
        } catch {
            throw error == .noEntry ? .damaged("\(path) is missing") : .system(error, "cannot read a root")
        }
    }

    /// The most durable roots that any space can be seen to have written since `earlier`, 4 at most: slots of their
    /// ring that are not what they were.
    func durableRoots(since earlier: RootSnapshot) -> Int {
        let spaces = Set(roots.keys.map(\.space))
        return spaces.map { space in
            RootLayout.durableSlots.count { slot in
                (0..<2).contains { number in
                    let place = SegmentPlace(space: space, number: number)
                    return Self.slot(slot, of: roots[place]) != Self.slot(slot, of: earlier.roots[place])
                }
            }
        }.max() ?? 0
    }

    private static func slot(_ slot: Int, of roots: [UInt8]?) -> ArraySlice<UInt8>? {
        roots.map { $0.dropFirst(slot * Geometry.pageBytes).prefix(Geometry.pageBytes) }
    }
}
