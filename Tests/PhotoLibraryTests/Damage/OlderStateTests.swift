import Foundation
import LibraryFixtures
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import FileRequests
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore

/// After a kill only a soft root has the newest state. Where it cannot be read for a reason that may pass, nothing is
/// written to the older one.
@Suite("Damage: an older state is shown") struct OlderStateTests {
    /// A vault as a killed process left it: `old` is durable, `new` and `last` are in a soft state, in other segments.
    private final class KilledVault {
        let fixture: Fixture
        let files: [String: [UInt8]]
        private(set) var segmentsOfLast: [Int] = []
        private(set) var contentSegments: [Int] = []

        /// - Parameter isNew: nothing at all is durable.
        init(isNew: Bool = false) throws {
            fixture = try Fixture(spaces: 1)
            try fixture.close()
            try fixture.reopen { $0.commitsByHand = true }
            var files: [String: [UInt8]] = [:]
            let sizes = [
                ("old", 3 << 20), ("gone", 5 << 20), ("brief", 9 << 20), ("new", 6 << 20), ("last", 9 << 20),
            ]
            for (name, size) in sizes {
                files[name] = noise(size, seed: size)
                try fixture.put("albums/\(name)", noise(size, seed: size))
                if name == "gone" && !isNew { fixture.library.session.committer.commitByHand(durable: true) }
            }
            fixture.library.session.committer.commitByHand(durable: false)
            // Removed files leave segments that an unmount would give back.
            for name in ["gone", "brief"] {
                try fixture.rm("albums/\(name)")
                files[name] = nil
            }
            self.files = files
            segmentsOfLast = try segments(of: "last")
            contentSegments = Array(2..<fixture.space.segments.count)
            try fixture.die()
        }

        private func segments(of name: String) throws -> [Int] {
            let handle = try fixture.open("albums/\(name)", O_RDONLY)
            defer { fixture.library.release(handle) }
            let runs = try #require(handle.state).map.pieces.map(\.run)
            return Set(runs.map { Int($0.sector) / fixture.space.parts.disk.sectorsPerSegment }).sorted()
        }

        func copy() throws -> VaultCopy { try VaultCopy(of: fixture.vault.path, files) }
    }

    /// A copy of the vault, and a library in it.
    private final class VaultCopy: LibraryUser {
        let path: String
        let caller = Caller(uid: 0, gid: 0)
        private let files: [String: [UInt8]]
        private var opened: Library?
        var library: Library {
            guard let opened else { preconditionFailure("nothing is open") }
            return opened
        }

        init(of path: String, _ files: [String: [UInt8]]) throws {
            self.files = files
            self.path = try makeTemporaryDirectory()
            for name in try FileManager.default.contentsOfDirectory(atPath: path) {
                try FileManager.default.copyItem(atPath: "\(path)/\(name)", toPath: "\(self.path)/\(name)")
            }
        }

        deinit {
            opened = nil
            try? FileManager.default.removeItem(atPath: path)
        }

        /// With which the vault is opened.
        let calls = UnreadableRange()

        func unlock() throws -> UnlockedSpace {
            try patiently {
                try Vault.unlock(
                    path, password: TestVault.password, stretcher: RememberingStretcher.shared, calls: calls)
            }
        }

        func open(allowsReadOnly: Bool = true) throws {
            var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
            options.thumbnails = .off
            options.commitsByHand = true
            options.trashDays = 0
            options.allowsReadOnly = allowsReadOnly
            opened = try Library.open(try unlock(), options: options)
        }

        func close() throws {
            defer { opened = nil }
            try library.close()
        }

        func file(_ segment: Int) -> String { "\(path)/segments/\(SegmentLayout.name(segment))" }

        func move(_ file: String, to other: String) throws {
            try FileManager.default.moveItem(atPath: file, toPath: other)
        }

        func exchange(_ first: Int, _ second: Int) throws {
            try move(file(first), to: path + "/x")
            try move(file(second), to: file(first))
            try move(path + "/x", to: file(second))
        }

        /// Whether all files are there with their bytes.
        func hasAll() throws -> Bool {
            try ls("albums").filter { !$0.hasPrefix(".") } == files.keys.sorted()
                && files.allSatisfy { try get("albums/\($0.key)") == $0.value }
        }

        func check() throws -> SpaceReport { try SpaceCheck.run(try unlock()) }
    }

    @Test func `of two exchanged segments none is lost`() throws {
        let killed = try KilledVault()
        let segments = killed.contentSegments
        #expect(segments.count >= 5)
        var stops = 0
        for (index, first) in segments.enumerated() {
            for second in segments[(index + 1)...] {
                let copy = try killed.copy()
                try copy.exchange(first, second)
                let stop = WriteStop.segmentsExchanged([first, second])
                try copy.open()
                if copy.library.writeStop == stop {
                    stops += 1
                    #expect(try copy.hasAll())
                }
                try? copy.close()
                let report = try copy.check()
                // Of two segments without a file there is nothing to tell.
                if !report.findings.isEmpty {
                    #expect(report.findings.map(\.text) == ["the space: \(stop.reason)"])
                    try SpaceRepair.run(try copy.unlock(), report.plan)
                }
                try copy.open(allowsReadOnly: false)
                #expect(try copy.hasAll(), "\(first) and \(second)")
                try copy.close()
                #expect(try copy.check().findings == [])
            }
        }
        // Segments with extents of the same lengths are told apart by the first write only.
        #expect(stops > 0)
    }

    @Test func `with a segment away nothing is written`() throws {
        let killed = try KilledVault()
        let segment = try #require(killed.segmentsOfLast.last)
        let copy = try killed.copy()
        try copy.move(copy.file(segment), to: copy.path + "/away")
        let fault = SegmentFault.missing(segment)
        let before = try FileManager.default.contentsOfDirectory(atPath: copy.path + "/segments").sorted()
        try copy.open()
        #expect(copy.library.writeStop == .olderState(fault))
        #expect(copy.library.isReadOnly && !copy.exists("albums/last"))
        expectError(.readOnly) { try copy.put("albums/more", [1]) }
        try copy.close()
        #expect(throws: VaultError.notWritable(.olderState(fault))) { try copy.open(allowsReadOnly: false) }
        #expect(
            try copy.check().findings.map(\.text) == [
                "the newest state of the space: it cannot be read (\(fault.text)): an older one is shown"
            ])
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: copy.path + "/segments").sorted() == before)
        // Back again.
        try copy.move(copy.path + "/away", to: copy.file(segment))
        try copy.open(allowsReadOnly: false)
        #expect(try copy.hasAll())
        try copy.close()
        #expect(try copy.check().findings == [])
    }

    /// Of the soft roots, or of a segment with some of the newest state's photos.
    @Test(arguments: [true, false])
    func `while the disk reports errors nothing is written`(ofRoots: Bool) throws {
        let killed = try KilledVault()
        let copy = try killed.copy()
        let last = try #require(killed.segmentsOfLast.last)
        if !ofRoots { copy.calls.path.withLock { $0 = SegmentLayout.name(last) } }
        copy.calls.range.withLock { $0 = ofRoots ? 4096 * 4..<4096 * 12 : 0..<Specimen.segmentBytes }
        try copy.open()
        #expect(copy.library.writeStop == .olderState(nil))
        #expect(!copy.exists("albums/last"))
        try copy.close()
        #expect(try copy.check().findings.contains { $0.text.contains("an older one is shown") })
        copy.calls.range.withLock { $0 = nil }
        try copy.open(allowsReadOnly: false)
        #expect(try copy.hasAll())
        try copy.close()
    }

    @Test(arguments: [false, true]) func `a repair goes on with the older state`(isNew: Bool) throws {
        let killed = try KilledVault(isNew: isNew)
        let segment = try #require(killed.segmentsOfLast.first)
        let copy = try killed.copy()
        try FileManager.default.removeItem(atPath: copy.file(segment))
        // A foreign file, which a repair must not take for an unused segment.
        try Data([1]).write(to: URL(fileURLWithPath: copy.file(1_000_000)))
        let plan = try copy.check().plan
        #expect(plan.lines == ["give up the newest state, and go on with the older one"])
        try SpaceRepair.run(try copy.unlock(), plan)
        #expect(try copy.check().findings == [])
        #expect(try Vault.checkFiles(copy.path) == [])
        #expect(FileManager.default.fileExists(atPath: copy.file(1_000_000)))
        try copy.open(allowsReadOnly: false)
        let left = isNew ? [] : ["gone", "old"]
        #expect(try copy.ls("albums").filter { !$0.hasPrefix(".") } == left)
        if !isNew { #expect(try copy.get("albums/old") == killed.files["old"]) }
        try copy.put("albums/more", [1])
        try copy.close()
        #expect(try copy.check().findings == [])
    }

    /// As after a stick was pulled out: unsynced writes are not on it. Only the older state was promised.
    @Test func `with bytes that do not open the older state is written`() throws {
        let killed = try KilledVault()
        let segment = try #require(killed.segmentsOfLast.last)
        let copy = try killed.copy()
        let bytes = try #require(FileManager.default.contents(atPath: copy.file(segment))).count
        try Data(noise(bytes, seed: 1)).write(to: URL(fileURLWithPath: copy.file(segment)))
        try copy.open(allowsReadOnly: false)
        #expect(copy.library.isOlderState && copy.library.writeStop == nil)
        #expect(try copy.ls("albums").filter { !$0.hasPrefix(".") } == ["gone", "old"])
        try copy.put("albums/more", [1])
        try copy.close()
        #expect(try copy.check().findings == [])
    }
}

/// Real calls, of which reads of some bytes of files fail with EIO.
private final class UnreadableRange: ForwardingCalls, Sendable {
    let real: any FileSystemCalls = LinuxCalls.shared
    let range = Mutex<Range<Int>?>(nil)
    /// How the names of these files end; nil: of all.
    let path = Mutex<String?>(nil)
    private let chosen = Mutex<Set<Int32>>([])

    func open(_ d: Int32, _ path: String, flags: Int32, mode: UInt32) throws(Errno) -> Int32 {
        let found = try real.open(d, path, flags: flags, mode: mode)
        let isChosen = path.hasSuffix(self.path.withLock { $0 } ?? ".seg")
        chosen.withLock { if isChosen { $0.insert(found) } else { $0.remove(found) } }
        return found
    }

    func pread(_ d: Int32, _ bytes: UnsafeMutableRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        let read = Int(offset)..<Int(offset) + bytes.count
        if chosen.withLock({ $0.contains(d) }), range.withLock({ $0?.overlaps(read) }) == true {
            throw Errno(EIO)
        }
        return try real.pread(d, bytes, at: offset)
    }
}
