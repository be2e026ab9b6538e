import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultFormat

/// One open file and its expected bytes.
private struct FileWorld {
    let fixture: Fixture
    var random: RandomSource
    var bytes: [UInt8] = []
    private var handle: Handle?
    private static let bytesMax = 700_000

    init(_ seed: UInt64) throws {
        random = RandomSource(seed)
        fixture = try Fixture(isFragmented: seed % 2 == 0, limits: seed % 3 == 0 ? .least : .production)
        handle = try fixture.createOpen("albums/f")
    }

    private func opened() throws -> Handle { try #require(handle) }

    mutating func step(_ number: Int, _ comment: Comment) throws {
        let offset = Int.random(in: 0..<Self.bytesMax, using: &random)
        let count = Int.random(in: 1...(Bool.random(using: &random) ? 300_000 : 5000), using: &random)
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1, 2, 3: try write(rounded(offset), noise(count, seed: number))
        case 4: try truncate(rounded(offset))
        case 5, 6: try clear(offset, count)
        case 7:
            try close()
            handle = try fixture.open("albums/f")
        case 8: try fixture.library.fsync(opened(), dataOnly: true)
        case 9 where number % 3 == 0:
            try close()
            if Bool.random(using: &random) { try fixture.remount() } else { try fixture.kill() }
            handle = try fixture.open("albums/f")
        case 10: try copy(offset, count)
        default:
            let got = try fixture.read(opened(), count, at: UInt64(offset))
            #expect(got == Array(bytes.dropFirst(offset).prefix(count)), comment)
        }
        #expect(try fixture.stat("albums/f").size == UInt64(bytes.count), comment)
    }

    /// Half of the offsets are those of chunks.
    private mutating func rounded(_ offset: Int) -> Int {
        Bool.random(using: &random) ? offset : offset / 131_072 * 131_072
    }

    private mutating func close() throws {
        try fixture.close(opened())
        handle = nil
    }

    private mutating func put(_ offset: Int, _ more: [UInt8]) {
        if bytes.count < offset + more.count {
            bytes += [UInt8](repeating: 0, count: offset + more.count - bytes.count)
        }
        bytes.replaceSubrange(offset..<offset + more.count, with: more)
    }

    private mutating func write(_ offset: Int, _ more: [UInt8]) throws {
        try fixture.write(opened(), more, at: UInt64(offset))
        put(offset, more)
    }

    private mutating func truncate(_ size: Int) throws {
        try fixture.truncate("albums/f", UInt64(size))
        bytes = Array(bytes.prefix(size))
        bytes += [UInt8](repeating: 0, count: size - bytes.count)
    }

    private mutating func clear(_ offset: Int, _ count: Int) throws {
        let mode: Int32 = Bool.random(using: &random) ? 0x11 : 3
        try fixture.library.ranges.allocate(
            opened(), mode: mode, offset: UInt64(offset), length: UInt64(count))
        guard offset < bytes.count else { return }
        put(offset, [UInt8](repeating: 0, count: min(bytes.count, offset + count) - offset))
    }

    private mutating func copy(_ offset: Int, _ most: Int) throws {
        let target = Int.random(in: 0..<Self.bytesMax, using: &random)
        let count = min(most, abs(target - offset), max(0, bytes.count - offset))
        guard count > 0 else { return }
        var done = 0
        // As programs do: one call may copy less.
        while done < count {
            let copied = try fixture.library.ranges.copyRange(
                from: opened(), offset: UInt64(offset + done), to: opened(), offset: UInt64(target + done),
                count: UInt64(count - done))
            try #require(copied > 0)
            done += copied
        }
        put(target, Array(bytes[offset..<offset + count]))
    }

    /// Holes, as the library tells them, are zeros.
    func checkHoles(_ comment: Comment) throws {
        let reader = try fixture.open("albums/f", O_RDONLY)
        defer { fixture.library.release(reader) }
        var position: UInt64 = 0
        while let hole = try? fixture.library.ranges.seek(reader, offset: position, whence: .hole),
            hole < bytes.count
        {
            let data =
                (try? fixture.library.ranges.seek(reader, offset: hole, whence: .data)) ?? UInt64(bytes.count)
            #expect(bytes[Int(hole)..<Int(data)].allSatisfy { $0 == 0 }, comment)
            position = data
        }
    }

    mutating func finish(_ comment: Comment) throws {
        try close()
        #expect(try fixture.get("albums/f") == bytes, comment)
        try checkHoles(comment)
        try fixture.rm("albums/f")
        #expect(fixture.usedBytes == 0, comment)
        try fixture.expectNothingLeft(comment)
    }
}

/// Random operations against a model that is nothing but dictionaries.
@Suite("The tree: random operations against a model") struct ModelTests {
    final class Node {
        var bytes: [UInt8] = []
        var names: [String: Node]?
        var links = 1
        init(directory: Bool) { if directory { names = [:] } }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func `bytes against a model`(seed: UInt64) throws {
        var world = try FileWorld(seed)
        for step in 0..<250 { try world.step(step, "seed \(seed), step \(step)") }
        try world.finish("seed \(seed)")
    }

    @Test(arguments: [11, 12, 13, 14] as [UInt64])
    func `names against a model`(seed: UInt64) throws {
        var random = RandomSource(seed)
        let fixture = try Fixture(limits: seed % 2 == 0 ? .least : .production)
        let top = Node(directory: true)
        func directories(_ node: Node, _ path: String) -> [(String, Node)] {
            [(path, node)]
                + (node.names ?? [:]).sorted { $0.key < $1.key }.flatMap { name, child in
                    child.names == nil ? [] : directories(child, path + "/" + name)
                }
        }
        func contains(_ node: Node, _ other: Node) -> Bool {
            node === other || (node.names ?? [:]).values.contains { contains($0, other) }
        }
        for step in 0..<600 {
            let all = directories(top, "albums")
            let (path, here) = all.randomElement(using: &random) ?? ("albums", top)
            let (path2, there) = all.randomElement(using: &random) ?? ("albums", top)
            let name = "n\(Int.random(in: 0..<5, using: &random))"
            let name2 = "n\(Int.random(in: 0..<5, using: &random))"
            let (first, second) = (here.names?[name], there.names?[name2])
            func attempt(_ expected: FileError?, _ body: () throws -> Void) -> Bool {
                do {
                    try body()
                    #expect(expected == nil, "seed \(seed), step \(step): no error")
                    return expected == nil
                } catch {
                    #expect(error as? FileError == expected, "seed \(seed), step \(step): \(error)")
                    return false
                }
            }
            switch Int.random(in: 0..<8, using: &random) {
            case 0:
                if attempt(first == nil ? nil : .exists, { try fixture.mkdir(path + "/" + name) }) {
                    here.names?[name] = Node(directory: true)
                }
            case 1, 2:
                guard first?.names == nil else { break }
                let bytes = noise(Int.random(in: 0..<3000, using: &random), seed: step)
                try fixture.put(path + "/" + name, bytes)
                let node = first ?? Node(directory: false)
                node.bytes = bytes
                here.names?[name] = node
            case 3:
                guard let first else { break }
                let expected: FileError? = first.names == nil ? nil : .isDirectory
                if attempt(expected, { try fixture.rm(path + "/" + name) }) {
                    here.names?[name] = nil
                    first.links -= 1
                }
            case 4:
                guard let first else { break }
                let expected: FileError? =
                    first.names == nil ? .notDirectory : first.names?.isEmpty == true ? nil : .notEmpty
                if attempt(expected, { try fixture.rmdir(path + "/" + name) }) { here.names?[name] = nil }
            case 5:
                guard let first else { break }
                let expected: FileError? = first.names != nil ? .notPermitted : second == nil ? nil : .exists
                if attempt(expected, { try fixture.ln(path + "/" + name, path2 + "/" + name2) }) {
                    there.names?[name2] = first
                    first.links += 1
                }
            default:
                let isExchange = Int.random(in: 0..<4, using: &random) == 0
                var expected: FileError?
                if first == nil {
                    expected = .noEntry
                } else if isExchange && second == nil {
                    expected = .noEntry
                } else if let first, first === second {
                    expected = nil
                } else if let first, first.names != nil, contains(first, there) {
                    expected = .invalid
                } else if isExchange {
                    if let second, second.names != nil, contains(second, here) { expected = .invalid }
                } else if let first, let second {
                    if first.names != nil && second.names == nil { expected = .notDirectory }
                    if first.names == nil && second.names != nil { expected = .isDirectory }
                    if first.names != nil, second.names?.isEmpty == false { expected = .notEmpty }
                }
                let isDone = attempt(expected) {
                    try fixture.mv(path + "/" + name, path2 + "/" + name2, isExchange ? .exchange : [])
                }
                guard isDone, let first, first !== second else { break }
                if isExchange {
                    here.names?[name] = second
                } else {
                    here.names?[name] = nil
                    second?.links -= 1
                }
                there.names?[name2] = first
            }
            if step % 300 == 149 { try fixture.remount() }
            if step % 300 == 299 { try fixture.kill() }
            if step % 30 == 29 { try compare(fixture, top, "albums", "seed \(seed), step \(step)") }
        }
        for entry in try fixture.list("albums") {
            let path = "albums/" + entry.name.description
            if entry.mode & 0o170000 == 0o040000 { try fixture.rmrf(path) } else { try fixture.rm(path) }
        }
        #expect(try fixture.stat("albums").nlink == 2)
        try fixture.expectNothingLeft("seed \(seed)")
    }

    private func compare(_ fixture: Fixture, _ node: Node, _ path: String, _ comment: String) throws {
        let names = node.names ?? [:]
        #expect(try fixture.ls(path) == names.keys.sorted(), "\(comment) \(path)")
        let subdirectories = names.values.count { $0.names != nil }
        #expect(try fixture.stat(path).nlink == UInt32(2 + subdirectories), "\(comment) \(path)")
        for (name, child) in names {
            if child.names != nil {
                try compare(fixture, child, path + "/" + name, comment)
            } else {
                #expect(try fixture.get(path + "/" + name) == child.bytes, "\(comment) \(path)/\(name)")
                #expect(
                    try fixture.stat(path + "/" + name).nlink == UInt32(child.links),
                    "\(comment) \(path)/\(name)"
                )
            }
        }
    }
}
