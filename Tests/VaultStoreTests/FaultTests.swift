import Glibc
import LinuxIO
import Synchronization
import TestSupport
import Testing
import VaultFormat

@testable import VaultStore

/// Bytes of a file that the disk does not take: fdatasync(2) fails once for every write to them.
struct BadPlace {
    var inode: UInt64
    var bytes: Range<UInt64>
    /// Written, and no sync has failed since.
    var isDirty: Bool
}

/// The real calls, of which chosen ones fail.
final class RefusingCalls: ForwardingCalls {
    /// Writes and syncs left before one fails; negative: none fails.
    let countdown = Mutex(-1)
    let error: Errno
    let badPlaces = Mutex<[BadPlace]>([])

    init(_ error: Errno) { self.error = error }

    func willCall(_ call: SystemCall, _ descriptor: Int32) throws(Errno) {
        switch call {
        case .write, .sync, .allocate: break
        default: return
        }
        let isDue = countdown.withLock { left in
            if left < 0 { return false }
            left -= 1
            return left < 0
        }
        if isDue { throw error }
    }

    func pwrite(_ d: Int32, _ bytes: UnsafeRawBufferPointer, at offset: UInt64) throws(Errno) -> Int {
        try willCall(.write, d)
        let inode = try real.status(d).inode
        badPlaces.withLock { places in
            for index in places.indices where places[index].inode == inode {
                if places[index].bytes.overlaps(offset..<offset + UInt64(bytes.count)) {
                    places[index].isDirty = true
                }
            }
        }
        // Short, as a kernel may be.
        let part = UnsafeRawBufferPointer(rebasing: bytes.prefix(max(1, bytes.count / 2)))
        return try real.pwrite(d, part, at: offset)
    }
    func dataSync(_ d: Int32) throws(Errno) {
        try willCall(.sync, d)
        let inode = try real.status(d).inode
        let isLost = badPlaces.withLock { places in
            let lost = places.indices.filter { places[$0].inode == inode && places[$0].isDirty }
            for index in lost { places[index].isDirty = false }
            return !lost.isEmpty
        }
        if isLost { throw error }
        try real.dataSync(d)
    }
}

@Suite("Crashes: each system call of a space fails") struct FaultTests {
    let directory = TemporaryDirectory()

    /// Every write and sync of a few commits fails once. What was published before stays, what failed is
    /// published by the next try, and a mount at any moment finds one of the two.
    @Test(arguments: [Errno.inputOutput, .noSpace])
    func `any call may fail`(error: Errno) throws {
        let calls = RefusingCalls(error)
        let path = try makeVault(directory, calls: calls)
        let data = bytes(300_000, seed: 11)
        var kept: Space? = try openSpace(path, calls: calls)
        kept?.stage(0, 1)
        try kept?.commit(durable: true)
        var round: UInt8 = 1
        for n in 0..<60 {
            round += 1
            if kept == nil { kept = try openSpace(path, calls: calls) }
            let space = try #require(kept)
            calls.countdown.withLock { $0 = n }
            space.stage(0, round)
            space.stage(UInt32(n) + 1, round)
            var failed = false
            do {
                let runs = try space.writeAll(UInt64(n), data)
                space.adopt(runs)
                try space.commit(durable: n % 2 == 0)
                try space.commit(durable: true)
                #expect(try space.readAll(UInt64(n), runs) == data)
                space.free(runs)
            } catch { failed = true }
            calls.countdown.withLock { $0 = -1 }
            #expect(try space.page(0) == round)
            if failed { try space.commit(durable: true) }
            #expect(try space.page(0) == round && space.page(UInt32(n) + 1) == round)
            if n % 3 == 0 { try space.close() }
            if n % 3 != 2 { kept = nil }
        }
    }

    /// Places of the disk that refuse every write: all of a soft commit's pages, maps and deltas lie in such. The next
    /// sync fails and is told; the one after succeeds without them, and they are not needed when they are gone.
    @Test(arguments: [false, true]) func `pages move away from bad places`(afterRestart: Bool) throws {
        let calls = RefusingCalls(.inputOutput)
        let path = try makeVault(directory, calls: calls)
        var kept: Space? = try openSpace(path, calls: calls)
        let data = bytes(300_000, seed: 5)
        for page in 0..<40 { kept?.stage(UInt32(page), 1) }
        // The node of these is written because of pages of zeros alone.
        for page in 200..<204 { kept?.stage(UInt32(page), 1) }
        try kept?.commit(durable: true)
        let before = Set(try usedSlots(kept))
        kept?.stage(7, 2)
        kept?.stage(200, 0)
        let runs = try kept?.writeAll(1, data) ?? []
        kept?.adopt(runs)
        try kept?.commit(durable: false)
        // Everything but the content is where nothing can be written.
        let taken = Set(try usedSlots(kept)).subtracting(before)
        #expect(taken.count >= 4)
        let bad = try taken.flatMap { try places(of: UInt32($0), in: try #require(kept), path) }
        calls.badPlaces.withLock { $0 = bad }
        if afterRestart {
            kept = nil
            kept = try openSpace(path, calls: calls)
        }
        kept?.stage(8, 3)
        #expect(throws: StoreError.io(.inputOutput)) { try kept?.commit(durable: true) }
        #expect(try kept?.page(7) == 2 && kept?.page(8) == 3)
        try kept?.commit(durable: true)
        for round in 4..<8 {
            kept?.stage(9, UInt8(round))
            try kept?.commit(durable: true)
        }
        // As if the power had been cut: the bytes of the bad places have never been on the disk.
        for place in bad { try overwrite(place, path) }
        calls.badPlaces.withLock { $0 = [] }
        kept = nil
        let again = try openSpace(path, calls: calls)
        #expect(try again.page(7) == 2 && again.page(8) == 3 && again.page(9) == 7 && again.page(39) == 1)
        #expect(try again.page(200) == 0 && again.page(201) == 1)
        #expect(try again.readAll(1, runs) == data)
        // Nothing leaks: the sectors of the soft commit are given back in the end.
        let used = again.parts.lock.withLock { again.parts.slots.used }
        for round in 8..<30 {
            again.stage(9, UInt8(round))
            try again.commit(durable: true)
        }
        #expect(again.parts.lock.withLock { again.parts.slots.used } <= used + 8)
    }

    private func usedSlots(_ space: Space?) throws -> [Int] {
        let space = try #require(space)
        return space.parts.lock.withLock { space.parts.slots.allocator.usedList }
    }

    /// Both copies of a slot, whose last write has not been synced.
    private func places(of slot: UInt32, in space: Space, _ path: String) throws -> [BadPlace] {
        let place = try space.parts.lock.withLock { try space.parts.pages.place(slot) }
        return try [place.sectorA, place.sectorB].map { sector in
            let segment = Int(sector) / space.parts.disk.sectorsPerSegment
            let start = UInt64(Int(sector) % space.parts.disk.sectorsPerSegment * Geometry.sectorBytes)
            return BadPlace(
                inode: try inode("\(path)/segments/\(SegmentLayout.name(segment))"),
                bytes: start..<start + UInt64(Geometry.pageBytes), isDirty: true)
        }
    }

    private func inode(_ path: String) throws -> UInt64 {
        let descriptor = try LinuxCalls.shared.open(AT_FDCWD, path, flags: O_RDONLY, mode: 0)
        defer { LinuxCalls.shared.close(descriptor) }
        return try LinuxCalls.shared.status(descriptor).inode
    }

    private func overwrite(_ place: BadPlace, _ path: String) throws {
        for segment in 0..<2 {
            let file = "\(path)/segments/\(SegmentLayout.name(segment))"
            guard try inode(file) == place.inode else { continue }
            let descriptor = try LinuxCalls.shared.open(AT_FDCWD, file, flags: O_RDWR, mode: 0)
            defer { LinuxCalls.shared.close(descriptor) }
            let garbage = [UInt8](repeating: 0x5A, count: Geometry.pageBytes)
            try LinuxCalls.shared.writeFully(descriptor, garbage, at: place.bytes.lowerBound)
        }
    }
}

extension SlotAllocator {
    /// Slots in use.
    fileprivate var usedList: [Int] {
        (0..<slotCount).filter { slot in
            let page = bytes(ofPage: slot / MapLayout.bitsPerPage)
            let bit = slot % MapLayout.bitsPerPage
            return page[bit / 8] >> UInt8(bit % 8) & 1 == 1
        }
    }
}
