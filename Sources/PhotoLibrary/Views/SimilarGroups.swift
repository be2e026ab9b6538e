import CatalogueRows
import FileRequests
import LinuxIO
import PhotoRules
import VaultCatalogue
import VaultFormat

/// The groups of similar photos that `views/similar` shows.
///
/// They are found when the directory is listed, if photos got hashes since. Photos that are removed leave a group
/// without changing it: a program in its directory finds there what it found before, less what it removed. Groups keep
/// the names by which programs know them, whatever their place in the order.
final class SimilarGroups: @unchecked Sendable {
    private unowned let session: TreeSession
    /// Held while groups are searched. Taken before the catalogue's.
    private let searching = Lock()
    /// Taken after the catalogue's.
    private let lock = Lock()
    // All under `lock`.
    /// The photos of each group, by the first one, in the order of their numbers; also those that left views since.
    private var groups: [UInt64: [UInt64]] = [:]
    /// Groups by their names without the place in the order.
    private var named: [[UInt8]: UInt64] = [:]
    /// How many empty groups were made.
    private var made: UInt64 = 0
    /// `Likenesses.additions` when the groups were found; nil before.
    private var additions: UInt64?

    init(_ session: TreeSession) { self.session = session }

    /// Photos of a group, without those that have left views. Throws `.stale` if there is no such group.
    func photos(ofGroup number: UInt64, _ tree: Tree) throws(FileError) -> [UInt64] {
        guard let photos = lock.withLock({ groups[number] }) else { throw .stale }
        return present(photos, tree)
    }

    private func present(_ photos: [UInt64], _ tree: Tree) -> [UInt64] {
        photos.filter { tree.likenesses.removed[$0] == nil }
    }

    /// Whether a photo is in a group.
    func contains(_ photo: UInt64, inGroup number: UInt64) -> Bool {
        lock.withLock { groups[number]?.contains(photo) ?? false }
    }

    /// Finds the groups anew if photos got hashes since they were found. Call with the catalogue's lock not held.
    func update() throws(FileError) {
        searching.lock()
        defer { searching.unlock() }
        let now = try session.locked { tree throws(FileError) in tree.likenesses.additions }
        guard now != lock.withLock({ additions }) else { return }
        let limit = session.options.limits.similarGroups
        let found = SimilarPhotos.groups(of: try hashedPhotos(), limit: limit)
        lock.withLock {
            let made = groups.filter { $0.key >= Self.madeNumbers }
            groups = Dictionary(uniqueKeysWithValues: found.map { ($0[0], $0) })
            if made.count <= limit { groups.merge(made) { own, _ in own } }
            additions = now
        }
    }

    /// All photos that have a hash, and those that had one until they left views, in the order of their numbers.
    private func hashedPhotos() throws(FileError) -> [PhotoLikeness] {
        let limits = session.options.limits
        var found: [PhotoLikeness] = []
        var next: UInt64? = 0
        while let first = next {
            next = try session.locked { tree throws(FileError) in
                try tree.tables.likenesses.eachHash(from: first, blocks: limits.likenessBlocks) { ino, hash in
                    found.append(PhotoLikeness(ino: ino, hash: hash))
                }
            }
            // The newest are kept. Half as many again are read before any are dropped: moving costs time.
            if found.count > limits.comparedLikenesses * 3 / 2 {
                found.removeFirst(found.count - limits.comparedLikenesses)
            }
        }
        let removed = try session.locked { tree throws(FileError) in tree.likenesses.removed }
        if !removed.isEmpty {
            found.removeAll { removed[$0.ino] != nil }
            found += removed.map { PhotoLikeness(ino: $0.key, hash: $0.value.hash) }
            found.sort { $0.ino < $1.ino }
        }
        return found.count > limits.comparedLikenesses
            ? Array(found.suffix(limits.comparedLikenesses)) : found
    }

    // MARK: Names

    /// The groups that have two photos or more, the largest first, and their names: the place in the order, and the
    /// name of the first photo. In `viewing`.
    func list(_ tree: Tree) throws(FileError) -> [(name: [UInt8], number: UInt64)] {
        lock.lock()
        defer { lock.unlock() }
        var shown: [(name: [UInt8], number: UInt64, count: Int)] = []
        var names: [[UInt8]: UInt64] = [:]
        for number in groups.keys.sorted() {
            let photos = present(groups[number] ?? [], tree)
            guard photos.count > 1, try !isRawPair(photos, tree) else { continue }
            let name = try firstFreeName(nameOfPhoto(number, tree), bytesMax: Self.nameBytesMax) {
                names[$0] == nil
            }
            names[name] = number
            shown.append((name, number, photos.count))
        }
        // Programs may still know groups by names of before.
        if named.count > session.options.limits.similarGroups { named = [:] }
        named.merge(names) { _, new in new }
        shown.sort { ($0.count, $1.number) > ($1.count, $0.number) }
        return shown.enumerated().map { (Self.placed($1.name, at: $0 + 1), $1.number) }
    }

    /// Makes an empty group, known by a name without its place in the order, until the groups are found anew.
    func makeGroup(labelled label: [UInt8]) -> UInt64 {
        lock.withLock {
            let number = Self.madeNumbers | made
            made += 1
            if named.count > session.options.limits.similarGroups { named = [:] }
            (groups[number], named[label]) = ([], number)
            return number
        }
    }

    /// Inodes' numbers are lower.
    private static let madeNumbers: UInt64 = 1 << 55

    /// The number of the group of that name, whatever its place in the order is now; nil if none is known by it.
    func group(named name: [UInt8]) -> UInt64? {
        guard let label = Self.withoutPlace(name) else { return nil }
        return lock.withLock { named[label].flatMap { groups[$0] == nil ? nil : $0 } }
    }

    /// Bytes of a group's name without its place in the order.
    private static let nameBytesMax = 240
    private static let placeDigits = 4

    /// `0001 NAME`.
    private static func placed(_ name: [UInt8], at place: Int) -> [UInt8] {
        let digits = Array(String(place).utf8)
        let zeros = [UInt8](repeating: UInt8(ascii: "0"), count: max(0, placeDigits - digits.count))
        return zeros + digits + [UInt8(ascii: " ")] + name
    }

    /// A group's name without its place in the order; nil if the name has none.
    static func withoutPlace(_ name: [UInt8]) -> [UInt8]? {
        let digits = name.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard digits.count >= placeDigits, name.dropFirst(digits.count).first == UInt8(ascii: " ")
        else { return nil }
        return Array(name.dropFirst(digits.count + 1))
    }

    /// The name of a photo in views, or that it had there.
    private func nameOfPhoto(_ ino: UInt64, _ tree: Tree) throws(FileError) -> [UInt8] {
        if let removed = tree.likenesses.removed[ino] { return removed.name }
        return try tree.tables.views.name(of: ino) ?? Array(String(ino).utf8)
    }

    /// Whether these are a raw file and the picture that the camera made with it: both are wanted.
    private func isRawPair(_ photos: [UInt64], _ tree: Tree) throws(FileError) -> Bool {
        guard photos.count == 2, let first = try tree.tables.photos.row(photos[0]),
            let second = try tree.tables.photos.row(photos[1]), first.captured == second.captured
        else { return false }
        return try isRaw(first, nameOfPhoto(first.ino, tree)) != isRaw(second, nameOfPhoto(second.ino, tree))
    }
}
