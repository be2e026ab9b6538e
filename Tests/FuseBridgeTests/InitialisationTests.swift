import Foundation
import TestSupport
import TestThreads
import Testing

@testable import FuseBridge

/// The answer to the kernel's INIT, and its effects.
@Suite("Kernel: the answer to INIT") struct InitialisationTests {
    /// Bits of linux/fuse.h.
    private enum Flag: UInt64, CaseIterable {
        case asyncRead = 0
        case atomicTruncation = 3
        case bigWrites = 5
        case readDirectoryPlus = 13
        case asyncDirectIO = 15
        case parallelDirectories = 18
        case maxPages = 22
        case cacheSymlinks = 23
        case explicitInvalidation = 25
        case handleKillPrivilegesV2 = 28
        case initExtended = 30
        case mapDirectFiles = 36
    }

    @Test func `the answer has all flags that are meant, and no other`() throws {
        let mounted = try MountedLibrary()
        let answered = mounted.session.answeredFlags
        try mounted.finish()
        for bit in UInt64(0)..<64 {
            let isSet = answered >> bit & 1 == 1
            let flag = Flag(rawValue: bit)
            // Both exist since Linux 6.6.
            let mayMiss = flag == .initExtended || flag == .mapDirectFiles
            #expect(isSet == (flag != nil) || mayMiss && !isSet, "bit \(bit)")
        }
    }

    /// Eight threads look up, list, create, rename and remove in one directory. Names that stay are found each time,
    /// and each thread finds its own names as it left them.
    @Test(.waiting) func `many threads in one directory`() throws {
        let seed = UInt64.random(in: 0 ... .max)
        let mounted = try MountedLibrary()
        let stable = (0..<150).map { "stay\($0)" }
        for name in stable {
            try Data(name.utf8).write(to: URL(fileURLWithPath: mounted.path(name)))
        }
        let mistakes = Mistakes()
        let threads = 8
        DispatchQueue.concurrentPerform(iterations: threads) { thread in
            var worker = DirectoryWorker(
                directory: mounted.directory, prefix: "t\(thread)-", stable: stable, mistakes: mistakes,
                random: RandomSource(seed &+ UInt64(thread)))
            for _ in 0..<600 { worker.step() }
            worker.finish()
        }
        #expect(mistakes.all == [], "seed \(seed)")
        let left = try FileManager.default.contentsOfDirectory(atPath: mounted.directory)
        #expect(left.sorted() == stable.sorted(), "seed \(seed)")
        try mounted.finish()
    }
}

/// Violations that threads found.
private final class Mistakes: @unchecked Sendable {
    private let lock = NSLock()
    private var found: [String] = []
    var all: [String] { lock.withLock { found } }
    func note(_ text: String) { lock.withLock { found.append(text) } }
}

/// One thread's work, and the names that it has.
private struct DirectoryWorker {
    let directory: String
    let prefix: String
    let stable: [String]
    let mistakes: Mistakes
    var random: RandomSource
    /// By name the size, or nil for a directory.
    private var own: [String: Int?] = [:]
    private var count = 0

    init(directory: String, prefix: String, stable: [String], mistakes: Mistakes, random: RandomSource) {
        (self.directory, self.prefix, self.stable) = (directory, prefix, stable)
        (self.mistakes, self.random) = (mistakes, random)
    }

    private func path(_ name: String) -> String { directory + "/" + name }

    private func expect(_ holds: Bool, _ what: String) {
        if !holds { mistakes.note("\(prefix) \(what): \(String(cString: strerror(errno)))") }
    }

    private mutating func newName() -> String {
        count += 1
        return "\(prefix)\(count % 5)-\(count)"
    }

    mutating func step() {
        switch Int.random(in: 0..<12, using: &random) {
        case 0, 1: create()
        case 2: makeDirectory()
        case 3: rename()
        case 4: remove()
        case 5: list()
        case 6, 7: lookUpOwn()
        default: lookUpStable()
        }
    }

    mutating func finish() {
        lookUpOwn()
        while !own.isEmpty { remove() }
    }

    private mutating func create() {
        let (name, size) = (newName(), Int.random(in: 0..<3000, using: &random))
        let file = open(path(name), O_CREAT | O_EXCL | O_WRONLY, 0o644)
        expect(file >= 0, "create \(name)")
        if file < 0 { return }
        let bytes = [UInt8](repeating: 7, count: size)
        expect(write(file, bytes, size) == size, "write \(name)")
        expect(close(file) == 0, "close \(name)")
        own[name] = .some(size)
    }

    private mutating func makeDirectory() {
        let name = newName()
        expect(mkdir(path(name), 0o755) == 0, "mkdir \(name)")
        own[name] = .some(nil)
    }

    private mutating func rename() {
        guard let (name, size) = own.randomElement(using: &random) else { return }
        let target = newName()
        expect(Foundation.rename(path(name), path(target)) == 0, "rename \(name) \(target)")
        own[name] = nil
        own[target] = .some(size)
    }

    private mutating func remove() {
        guard let (name, size) = own.randomElement(using: &random) else { return }
        expect((size == nil ? rmdir(path(name)) : unlink(path(name))) == 0, "remove \(name)")
        own[name] = nil
        var found = stat()
        expect(lstat(path(name), &found) != 0 && errno == ENOENT, "removed \(name)")
    }

    private mutating func lookUpOwn() {
        for (name, size) in own {
            var found = stat()
            expect(lstat(path(name), &found) == 0, "stat \(name)")
            if let size { expect(Int(found.st_size) == size, "size of \(name)") }
        }
        var found = stat()
        expect(lstat(path(prefix + "never"), &found) != 0 && errno == ENOENT, "what never was")
    }

    private mutating func lookUpStable() {
        guard let name = stable.randomElement(using: &random) else { return }
        var found = stat()
        expect(lstat(path(name), &found) == 0 && Int(found.st_size) == name.utf8.count, "stat \(name)")
    }

    private func list() {
        guard let directory = opendir(directory) else { return expect(false, "opendir") }
        defer { closedir(directory) }
        var names: [String: Int] = [:]
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            names[name, default: 0] += 1
        }
        expect(stable.allSatisfy { names[$0] == 1 }, "list: a name that stays is missing, or twice")
        expect(own.keys.allSatisfy { names[$0] == 1 }, "list: a name of its own is missing, or twice")
        expect(
            names.keys.allSatisfy { !$0.hasPrefix(prefix) || own.keys.contains($0) }, "list: a removed name")
    }
}
