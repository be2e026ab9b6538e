import CGame
import Foundation

/// What the host tells of a vault's files.
extension Sample {
    /// - Returns: the paths of segments, by space, then by number.
    mutating func addFiles(_ vault: String, spaceCount: Int, decoy: Int) throws -> [[String]] {
        let spaces = (0..<spaceCount).map { "\(vault)/spaces/\($0)" }
        let listed = try spaces.map { try listing($0) }
        let segments = zip(spaces, listed).map { path, names in names.sorted().map { "\(path)/\($0)" } }
        // Before anything else is done: what reads them may change their times.
        let found = try segments.map { try $0.map { try Self.status($0) } }
        let directories = try spaces.map { [try Self.status($0)] }
        let single = try ["/obscura.vault", "/spaces", ""].map { try Self.status(vault + $0) }
        addStatus(found, decoy)
        addTimes(found, directories, single, decoy)
        addLastRun(found, directories, single, decoy)
        addOrder(found, listed, try listing(vault + "/spaces"), try listing(vault), decoy)
        try addExtents(segments, decoy)
        return segments
    }

    private static func status(_ path: String) throws -> game_status {
        var status = game_status()
        guard game_status(path, &status) == 0 else { throw Attacker.Surprise(what: "statx \(path)") }
        return status
    }

    private mutating func addStatus(_ found: [[game_status]], _ decoy: Int) {
        add(.files, "segments", found.map { [Double($0.count)] }, decoy: decoy)
        let fields: [(String, KeyPath<game_status, Int64>)] = [
            ("size", \.size), ("mode", \.mode), ("links", \.links), ("owner", \.owner), ("group", \.group),
            ("attributes", \.attributes),
        ]
        for (name, field) in fields {
            add(.files, name, found.map { $0.map { Double($0[keyPath: field]) } }, decoy: decoy)
        }
        add(.extents, "blocks", found.map { $0.map { Double($0.blocks) } }, decoy: decoy)
    }

    /// Times as distances from the first: how long ago a vault was open is no secret.
    private mutating func addTimes(
        _ found: [[game_status]], _ directories: [[game_status]], _ single: [game_status], _ decoy: Int
    ) {
        let fields: [(String, KeyPath<game_status, Int64>)] = [
            ("mtime", \.modified), ("atime", \.accessed), ("ctime", \.changed), ("btime", \.birth),
        ]
        for (name, field) in fields {
            func values(_ list: [[game_status]], from first: Int64) -> [[Double]] {
                list.map { $0.map { Double($0[keyPath: field] - first) } }
            }
            let first = (found + directories).flatMap { $0 }.map { $0[keyPath: field] }.min() ?? 0
            let segments = values(found, from: first)
            add(.times, name, segments, decoy: decoy)
            add(.times, "\(name) rank", ranks(segments), decoy: decoy)
            add(.times, "\(name) of directories", values(directories, from: first), decoy: decoy)
            for (what, status) in zip(["header", "spaces", "vault"], single) {
                // Making takes its time, which is no secret; the order is told by ranks.
                let distance = Double(status[keyPath: field] - first)
                if field != \.birth { add(.times, "\(name) of \(what)", distance) }
                let count = found.flatMap { $0 }.filter { $0[keyPath: field] < status[keyPath: field] }.count
                add(.times, "\(name) of \(what): segments before", count)
            }
            let below = segments.flatMap { $0 }.map { Int64($0) % 1_000_000_000 == 0 ? 0.0 : 1 }.reduce(0, +)
            if field != \.birth { add(.times, "\(name): files apart by parts of a second", below) }
        }
    }

    /// How many files of one space, not the decoy, were the last to be changed, all files being looked at.
    private mutating func addLastRun(
        _ found: [[game_status]], _ directories: [[game_status]], _ single: [game_status], _ decoy: Int
    ) {
        let named = found.enumerated().flatMap { space, list in list.map { (space, $0.changed) } }
        let others = (directories.flatMap { $0 } + single).map { (decoy, $0.changed) }
        let order = (named + others).sorted { $0.1 < $1.1 }.map(\.0)
        let last = order.last ?? decoy
        add(
            .times, "ctime: files of one other space at the end",
            last == decoy ? 0 : order.reversed().prefix { $0 == last }.count)
    }

    private mutating func addOrder(
        _ found: [[game_status]], _ listed: [[String]], _ spaces: [String], _ vault: [String], _ decoy: Int
    ) {
        add(.order, "inode rank", ranks(found.map { $0.map { Double($0.inode) } }), decoy: decoy)
        add(.order, "listing of segments", listed.map { [Double(Self.inversions($0))] }, decoy: decoy)
        add(.order, "listing of spaces", Self.inversions(spaces))
        add(.order, "listing of the vault", Self.inversions(vault))
        add(.order, "names in the vault", vault.count)
    }

    /// How many pairs of names stand in the wrong order.
    private static func inversions(_ names: [String]) -> Int {
        names.indices.reduce(0) { sum, index in
            sum + names[..<index].filter { $0 > names[index] }.count
        }
    }

    private mutating func addExtents(_ segments: [[String]], _ decoy: Int) throws {
        var (counts, flags, physical, holes) = ([[Double]](), [[Double]](), [[Double]](), [[Double]]())
        for paths in segments {
            var found: [(game_extents, Double)] = []
            for path in paths {
                let descriptor = open(path, O_RDONLY | O_CLOEXEC)
                guard descriptor >= 0 else { throw Attacker.Surprise(what: path) }
                defer { close(descriptor) }
                var extents = game_extents(count: -1, flags: 0, physical: 0)
                // A host without extents, as tmpfs is, tells of holes all the same.
                _ = game_extents(descriptor, &extents)
                let end = lseek(descriptor, 0, SEEK_END)
                found.append((extents, Double(end - lseek(descriptor, 0, Self.seekHole))))
            }
            counts.append(found.map { Double($0.0.count) })
            flags.append(found.map { Double($0.0.flags) })
            physical.append(found.map { Double($0.0.physical) })
            holes.append(found.map(\.1))
        }
        add(.extents, "extents", counts, decoy: decoy)
        add(.extents, "extent flags", flags, decoy: decoy)
        add(.extents, "physical rank", ranks(physical), decoy: decoy)
        add(.extents, "bytes behind the first hole", holes, decoy: decoy)
    }

    /// SEEK_HOLE of lseek(2).
    private static let seekHole: Int32 = 4
}

/// The names in a directory as the kernel lists them.
private func listing(_ path: String) throws -> [String] {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Attacker.Surprise(what: path) }
    defer { close(descriptor) }
    var (names, bytes) = ([String](), [UInt8](repeating: 0, count: 32 << 10))
    while true {
        let count = Int(
            bytes.withUnsafeMutableBytes { game_entries(descriptor, $0.baseAddress, UInt($0.count)) })
        guard count > 0 else { return names.filter { $0 != "." && $0 != ".." } }
        // struct linux_dirent64: inode (8), offset (8), length (2), type (1), name.
        var start = 0
        while start < count {
            names.append(String(decoding: bytes[(start + 19)...].prefix { $0 != 0 }, as: UTF8.self))
            start += Int(bytes[start + 16]) | Int(bytes[start + 17]) << 8
        }
    }
}
