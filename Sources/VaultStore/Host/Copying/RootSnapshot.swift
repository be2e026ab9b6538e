import Glibc
import LinuxIO
import VaultFormat

/// The parts of a vault that determine its valid state, the *heads*: its header, and the root slots at the beginning of
/// each space's segments 0 and 1. A backup reads them first and writes them last.
struct RootSnapshot: Equatable {
    /// All of `obscura.vault`.
    private(set) var header: [UInt8]
    /// Root slots of every space's segments 0 and 1; shorter if a file is.
    private(set) var roots: [SegmentPlace: [UInt8]] = [:]
    /// Unreadable ranges of `roots`, which has zeros there.
    private(set) var unreadable: [SegmentPlace: [Range<Int>]] = [:]
    private let layout: SegmentLayout
    /// Unreadable ranges of `header`, which has the other copy's bytes in place of an unreadable copy.
    private var unreadableHeader: [Range<Int>] = []

    static let rootBytes = RootLayout.rootSlots * Geometry.pageBytes
    /// The place of the claim among the roots. Claims are not copied: the copy keeps its own bytes there.
    static let claimBytes =
        RootLayout.claimSlot * Geometry.pageBytes..<(RootLayout.claimSlot + 1) * Geometry.pageBytes

    init(_ vault: any PartHost, _ layout: SegmentLayout) throws(VaultError) {
        self.layout = layout
        do throws(Errno) {
            let file = try vault.open(.header, .reading)
            (header, unreadableHeader) = try Self.read(file, Int(HeaderLayout.fileBytes))
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

    /// Unreadable places of the vault's files.
    var unreadablePlaces: [UnreadablePlace] {
        let header = unreadableHeader.map { range in
            UnreadablePlace(
                path: VaultFiles.headerName, offset: UInt64(range.lowerBound), bytes: UInt64(range.count))
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

    /// Replaces an unreadable copy of the header by the other one.
    private mutating func mendHeader() {
        let places = HeaderLayout.copyOffsets.map { Int($0)..<Int($0) + HeaderLayout.copyBytes }
        for (copy, place) in places.enumerated() where header.count >= places[1].upperBound {
            guard unreadableHeader.contains(where: { $0.overlaps(place) }) else { continue }
            header.replaceSubrange(place, with: Array(header[places[1 - copy]]))
        }
    }

    /// Reads up to `count` bytes at the beginning. Returns the bytes present, and the unreadable ranges of them.
    private static func read(_ file: any PartBytes, _ count: Int) throws(Errno) -> ([UInt8], [Range<Int>]) {
        var bytes = [UInt8](repeating: 0, count: count)
        let result = bytes.withUnsafeMutableBytes {
            bytes -> Result<(count: Int, unreadable: [Range<Int>]), Errno> in
            do throws(Errno) { return .success(try file.readAround(bytes, at: 0)) } catch {
                return .failure(error)
            }
        }
        let found = try result.get()
        return (Array(bytes.prefix(found.count)), found.unreadable)
    }

    private static func readRoots(
        _ vault: any PartHost, _ layout: SegmentLayout, _ place: SegmentPlace
    ) throws(VaultError) -> ([UInt8], [Range<Int>]) {
        do throws(Errno) {
            return try read(try vault.open(.segment(place, layout), .reading), rootBytes)
        } catch {
            throw error == .noEntry
                ? .damaged("\(vault.name(of: place, layout)) is missing")
                : .system(error, "cannot read a root")
        }
    }

    /// The most durable roots that any space has visibly written since `earlier`: changed slots of its ring, at most 4.
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

    /// The spaces whose roots are the same in both, claims aside.
    func spaces(equalIn other: RootSnapshot) -> Set<Int> {
        Set(roots.keys.map(\.space)).filter { space in
            (0..<2).allSatisfy { number in
                let place = SegmentPlace(space: space, number: number)
                guard let one = roots[place], let two = other.roots[place], unreadable[place] == nil,
                    other.unreadable[place] == nil, one.count == two.count
                else { return false }
                let claim = Self.claimBytes.clamped(to: 0..<one.count)
                return one[..<claim.lowerBound] == two[..<claim.lowerBound]
                    && one[claim.upperBound...] == two[claim.upperBound...]
            }
        }
    }

    private static func slot(_ slot: Int, of roots: [UInt8]?) -> ArraySlice<UInt8>? {
        roots.map { $0.dropFirst(slot * Geometry.pageBytes).prefix(Geometry.pageBytes) }
    }
}
