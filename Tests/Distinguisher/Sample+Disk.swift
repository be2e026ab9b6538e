import CDistinguisher
import Foundation
import Glibc

/// Features of the whole disk that a vault lies on, and of the machine's memory.
extension Sample {
    // MARK: Memory

    /// Which parts of the vault the kernel still has in memory: fincore(1) tells as much. To be asked before anything
    /// is read.
    mutating func addMemory(_ files: VaultFiles, decoy: Int) throws {
        func cache(_ path: String, _ start: UInt64, _ bytes: UInt64) throws -> game_cache {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw Attacker.Surprise(what: path) }
            defer { close(descriptor) }
            var cache = game_cache(cached: -1, dirty: -1, evicted: -1, recently_evicted: -1)
            _ = game_cache(descriptor, Int64(start), Int64(bytes), &cache)
            return cache
        }
        let found = try files.segments.map { try $0.map { try cache($0.path, $0.start, $0.bytes) } }
        let fields: [(String, KeyPath<game_cache, Int64>)] = [
            ("in memory", \.cached), ("not on the disk yet", \.dirty), ("evicted", \.evicted),
            ("evicted of late", \.recently_evicted),
        ]
        for (name, field) in fields {
            let pages = found.map { $0.map { Double($0[keyPath: field]) } }
            add(.memory, "pages \(name)", pages.flatMap { $0 }.reduce(0, +))
            add(.memory, "pages \(name)", pages, decoy: decoy)
        }
    }

    // MARK: Disk

    /// How much was ever written to the disk, which is not mounted: s_kbytes_written of ext4's superblock. And the
    /// seconds from the oldest commit that its journal still has to the newest.
    mutating func addBytes(of host: HostImage, explained: UInt64) throws {
        guard host.kind == .ext4 else { return }
        var (kibibytes, seconds) = (UInt64(0), [UInt64]())
        try host.forEachData { place, bytes in
            if place == 0 {
                kibibytes = UInt64(
                    littleEndian: bytes.loadUnaligned(fromByteOffset: 1024 + 0x178, as: UInt64.self))
            }
            seconds += Self.commitSeconds(bytes)
        }
        add(.written, bytesOfDiskFeature, Double(kibibytes * 1024) - Double(explained))
        add(.written, "ext4: seconds in the journal", (seconds.max() ?? 0) - (seconds.min() ?? 0))
    }

    /// The times of the commit blocks of a journal (linux/include/linux/jbd2.h, struct commit_header).
    private static func commitSeconds(_ bytes: UnsafeRawBufferPointer) -> [UInt64] {
        stride(from: 0, to: bytes.count - 4095, by: 4096).compactMap { block in
            func number<T: FixedWidthInteger>(_ offset: Int, as type: T.Type) -> T {
                T(bigEndian: bytes.loadUnaligned(fromByteOffset: block + offset, as: type))
            }
            guard number(0, as: UInt32.self) == 0xC03B_3998, number(4, as: UInt32.self) == 2 else {
                return nil
            }
            return number(0x30, as: UInt64.self)
        }
    }

    /// Features of the disk, which is not mounted.
    mutating func addDisk(_ host: HostImage, _ files: VaultFiles, decoy: Int) throws {
        switch host.kind {
        case .ext4: try addExt4(host, files, decoy)
        case .xfs: try addXFS(host, files, decoy)
        // Its directories have nothing that stat(2) does not tell, and it has no journal.
        case .exfat: break
        }
    }

    /// Adds a tool's output for the inode of each file.
    ///
    /// - Parameter fields: by file, then by name: the same names for every vault.
    private mutating func add(
        _ host: HostImage, _ fields: [String: [String: Double]], _ own: [String], _ decoy: Int
    ) {
        let prefix = host.kind.rawValue
        for file in VaultFiles.names {
            for (name, value) in (fields[file] ?? [:]).sorted(by: { $0.key < $1.key }) {
                add(.counters, "\(prefix): \(name) of \(VaultFiles.word(file))", value)
            }
        }
        for name in (own.first.flatMap { fields[$0] } ?? [:]).keys.sorted() {
            add(
                .counters, "\(prefix): \(name) of own files", own.map { [fields[$0]?[name] ?? 0] },
                decoy: decoy)
        }
    }

    /// Adds features of older copies of inodes, which a journal keeps: how often which file changed.
    ///
    /// - Parameter copies: by file; those of today among them.
    private mutating func add(
        _ host: HostImage, _ copies: [String: [InodeCopy]], _ own: [String], _ decoy: Int
    ) {
        let prefix = host.kind.rawValue
        for file in VaultFiles.names {
            for (name, value) in InodeCopy.history(copies[file] ?? []) {
                add(.journal, "\(prefix): \(name) of \(VaultFiles.word(file))", value)
            }
        }
        func states(_ file: String) -> Int { Set((copies[file] ?? []).map(\.version)).count }
        add(.journal, "\(prefix): states of spaces - header", states("spaces") - states("obscura.vault"))
        let histories = own.map { InodeCopy.history(copies[$0] ?? []) }
        for (index, (name, _)) in (histories.first ?? []).enumerated() {
            add(.journal, "\(prefix): \(name) of own files", histories.map { [$0[index].1] }, decoy: decoy)
        }
    }

    // MARK: ext4

    private mutating func addExt4(_ host: HostImage, _ files: VaultFiles, _ decoy: Int) throws {
        func debugfs(_ request: String) throws -> String {
            try HostImage.run(["debugfs", "-R", request, host.path])
        }
        var fields: [String: [String: Double]] = [:]
        var places: [String: Ext4Place] = [:]
        for (file, inode) in files.inodes {
            let text = try debugfs("stat <\(inode)>")
            fields[file] = Self.ext4Fields(text)
            places[file] = Ext4Place(text, try debugfs("imap <\(inode)>"))
        }
        // Of times the distances within the first day and within the last session, and the parts of a second.
        let (first, last) = (fields["spaces"]?["crtime"] ?? 0, fields["spaces"]?["mtime"] ?? 0)
        for file in fields.keys {
            for name in ["mtime", "ctime", "atime", "crtime"] {
                fields[file]?[name]? -= file.isEmpty || name == "crtime" ? first : last
            }
        }
        add(host, fields, files.own, decoy)
        let table = places["spaces"]?.block ?? 0
        let log = try debugfs("logdump -aO").split(separator: "\n")
        func count(_ text: String) { add(.journal, "ext4: \(text)", log.count { $0.contains(text) }) }
        for text in ["commit block", "descriptor block", "revoke", " logged at "] { count(text) }
        var seconds: [UInt64] = []
        try host.forEachData { _, bytes in seconds += Self.commitSeconds(bytes) }
        add(.journal, "ext4: seconds in the journal", (seconds.max() ?? 0) - (seconds.min() ?? 0))
        add(
            .journal, "ext4: the inodes' block in the journal",
            log.count { $0.contains("FS block \(table) logged") })
        var copies: [String: [InodeCopy]] = [:]
        try host.forEachData { place, bytes in
            for block in stride(from: 0, to: bytes.count - 4095, by: 4096) {
                for (file, found) in places {
                    let inode = UnsafeRawBufferPointer(rebasing: bytes[block + found.offset..<block + 4096])
                    if inode.loadUnaligned(fromByteOffset: 0x64, as: UInt32.self) == found.generation {
                        copies[file, default: []].append(InodeCopy(ext4: inode))
                    }
                }
            }
        }
        add(host, copies, files.own, decoy)
    }

    /// Numbers by their names in the words of debugfs' stat.
    private static func ext4Fields(_ text: String) -> [String: Double] {
        let parts = text.split(separator: "EXTENTS:", maxSplits: 1)
        var fields: [String: Double] = [:]
        for match in parts[0].matches(of: #/([A-Za-z][A-Za-z ]*): +(0x)?([0-9a-fA-F]+)(:([0-9a-fA-F]+))?/#) {
            var name = String(match.output.1)
            while fields[name] != nil { name += "'" }
            let base = match.output.2 == nil ? 10 : 16
            guard let number = UInt64(match.output.3, radix: base), !name.contains("checksum") else {
                continue
            }
            fields[name] = Double(number)
            guard let low = match.output.5.flatMap({ UInt64($0, radix: 16) }) else { continue }
            if name.hasSuffix("time") {
                // Two more bits of the seconds, then nanoseconds.
                fields[name] = Double(number + (low & 3) << 32) * 1e9 + Double(low >> 2)
                fields[name + "'s parts"] = Double(low)
            } else {
                fields[name] = Double(number << 32 + low)
            }
        }
        let extents = parts.count > 1 ? parts[1] : ""
        let numbers = extents.matches(of: #/\):([0-9]+)/#)
        fields["extents"] = Double(numbers.count)
        fields["first block"] = numbers.first.flatMap { Double($0.output.1) } ?? 0
        fields["unwritten extents"] = Double(extents.matches(of: #/\[u\]/#).count)
        return fields
    }

    // MARK: XFS

    private mutating func addXFS(_ host: HostImage, _ files: VaultFiles, _ decoy: Int) throws {
        var fields: [String: [String: Double]] = [:]
        var copies: [String: [InodeCopy]] = [:]
        for (file, inode) in files.inodes {
            let text = try HostImage.run(["xfs_db", "-r", "-c", "inode \(inode)", "-c", "print", host.path])
            var found: [String: Double] = [:]
            for match in text.matches(of: #/((core|v3)\.[a-z0-9_.]+) = (0x)?([0-9a-f]+)( .*)?\n/#) {
                let name = String(match.output.1)
                if name.hasSuffix("crc") || name.hasSuffix("lsn") { continue }
                let base = match.output.3 == nil ? 10 : 16
                found[name] = Double(UInt64(match.output.4, radix: base) ?? 0)
            }
            // 0: none of those that the file may have.
            found["extents"] = Double(text.matches(of: #/:\[[0-9,]+\]/#).count)
            fields[file] = found
        }
        add(host, fields, files.own, decoy)
        let names = Dictionary(uniqueKeysWithValues: files.inodes.map { ($0.value, $0.key) })
        try host.forEachData { place, bytes in
            for start in stride(from: 0, to: bytes.count - InodeCopy.xfsBytes, by: 4) {
                // Version 3 of an inode, as the log has it: in this machine's byte order.
                guard bytes.loadUnaligned(fromByteOffset: start, as: UInt16.self) == 0x494E,
                    bytes[start + 4] == 3
                else { continue }
                let core = UnsafeRawBufferPointer(rebasing: bytes[start..<start + InodeCopy.xfsBytes])
                if let (inode, copy) = InodeCopy.xfs(core, at: place + start), let file = names[inode] {
                    copies[file, default: []].append(copy)
                }
            }
        }
        add(host, copies, files.own, decoy)
    }
}

/// Where on an ext4 disk an inode lies, and the number that tells it from others.
private struct Ext4Place {
    var block: Int
    var offset: Int
    var generation: UInt32

    init?(_ stat: String, _ imap: String) {
        guard let found = imap.firstMatch(of: #/block ([0-9]+), offset 0x([0-9a-f]+)/#),
            let block = Int(found.output.1), let offset = Int(found.output.2, radix: 16),
            let match = stat.firstMatch(of: #/Generation: ([0-9]+)/#), let generation = UInt32(match.output.1)
        else { return nil }
        (self.block, self.offset, self.generation) = (block, offset, generation)
    }
}

/// A state of an inode that the disk keeps.
struct InodeCopy: Hashable {
    /// How often it was changed by then.
    var version: UInt64
    /// Times in nanoseconds, from some day.
    var modified: Int64
    var changed: Int64
    var accessed: Int64

    /// An inode of 256 bytes (linux/fs/ext4/ext4.h).
    init(ext4 bytes: UnsafeRawBufferPointer) {
        func number(_ offset: Int) -> UInt64 {
            UInt64(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        func time(_ seconds: Int, _ extra: Int) -> Int64 {
            Int64(number(seconds) | (number(extra) & 3) << 32) * 1_000_000_000 + Int64(number(extra) >> 2)
        }
        version = number(0x98) << 32 | number(0x24)
        (modified, changed, accessed) = (time(0x10, 0x88), time(0x0C, 0x84), time(0x08, 0x8C))
    }

    /// Of struct xfs_log_dinode (linux/fs/xfs/libxfs/xfs_log_format.h).
    private init(xfs bytes: UnsafeRawBufferPointer) {
        func number(_ offset: Int) -> UInt64 { bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) }
        func time(_ offset: Int) -> Int64 { Int64(truncatingIfNeeded: number(offset)) }
        (accessed, modified, changed) = (time(32), time(40), time(48))
        version = number(Self.xfsVersion)
    }

    /// The size of struct xfs_log_dinode, and the places of numbers in it.
    static let xfsBytes = 176
    private static let (xfsVersion, xfsInode) = (104, 152)

    /// The inode's number, and its state; nil where the log has its own marks among these bytes, in the first four of
    /// every sector.
    static func xfs(_ bytes: UnsafeRawBufferPointer, at place: Int) -> (UInt64, InodeCopy)? {
        for field in [32, 40, 48, xfsVersion, xfsInode] {
            for word in [field, field + 4] where (place + word) % 512 == 0 { return nil }
        }
        return (bytes.loadUnaligned(fromByteOffset: xfsInode, as: UInt64.self), InodeCopy(xfs: bytes))
    }

    /// Features of the copies of one inode, under the same names for any number of them.
    static func history(_ copies: [InodeCopy]) -> [(String, Double)] {
        var times: [UInt64: Int64] = [:]
        for copy in copies { times[copy.version] = copy.modified }
        let versions = times.keys.sorted()
        let gaps = zip(versions.dropFirst(), versions).map { Double($0 - $1) }
        let moments = Set(times.values).sorted()
        let pauses = zip(moments.dropFirst(), moments).map { Double($0 - $1) }
        var found: [(String, Double)] = [
            ("copies", Double(copies.count)), ("states", Double(versions.count)),
            ("times", Double(moments.count)),
            ("changes between the first state and the last", gaps.reduce(0, +)),
            ("states less than 16 changes apart", Double(gaps.count { $0 < 16 })),
            ("states less than 128 changes apart", Double(gaps.count { $0 < 128 })),
            ("states more than 1024 changes apart", Double(gaps.count { $0 > 1024 })),
            ("pauses of less than 100 ms", Double(pauses.count { $0 < 1e8 })),
            ("pauses of more than 4 s", Double(pauses.count { $0 > 4e9 })),
        ]
        for (name, list) in [("changes between states", gaps), ("nanoseconds between times", pauses)] {
            found += [
                ("least \(name)", list.min() ?? 0), ("middle \(name)", middle(list)),
                ("most \(name)", list.max() ?? 0), ("last \(name)", list.last ?? 0),
                ("last but one \(name)", list.dropLast().last ?? 0),
            ]
        }
        return found + distances(Set(copies))
    }

    private static func middle(_ list: [Double]) -> Double {
        list.isEmpty ? 0 : list.sorted()[list.count / 2]
    }

    /// Features of the distances between a state's times.
    private static func distances(_ copies: Set<InodeCopy>) -> [(String, Double)] {
        let states = copies.sorted { ($0.version, $0.modified) < ($1.version, $1.modified) }
        var found: [(String, Double)] = [
            ("access times", Double(Set(states.map(\.accessed)).count)),
            ("states of one version", Double(states.count - Set(states.map(\.version)).count)),
        ]
        let fields: [(String, (InodeCopy) -> Int64)] = [
            ("mtime - atime", { $0.modified &- $0.accessed }),
            ("ctime - mtime", { $0.changed &- $0.modified }),
        ]
        for (name, distance) in fields {
            let list = states.map { Double(distance($0)) }
            found += [
                ("states with \(name)", Double(list.count { $0 != 0 })),
                ("most \(name)", list.max() ?? 0), ("least \(name)", list.min() ?? 0),
                ("middle \(name)", middle(list)), ("last \(name)", list.last ?? 0),
            ]
        }
        // The state after the last session.
        for back in 1...6 {
            let (state, before) = (states.dropLast(back - 1).last, states.dropLast(back).last)
            for (name, distance) in fields {
                found.append(("\(name), \(back) from the end", state.map { Double(distance($0)) } ?? 0))
            }
            let pause = state.flatMap { state in before.map { state.modified &- $0.modified } } ?? 0
            let changes = state.flatMap { state in before.map { state.version &- $0.version } } ?? 0
            found += [
                ("pause, \(back) from the end", Double(pause)),
                ("changes, \(back) from the end", Double(changes)),
            ]
        }
        // The kernel dates a change by its last tick, unless the file was asked for its times since the last change.
        for tick in [1e6, 4e6, 1e7] {
            let angles = states.map { Double($0.modified % 10_000_000) / tick * 2 * Double.pi }
            let sum = (angles.map(cos).reduce(0, +), angles.map(sin).reduce(0, +))
            let length = (sum.0 * sum.0 + sum.1 * sum.1).squareRoot() / Double(max(1, angles.count))
            found.append(("times at ticks of \(Int(tick)) ns", length))
        }
        return found
    }
}

extension HostImage {
    /// Reads all that was ever written to the disk, in pieces that begin at a multiple of 4096 bytes.
    fileprivate func forEachData(_ body: (_ place: Int, UnsafeRawBufferPointer) throws -> Void) throws {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw Failure(words: path) }
        defer { close(file) }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 4 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        // SEEK_DATA and SEEK_HOLE of lseek(2).
        let (seekData, seekHole): (Int32, Int32) = (3, 4)
        var place = lseek(file, 0, seekData)
        while place >= 0 && place < Self.bytes {
            let end = lseek(file, place, seekHole)
            place -= place % 4096
            while place < end {
                let count = pread(file, buffer.baseAddress, min(buffer.count, end - place), place)
                guard count > 0 else { throw Failure(words: path) }
                try body(place, UnsafeRawBufferPointer(rebasing: buffer[..<count]))
                place += count
            }
            place = lseek(file, end, seekData)
        }
    }
}
