import Glibc
import LinuxIO
import VaultFormat

/// A segment, by the files' names alone.
struct SegmentPlace: Sendable, Hashable {
    var space: Int
    var number: Int

    /// From the vault's directory.
    var path: String { "\(VaultDirectory.spacesName)/\(space)/\(SegmentFiles.name(number))" }

    /// Where the segment's roots end, which are copied last: 0 for a segment without.
    var rootBytes: UInt64 { number < 2 ? UInt64(CopyHeads.rootBytes) : 0 }
}

/// What decides which state of a vault counts: its header, and the slots of roots at the beginning of each space's
/// segments 0 and 1. A copy reads them before all else and writes them after all else.
struct CopyHeads: Equatable {
    /// All of `obscura.vault`.
    private(set) var header: [UInt8]
    /// Root slots of every space's segments 0 and 1; shorter where a file is.
    private(set) var roots: [SegmentPlace: [UInt8]] = [:]

    static let rootBytes = RootLayout.rootSlots * Geometry.pageBytes

    init(_ vault: VaultDirectory, spaces: Int) throws(VaultError) {
        header = [UInt8](repeating: 0, count: Int(HeaderLayout.fileBytes))
        do throws(Errno) {
            let count = try vault.calls.readFully(vault.header, at: 0, into: &header)
            header.removeLast(header.count - count)
        } catch { throw .system(error, "cannot read the header") }
        for space in 0..<spaces {
            for number in 0..<2 {
                let place = SegmentPlace(space: space, number: number)
                roots[place] = try Self.readRoots(vault, place)
            }
        }
    }

    private static func readRoots(_ vault: VaultDirectory, _ place: SegmentPlace) throws(VaultError)
        -> [UInt8]
    {
        var bytes = [UInt8](repeating: 0, count: rootBytes)
        do throws(Errno) {
            let flags = O_RDONLY | O_NOFOLLOW
            let file = try vault.calls.openTraceless(vault.directory, place.path, flags: flags, mode: 0)
            defer { vault.calls.close(file) }
            let count = try vault.calls.readFully(file, at: 0, into: &bytes)
            bytes.removeLast(bytes.count - count)
            return bytes
        } catch {
            throw error == .noEntry
                ? .damaged("\(place.path) is missing") : .system(error, "cannot read a root")
        }
    }

    /// The most durable roots that any space can be seen to have written since `earlier`, 4 at most: slots of their
    /// ring that are not what they were.
    func durableRoots(since earlier: CopyHeads) -> Int {
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
