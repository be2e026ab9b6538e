import Foundation
import Glibc
import Synchronization

/// A player that does the same random POSIX calls in two directories and compares answers and contents.
struct TwinPlayer {
    /// A file system that is known to do right.
    private(set) var known: TwinSide
    private(set) var tried: TwinSide
    private var random: RandomSource
    private let seed: UInt64
    private let number: Int
    private let common: CommonInodes
    private var done: [String] = []
    private static let fileBytesMax = 400_000
    private static let slotCount = 4

    init(known: String, tried: String, number: Int, seed: UInt64, common: CommonInodes) {
        self.common = common
        self.known = TwinSide(root: known)
        self.tried = TwinSide(root: tried)
        self.number = number
        self.seed = seed
        random = RandomSource(seed &* 64 &+ UInt64(number))
    }

    /// Where this player works, below both directories. Two deep, so that a link to `../a` leads to nobody else's.
    var home: String { Self.home(number) }

    private static func home(_ number: Int) -> String { "d\(number)/e" }

    mutating func makeHome() throws {
        for path in ["d\(number)", home] { try perform(.makeDirectory(path, 0o755)) }
    }

    /// Whether it may touch files of other players: both sides must see these in the same order.
    func isCommon(_ operation: TwinOperation) -> Bool {
        !common.isDisjoint(with: known.inodes(of: operation))
    }

    mutating func perform(_ operation: TwinOperation) throws {
        done.append("\(operation)")
        let (due, found) = (known.apply(operation), tried.apply(operation))
        if due != found { throw failure("\(operation): \(found) instead of \(due)") }
    }

    mutating func closeAll() {
        known.closeAll()
        tried.closeAll()
    }

    /// Compares all files, also those of others.
    func compare(_ words: String = "") throws {
        let due = known.shown()
        var difference = ""
        eventually {
            difference = ModelPlayer.difference(of: tried.shown(), from: due)
            return difference.isEmpty
        }
        if !difference.isEmpty { throw failure(words + difference) }
    }

    private func failure(_ words: String) -> ModelFailure {
        ModelFailure(
            description: "seed \(seed), thread \(number), after \(done.count) calls: \(words)\n"
                + done.suffix(40).joined(separator: "\n"))
    }

    // MARK: Choosing

    private mutating func roll(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }

    /// A path in this player's directory, or in another's; few, so that most have something.
    private mutating func path(in home: String? = nil) -> String {
        let directory = ["", "", "/a", "/b", "/a/a", "/b/.c"][roll(6)]
        let long = String(repeating: "n", count: roll(2) == 0 ? 255 : 256)
        let name = roll(40) == 0 ? long : ["a", "b", "c.jpg", ".c", "d~", "é"][roll(6)]
        return (home ?? self.home) + directory + "/" + name
    }

    private mutating func offset() -> Int {
        let offset = roll(Self.fileBytesMax)
        return roll(3) == 0 ? offset / 4096 * 4096 : offset
    }

    /// Letters, so that nothing is a picture.
    private mutating func bytes() -> [UInt8] {
        let count = roll(4) == 0 ? roll(200_000) : roll(5000)
        return noise(count, seed: roll(1 << 30)).map { 97 + $0 % 26 }
    }

    private mutating func flags() -> Int32 {
        let kind = [O_RDONLY, O_WRONLY, O_RDWR, O_RDWR, O_RDWR][roll(5)]
        let more = [
            0, 0, O_CREAT, O_CREAT, O_CREAT | O_EXCL, O_TRUNC, O_APPEND | O_CREAT, O_NOFOLLOW, O_DIRECTORY,
        ]
        return kind | more[roll(9)]
    }

    /// Something to do in this player's own directory.
    mutating func choose() -> TwinOperation {
        let slot = roll(Self.slotCount)
        switch roll(100) {
        case ..<14: return .open(slot: slot, path(), flags())
        case ..<17: return .close(slot: slot)
        case ..<30: return .write(slot: slot, offset: offset(), bytes())
        case ..<35: return .writeOn(slot: slot, bytes())
        case ..<41: return .read(slot: slot, offset: offset(), count: 1 + roll(100_000))
        case ..<44: return .resize(slot: slot, offset())
        case ..<47:
            // Punching holes is all that tmpfs and we both do beside making room.
            let mode: Int32 = [0, 1, 3][roll(3)]
            return .allocate(slot: slot, mode: mode, offset: offset(), count: 1 + roll(100_000))
        case ..<51: return .map(slot: slot, offset: offset(), bytes())
        case ..<54:
            return .copy(
                from: slot, to: roll(Self.slotCount), offset: offset(), target: offset(), count: roll(90_000))
        case ..<57: return .holes(slot: slot)
        default: return chooseNames()
        }
    }

    private mutating func chooseNames() -> TwinOperation {
        switch roll(46) {
        case ..<3: .truncate(path(), offset())
        case ..<10: .makeDirectory(path(), [0o755, 0o2770, 0o1777, 0o700][roll(4)])
        case ..<13: .removeDirectory(path())
        case ..<18: .unlink(path())
        case ..<22: .link(path(), path())
        case ..<24: .symbolicLink(["a", "b/a", "../a", "nowhere"][roll(4)], path())
        case ..<25: .node(path(), [S_IFIFO, S_IFCHR, S_IFREG, S_IFSOCK][roll(4)] | 0o640)
        case ..<34: .rename(path(), path(), way())
        case ..<37: .setMode(path(), UInt32(roll(0o10000)))
        case ..<39: .setOwner(path(), UInt32(roll(3)), UInt32(roll(3)))
        case ..<42: .touch(path(), roll(900_000_000), roll(1_000_000_000))
        case ..<45: .setAttribute(path(), "user.\(roll(3))", roll(2000), Int32(roll(3)))
        default: .removeAttribute(path(), "user.\(roll(3))")
        }
    }

    private mutating func way() -> UInt32 { [0, 0, 0, 0, 1, 2, 2][roll(7)] }

    /// Moves or links something from one player's directory to another's, while nobody works there.
    mutating func reachOver(players: Int) throws {
        let (from, to) = (path(in: Self.home(roll(players))), path(in: Self.home(roll(players))))
        if roll(4) == 0 { try perform(.link(from, to)) } else { try perform(.rename(from, to, way())) }
        // Its former player may have it open, or have another name of it.
        for path in [from, to] { common.insert(known.inodes(below: path)) }
    }

    /// To be called when nobody has a file open: only names are had in common from then on.
    func forgetOpenFiles() { common.replace(by: known.linkedInodes()) }
}

/// Files that more than one player may reach, of the known side. Guarded by its lock.
final class CommonInodes: Sendable {
    private let inodes = Mutex<Set<ino_t>>([])
    func insert(_ more: [ino_t]) { inodes.withLock { $0.formUnion(more) } }
    func replace(by others: [ino_t]) { inodes.withLock { $0 = Set(others) } }
    func isDisjoint(with others: [ino_t]) -> Bool { inodes.withLock { $0.isDisjoint(with: others) } }
}
