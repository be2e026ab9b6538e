import Foundation
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultFormat

/// One open file and what it should hold.
private struct FileWorld {
    let rig: Rig
    var dice: Dice
    var bytes: [UInt8] = []
    private var handle: Handle?
    private static let bytesMax = 700_000

    init(_ seed: UInt64) throws {
        dice = Dice(seed)
        rig = try Rig(isFragmented: seed % 2 == 0, limits: seed % 3 == 0 ? .least : .production)
        handle = try rig.createOpen("albums/f")
    }

    private func opened() throws -> Handle { try #require(handle) }

    mutating func step(_ number: Int, _ comment: Comment) throws {
        let offset = Int.random(in: 0..<Self.bytesMax, using: &dice)
        let count = Int.random(in: 1...(Bool.random(using: &dice) ? 300_000 : 5000), using: &dice)
        switch Int.random(in: 0..<12, using: &dice) {
        case 0, 1, 2, 3: try write(rounded(offset), noise(count, seed: number))
        case 4: try truncate(rounded(offset))
        case 5, 6: try clear(offset, count)
        case 7:
            try close()
            handle = try rig.open("albums/f")
        case 8: try rig.library.fsync(opened(), dataOnly: true)
        case 9 where number % 3 == 0:
            try close()
            if Bool.random(using: &dice) { try rig.remount() } else { try rig.kill() }
            handle = try rig.open("albums/f")
        case 10: try copy(offset, count)
        default:
            let got = try rig.read(opened(), count, at: UInt64(offset))
            #expect(got == Array(bytes.dropFirst(offset).prefix(count)), comment)
        }
        #expect(try rig.stat("albums/f").size == UInt64(bytes.count), comment)
    }

    /// Half of the offsets are those of chunks.
    private mutating func rounded(_ offset: Int) -> Int {
        Bool.random(using: &dice) ? offset : offset / 131_072 * 131_072
    }

    private mutating func close() throws {
        try rig.close(opened())
        handle = nil
    }

    private mutating func put(_ offset: Int, _ more: [UInt8]) {
        if bytes.count < offset + more.count {
            bytes += [UInt8](repeating: 0, count: offset + more.count - bytes.count)
        }
        bytes.replaceSubrange(offset..<offset + more.count, with: more)
    }

    private mutating func write(_ offset: Int, _ more: [UInt8]) throws {
        try rig.write(opened(), more, at: UInt64(offset))
        put(offset, more)
    }

    private mutating func truncate(_ size: Int) throws {
        try rig.truncate("albums/f", UInt64(size))
        bytes = Array(bytes.prefix(size))
        bytes += [UInt8](repeating: 0, count: size - bytes.count)
    }

    private mutating func clear(_ offset: Int, _ count: Int) throws {
        let mode: Int32 = Bool.random(using: &dice) ? 0x11 : 3
        try rig.library.allocate(opened(), mode: mode, offset: UInt64(offset), length: UInt64(count))
        guard offset < bytes.count else { return }
        put(offset, [UInt8](repeating: 0, count: min(bytes.count, offset + count) - offset))
    }

    private mutating func copy(_ offset: Int, _ most: Int) throws {
        let target = Int.random(in: 0..<Self.bytesMax, using: &dice)
        let count = min(most, abs(target - offset), max(0, bytes.count - offset))
        guard count > 0 else { return }
        var done = 0
        // As programs do: one call may copy less.
        while done < count {
            let copied = try rig.library.copyRange(
                from: opened(), offset: UInt64(offset + done), to: opened(), offset: UInt64(target + done),
                count: UInt64(count - done))
            try #require(copied > 0)
            done += copied
        }
        put(target, Array(bytes[offset..<offset + count]))
    }

    /// Holes, as the library tells them, are zeros.
    func checkHoles(_ comment: Comment) throws {
        let reader = try rig.open("albums/f", O_RDONLY)
        defer { rig.library.release(reader) }
        var position: UInt64 = 0
        while let hole = try? rig.library.seek(reader, offset: position, whence: .hole), hole < bytes.count {
            let data = (try? rig.library.seek(reader, offset: hole, whence: .data)) ?? UInt64(bytes.count)
            #expect(bytes[Int(hole)..<Int(data)].allSatisfy { $0 == 0 }, comment)
            position = data
        }
    }

    mutating func finish(_ comment: Comment) throws {
        try close()
        #expect(try rig.get("albums/f") == bytes, comment)
        try checkHoles(comment)
        try rig.rm("albums/f")
        #expect(rig.usedBytes == 0, comment)
        try rig.expectNothingLeft(comment)
    }
}

/// Random operations against a model that is nothing but dictionaries.
@Suite struct ModelTests {
    final class Node {
        var bytes: [UInt8] = []
        var names: [String: Node]?
        var links = 1
        init(directory: Bool) { if directory { names = [:] } }
    }

    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func dataAgainstAModel(seed: UInt64) throws {
        var world = try FileWorld(seed)
        for step in 0..<250 { try world.step(step, "seed \(seed), step \(step)") }
        try world.finish("seed \(seed)")
    }

    @Test(arguments: [11, 12, 13, 14] as [UInt64])
    func namesAgainstAModel(seed: UInt64) throws {
        var dice = Dice(seed)
        let rig = try Rig(limits: seed % 2 == 0 ? .least : .production)
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
            let (path, here) = all.randomElement(using: &dice) ?? ("albums", top)
            let (path2, there) = all.randomElement(using: &dice) ?? ("albums", top)
            let name = "n\(Int.random(in: 0..<5, using: &dice))"
            let name2 = "n\(Int.random(in: 0..<5, using: &dice))"
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
            switch Int.random(in: 0..<8, using: &dice) {
            case 0:
                if attempt(first == nil ? nil : .exists, { try rig.mkdir(path + "/" + name) }) {
                    here.names?[name] = Node(directory: true)
                }
            case 1, 2:
                guard first?.names == nil else { break }
                let bytes = noise(Int.random(in: 0..<3000, using: &dice), seed: step)
                try rig.put(path + "/" + name, bytes)
                let node = first ?? Node(directory: false)
                node.bytes = bytes
                here.names?[name] = node
            case 3:
                guard let first else { break }
                let expected: FileError? = first.names == nil ? nil : .isDirectory
                if attempt(expected, { try rig.rm(path + "/" + name) }) {
                    here.names?[name] = nil
                    first.links -= 1
                }
            case 4:
                guard let first else { break }
                let expected: FileError? =
                    first.names == nil ? .notDirectory : first.names?.isEmpty == true ? nil : .notEmpty
                if attempt(expected, { try rig.rmdir(path + "/" + name) }) { here.names?[name] = nil }
            case 5:
                guard let first else { break }
                let expected: FileError? = first.names != nil ? .notPermitted : second == nil ? nil : .exists
                if attempt(expected, { try rig.ln(path + "/" + name, path2 + "/" + name2) }) {
                    there.names?[name2] = first
                    first.links += 1
                }
            default:
                let isExchange = Int.random(in: 0..<4, using: &dice) == 0
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
                    try rig.mv(path + "/" + name, path2 + "/" + name2, isExchange ? .exchange : [])
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
            if step % 300 == 149 { try rig.remount() }
            if step % 300 == 299 { try rig.kill() }
            if step % 30 == 29 { try compare(rig, top, "albums", "seed \(seed), step \(step)") }
        }
        for entry in try rig.list("albums") {
            let path = "albums/" + entry.name.description
            if entry.mode & 0o170000 == 0o040000 { try rig.rmrf(path) } else { try rig.rm(path) }
        }
        #expect(try rig.stat("albums").nlink == 2)
        try rig.expectNothingLeft("seed \(seed)")
    }

    private func compare(_ rig: Rig, _ node: Node, _ path: String, _ comment: String) throws {
        let names = node.names ?? [:]
        #expect(try rig.ls(path) == names.keys.sorted(), "\(comment) \(path)")
        let subdirectories = names.values.count { $0.names != nil }
        #expect(try rig.stat(path).nlink == UInt32(2 + subdirectories), "\(comment) \(path)")
        for (name, child) in names {
            if child.names != nil {
                try compare(rig, child, path + "/" + name, comment)
            } else {
                #expect(try rig.get(path + "/" + name) == child.bytes, "\(comment) \(path)/\(name)")
                #expect(
                    try rig.stat(path + "/" + name).nlink == UInt32(child.links), "\(comment) \(path)/\(name)"
                )
            }
        }
    }
}
