import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// rsync keeps a tree of duplicates and hard links, with any edits at its source: copies that share their bytes
/// must never show.
@Suite("Albums: copies and edits at random, through a mount", .serialized, .waiting) struct DuplicateTests {
    /// A tree of pictures that is edited at random.
    private struct Source {
        let place: Place
        var random: SystemRandomSource
        var count = 0
        /// Seconds of the next file's time: each change has another, as rsync goes by sizes and times.
        var clock = 1_000_000_000

        private var names: [String] {
            let all = FileManager.default.subpaths(atPath: place.root + "/source") ?? []
            return all.filter { $0.contains("/f") }.sorted()
        }

        private mutating func newName() -> String {
            count += 1
            let folder = ["a", "b", "c/d"][Int.random(in: 0..<3, using: &random)]
            return "\(folder)/f\(count).jpg"
        }

        private mutating func picture() -> [UInt8] {
            Photo(
                taken: "20\(10 + Int.random(in: 0..<10, using: &random)):01:02 03:04:05",
                seed: UInt8(count % 24)
            ).bytes
        }

        private mutating func stamp(_ name: String) throws {
            clock += 7
            try place.shell("touch -d @\(clock).\(count % 1000 + 1) 'source/\(name)'")
        }

        /// Adds, copies, links, edits, replaces, renames or removes one file.
        mutating func edit() throws {
            let names = names
            guard let one = names.randomElement(using: &random), names.count > 5 else {
                return try add()
            }
            let other = names.randomElement(using: &random) ?? one
            switch Int.random(in: 0..<9, using: &random) {
            case 0: try add()
            case 1:
                let copy = newName()
                try place.shell("cp 'source/\(one)' 'source/\(copy)'")
                try stamp(copy)
            case 2: try place.shell("cp -p 'source/\(one)' 'source/\(newName())'")
            case 3: try place.shell("ln 'source/\(one)' 'source/\(newName())'")
            case 4:
                try place.shell(
                    "printf \(count) | dd of='source/\(one)' bs=1 seek=400 conv=notrunc status=none")
                try stamp(one)
            case 5:
                try place.shell("cp 'source/\(other)' source/new; mv source/new 'source/\(one)'")
                try stamp(one)
            case 6:
                try place.shell(
                    "test 'source/\(one)' -ef 'source/\(other)' || cat 'source/\(other)' > 'source/\(one)'")
                try stamp(one)
            case 7: try place.shell("mv 'source/\(one)' 'source/\(newName())'")
            default: try place.shell("rm 'source/\(one)'")
            }
        }

        private mutating func add() throws {
            let name = newName()
            try place.source(name, picture())
            try stamp(name)
        }
    }

    /// xorshift64*, so that a seed tells all.
    private struct SystemRandomSource: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state ^= state << 13
            state ^= state >> 7
            state ^= state << 17
            return state &* 0x2545_F491_4F6C_DD1D
        }
    }

    @Test(arguments: ["-a", "-aH"], [1, 2] as [UInt64])
    func `ten rounds of random edits`(flags: String, seed: UInt64) throws {
        let place = try Place()
        try place.mount()
        try place.shell("mkdir -p source/a source/b source/c/d")
        var source = Source(
            place: place, random: SystemRandomSource(state: seed &* 0x9E37_79B9_7F4A_7C15 | 1))
        for _ in 0..<20 { try source.edit() }
        let list = "find . -type f -printf '%P %m %T@ %s\\n' | LC_ALL=C sort"
        for round in 0..<10 {
            try place.shell("rsync \(flags) --delete source/ D/albums/t/")
            let comment = Comment(rawValue: "seed \(seed), round \(round)")
            #expect(try place.shell("rsync \(flags) --delete -i source/ D/albums/t/").isEmpty, comment)
            #expect(try place.run(["diff", "-r", "source", "D/albums/t"]).output.isEmpty, comment)
            #expect(
                try place.shell("cd source; \(list)") == place.shell("cd D/albums/t; \(list)"), comment)
            if flags == "-aH" {
                let links = "find . -type f -printf '%i %P\\n' | LC_ALL=C sort -k2"
                let pattern = "| awk '!($1 in n) { n[$1] = NR } { print n[$1], $2 }'"
                #expect(
                    try place.shell("cd source; \(links) \(pattern)")
                        == place.shell("cd D/albums/t; \(links) \(pattern)"), comment)
            }
            if round == 5 {
                try place.unmount()
                try place.mount()
            }
            for _ in 0..<8 { try source.edit() }
        }
    }
}
