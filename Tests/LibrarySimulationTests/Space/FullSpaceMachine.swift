import FileRequests
import Glibc
import LibraryFixtures
import PhotoLibrary
import TestFixtures
import TestSupport
import Testing
import VaultStore

/// Random work in a space that is always full. Whatever a request answered is in the next commit: fsync(2) succeeds,
/// removing succeeds, and a remount shows exactly the files that are there.
final class FullSpaceMachine {
    let session: FaultSession
    private var random: RandomSource
    /// The files in `albums`, and their bytes.
    private(set) var files: [String: [UInt8]] = [:]
    private var count = 0
    /// The request that was last made, for the text of a failure.
    private(set) var last = ""
    private static let block = noise(4_000_000)
    static let sizes = [0, 1, 500, 2000, 4096, 7000, 12_000, 20_000, 300_000, 3_000_000]

    init(_ session: FaultSession, seed: UInt64) {
        self.session = session
        random = RandomSource(seed)
    }

    private func bytes(_ size: Int) -> [UInt8] {
        let start = Int.random(in: 0..<900_000, using: &random)
        return Array(Self.block[start..<start + size])
    }

    private func path(_ name: String) -> String { "albums/" + name }

    private func chosen(_ most: Int) -> [String] {
        Array(files.keys.sorted().shuffled(using: &random).prefix(most))
    }

    // MARK: Requests

    /// Whether a request found room. No other error may come.
    private func finds(_ body: () throws -> Void) throws -> Bool {
        do {
            try body()
            return true
        } catch let error as FileError {
            guard error == .noRoom else { throw error }
            return false
        }
    }

    /// Writes through a handle, and closes it, which must succeed if the writes did. A file that found no room is
    /// removed, which always works.
    private func change(_ name: String, to bytes: [UInt8], _ body: (Handle) throws -> Void) throws -> Bool {
        var handle: Handle?
        last = "writing \(name)"
        let isDone = try finds {
            let opened = try session.createOpen(path(name))
            handle = opened
            try body(opened)
        }
        last = "closing \(name)"
        if let handle { try session.close(handle) }
        files[name] = bytes
        if !isDone {
            if handle == nil, !session.exists(path(name)) { files[name] = nil } else { try remove(name) }
        }
        return isDone
    }

    /// Writes a file, or overwrites one. Returns false if it found no room, and is gone.
    private func put(_ name: String, size: Int) throws -> Bool {
        let bytes = bytes(size)
        return try change(name, to: bytes) { if size > 0 { try session.write($0, bytes) } }
    }

    private func remove(_ name: String) throws {
        last = "removing \(name)"
        try session.rm(path(name))
        files[name] = nil
    }

    // MARK: Steps

    /// Makes files of these sizes until one finds no room.
    func fill(_ sizes: [Int], most: Int = 20_000) throws {
        for _ in 0..<most {
            count += 1
            guard try put("f\(count)", size: sizes.randomElement(using: &random) ?? 0) else { return }
        }
    }

    func removeHalf() throws {
        for name in files.keys.sorted().enumerated().filter({ $0.offset % 2 == 0 }).map(\.element) {
            try remove(name)
        }
    }

    func removeAll() throws { for name in files.keys.sorted() { try remove(name) } }

    /// Overwrites files that are there.
    func rewrite(_ most: Int, size: Int) throws {
        for name in chosen(most) { _ = try put(name, size: size) }
    }

    private func editSome() throws {
        for name in chosen(8) {
            guard var bytes = files[name] else { continue }
            switch Int.random(in: 0..<4, using: &random) {
            case 0:
                let more = self.bytes(Int.random(in: 1...200_000, using: &random))
                let end = UInt64(bytes.count)
                try edit(name, to: bytes + more) { try session.write($0, more, at: end) }
            case 1:
                let size = Int.random(in: 0...bytes.count, using: &random)
                bytes.removeLast(bytes.count - size)
                try edit(name, to: bytes) { try session.truncate($0, UInt64(size)) }
            case 2 where !bytes.isEmpty:
                let first = Int.random(in: 0..<bytes.count, using: &random)
                let end = Int.random(in: first..<bytes.count, using: &random) + 1
                for index in first..<end { bytes[index] = 0 }
                try edit(name, to: bytes) {
                    try session.library.ranges.allocate(
                        $0, mode: 3, offset: UInt64(first), length: UInt64(end - first))
                }
            default:
                guard let other = chosen(1).first, other != name else { continue }
                if try finds({ try session.mv(path(name), path(other)) }) {
                    files[other] = files.removeValue(forKey: name)
                }
            }
        }
    }

    private func edit(_ name: String, to bytes: [UInt8], _ body: (Handle) throws -> Void) throws {
        last = "editing \(name)"
        let handle = try session.open(path(name))
        let isDone = try finds { try body(handle) }
        last = "closing \(name)"
        try session.close(handle)
        files[name] = bytes
        if !isDone { try remove(name) }
    }

    func step() throws {
        switch Int.random(in: 0..<12, using: &random) {
        case 0...2:
            try fill(Self.sizes.shuffled(using: &random).suffix(Int.random(in: 1...6, using: &random)))
        case 3: try fill([4096])
        case 4: try removeHalf()
        case 5: for name in chosen(files.count / Int.random(in: 1...20, using: &random)) { try remove(name) }
        case 6: try rewrite(20, size: 3_000_000)
        case 7: try rewrite(100, size: Self.sizes.randomElement(using: &random) ?? 0)
        case 8, 9: try editSome()
        case 10: try remount()
        default: session.commit(durable: Bool.random(using: &random))
        }
        if Bool.random(using: &random) { try makeDurable() }
    }

    func makeDurable() throws {
        last = "fsync"
        try session.makeDurable()
    }

    func remount() throws {
        try makeDurable()
        last = "mounting again"
        if Bool.random(using: &random) { try session.unmount() } else { session.kill() }
        try session.mount()
        last = "reading"
        try expectIntact()
    }

    func expectIntact() throws {
        #expect(Set(try session.ls("albums")) == Set(files.keys))
        for name in chosen(60) { #expect(try session.get(path(name)) == files[name], "\(name)") }
    }

    // MARK: What df shows

    /// Writes files of that size until there is no room, and compares their bytes with those that were shown.
    func expectShown(_ size: Int) throws {
        let shown = session.library.statistics()
        #expect((shown.available == 0) || shown.filesFree > 0)
        var written = 0
        let before = Set(files.keys)
        while true {
            count += 1
            guard try put("s\(count)", size: size) else { break }
            written += size
        }
        let promised = Int(shown.available) * 4096
        print("shown \(promised >> 10) KiB, \(written >> 10) KiB written in files of \(size) bytes")
        #expect(
            written + size > promised * 9 / 10, "\(written) of \(promised) bytes in files of \(size) bytes")
        for name in files.keys.filter({ !before.contains($0) }).sorted() { try remove(name) }
        try session.makeDurable()
    }
}

extension FaultSession {
    func truncate(_ handle: Handle, _ size: UInt64) throws {
        _ = try library.setAttributes(
            handle.ino, AttributeChanges(size: size), handle: handle, caller)
    }
}
