import CDistinguisher
import Foundation
import VaultFormat

/// A segment: a range of the file of all spaces.
struct SegmentRange {
    var path: String
    var start: UInt64
    var bytes: UInt64
}

/// The files of a vault of several spaces.
struct VaultFiles {
    var vault: String
    /// By name. "": the vault's directory.
    var inodes: [String: UInt64]
    /// The names of a space's own files, by space; empty in a vault as it should be.
    var own: [String]
    /// By space, then by number.
    var segments: [[SegmentRange]]

    /// Of every vault: the file of all spaces, the header's, and the directory.
    static let names = ["spaces", "obscura.vault", ""]
    /// Their names in features.
    static func word(_ name: String) -> String {
        switch name {
        case "": "vault"
        case "obscura.vault": "header"
        default: name
        }
    }

    init(_ vault: String, _ attacker: Attacker) throws {
        self.vault = vault
        let path = vault + "/spaces"
        own = (0..<attacker.spaceCount).map(DistinguisherCalls.ownFile).filter {
            access("\(vault)/\($0)", F_OK) == 0
        }
        inodes = [:]
        for name in Self.names + own { inodes[name] = UInt64(try Sample.status("\(vault)/\(name)").inode) }
        let (count, bytes) = (UInt64(attacker.spaceCount), UInt64(attacker.segmentBytes))
        let rows = UInt64(try Sample.status(path).size) / (count * bytes)
        segments = (0..<count).map { space in
            (0..<rows).map { SegmentRange(path: path, start: ($0 * count + space) * bytes, bytes: bytes) }
        }
    }
}

/// The host's answers about a vault's files.
extension Sample {
    mutating func addFiles(_ files: VaultFiles, decoy: Int) throws {
        let vault = files.vault
        // First of all: reading the files may change their times.
        let found = try VaultFiles.names.map { try Self.status("\(vault)/\($0)") }
        let own = try files.own.map { try Self.status("\(vault)/\($0)") }
        for (name, status) in zip(VaultFiles.names, found) { addStatus(VaultFiles.word(name), status) }
        let rowBytes = files.segments.compactMap { $0.first?.bytes }.reduce(0, +)
        add(.files, "segments", files.segments.map { [Double($0.count)] }, decoy: decoy)
        add(.files, "bytes behind the last row", UInt64(found[0].size) % max(1, rowBytes))
        addTimes(found, own, decoy)
        addOrder(found, own, try listing(vault), decoy)
        try addExtents(files.segments, decoy)
    }

    static func status(_ path: String) throws -> game_status {
        var status = game_status()
        guard game_status(path, &status) == 0 else { throw Attacker.Surprise(what: "statx \(path)") }
        return status
    }

    private mutating func addStatus(_ file: String, _ status: game_status) {
        let fields: [(String, KeyPath<game_status, Int64>)] = [
            ("size", \.size), ("mode", \.mode), ("links", \.links), ("owner", \.owner), ("group", \.group),
            ("attributes", \.attributes),
        ]
        for (name, field) in fields { add(.files, "\(name) of \(file)", status[keyPath: field]) }
        add(.extents, "blocks of \(file)", status.blocks)
    }

    /// Times as distances from each other, those of the first day from those of the first day and those of the last
    /// session from those of the last session: how long ago a vault was made and open is no secret.
    private mutating func addTimes(_ found: [game_status], _ own: [game_status], _ decoy: Int) {
        let fields: [(String, KeyPath<game_status, Int64>)] = [
            ("mtime", \.modified), ("atime", \.accessed), ("ctime", \.changed), ("btime", \.birth),
        ]
        let (spaces, header, vault) = (found[0], found[1], found[2])
        for (name, field) in fields {
            add(.times, "\(name): header - spaces", header[keyPath: field] - spaces[keyPath: field])
            add(
                .times, "\(name): vault - its btime",
                vault.birth == 0 ? 0 : vault[keyPath: field] - vault.birth)
            add(
                .times, "\(name): is the header's later",
                header[keyPath: field] > spaces[keyPath: field] ? 1 : 0)
            for (file, status) in zip(VaultFiles.names.map(VaultFiles.word), found) {
                let time = status[keyPath: field]
                add(.times, "\(name) of \(file): parts of a second", time % 1_000_000_000)
                if field != \.modified && field != \.birth && file != VaultFiles.word("") {
                    add(.times, "\(name) of \(file) - mtime", time - status.modified)
                }
            }
            guard !own.isEmpty else { continue }
            let times = own.map { [Double($0[keyPath: field] - spaces[keyPath: field])] }
            add(.times, "\(name) of own files", times, decoy: decoy)
            add(.times, "\(name) rank of own files", ranks(times), decoy: decoy)
        }
    }

    private mutating func addOrder(
        _ found: [game_status], _ own: [game_status], _ listed: [String], _ decoy: Int
    ) {
        add(.order, "inodes of files", ranks(found.map { [Double($0.inode)] }), decoy: 0)
        add(.order, "listing of the vault", Self.inversions(listed))
        add(.order, "names in the vault", listed.count)
        if !own.isEmpty { add(.order, "inodes of own files", own.map { [Double($0.inode)] }, decoy: decoy) }
    }

    /// How many pairs of names stand in the wrong order.
    private static func inversions(_ names: [String]) -> Int {
        names.indices.reduce(0) { sum, index in
            sum + names[..<index].filter { $0 > names[index] }.count
        }
    }

    private mutating func addExtents(_ segments: [[SegmentRange]], _ decoy: Int) throws {
        struct Found {
            var extents: game_extents
            var holes: [Range<Int>]
        }
        let found = try segments.map { ranges in
            try ranges.map { range in
                let descriptor = open(range.path, O_RDONLY | O_CLOEXEC)
                guard descriptor >= 0 else { throw Attacker.Surprise(what: range.path) }
                defer { close(descriptor) }
                var extents = game_extents(count: -1, flags: 0, physical: 0)
                // A host without extents, as tmpfs is, tells of holes all the same.
                _ = game_extents(descriptor, Int64(range.start), Int64(range.bytes), &extents)
                return Found(extents: extents, holes: Self.holes(descriptor, range))
            }
        }
        func add(_ name: String, _ value: (Found) -> Double) {
            self.add(.extents, name, found.map { $0.map(value) }, decoy: decoy)
        }
        add("extents") { Double($0.extents.count) }
        add("extent flags") { Double($0.extents.flags) }
        self.add(
            .extents, "physical rank", ranks(found.map { $0.map { Double($0.extents.physical) } }),
            decoy: decoy)
        add("holes") { Double($0.holes.count) }
        add("bytes in holes") { Double($0.holes.reduce(0) { $0 + $1.count }) }
    }

    /// The holes within a range of a file.
    private static func holes(_ descriptor: Int32, _ range: SegmentRange) -> [Range<Int>] {
        let end = Int(range.start + range.bytes)
        var (place, found) = (Int(range.start), [Range<Int>]())
        while place < end {
            let hole = lseek(descriptor, place, seekHole)
            guard hole >= 0 && hole < end else { break }
            let data = lseek(descriptor, hole, seekData)
            place = data < 0 ? end : min(end, data)
            found.append(hole..<place)
        }
        return found
    }

    /// SEEK_DATA and SEEK_HOLE of lseek(2).
    private static let (seekData, seekHole): (Int32, Int32) = (3, 4)
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
