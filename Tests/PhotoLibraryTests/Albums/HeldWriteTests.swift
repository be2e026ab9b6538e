import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestSupport
import Testing
import VaultFormat
import VaultStore

private let chunk = Int(Chunk.bytes)
private let written = noise(4 * chunk, seed: 5)

/// Writes whose bytes are sealed after their answers, with anything in between.
@Suite("Albums: sealing after the answer") struct HeldWriteTests {
    /// Writes 4 chunks, changes something before they are sealed, and expects `bytes` then and afterwards, and after a
    /// remount too, extended by a hole.
    private func expect(
        _ bytes: [UInt8], _ limits: Limits, after change: (Fixture, Handle) throws -> Void
    ) throws {
        let fixture = try Fixture(limits: limits)
        let extended = bytes + [UInt8](repeating: 0, count: 2 * chunk)
        do {
            let handle = try fixture.createOpen("albums/a")
            let request = HeldRequest(fixture.library, handle, written, at: 0)
            #expect(try request.write(fixture.caller) == written.count)
            #expect(try fixture.get("albums/a") == written)
            #expect(try fixture.stat("albums/a").size == UInt64(written.count))
            try change(fixture, handle)
            #expect(try fixture.get("albums/a") == bytes)
            request.finish()
            #expect(try fixture.get("albums/a") == bytes)
            let changes = AttributeChanges(size: UInt64(extended.count))
            _ = try fixture.library.setAttributes(handle.ino, changes, handle: handle, fixture.caller)
            #expect(try fixture.get("albums/a") == extended)
            try fixture.close(handle)
        }
        try fixture.remount()
        #expect(try fixture.get("albums/a") == extended)
        try fixture.rm("albums/a")
        try fixture.expectNothingLeft()
    }

    @Test(arguments: [Limits.production, .least]) func `the bytes are there at once and stay`(
        _ limits: Limits
    ) throws {
        try expect(written, limits) { _, _ in }
        try expect(written, limits) { fixture, handle in try fixture.library.flush(handle) }
        try expect(written, limits) { fixture, handle in try fixture.library.fsync(handle, dataOnly: false) }
    }

    @Test(arguments: [Limits.production, .least]) func `what is written over them meanwhile stays`(
        _ limits: Limits
    ) throws {
        let part = noise(1000, seed: 6)
        try expect(written[..<70_000] + part + written[71_000...], limits) { fixture, handle in
            try fixture.write(handle, part, at: 70_000)
        }
        let whole = noise(2 * chunk, seed: 7)
        try expect(written[..<chunk] + whole + written[(3 * chunk)...], limits) { fixture, handle in
            try whole.withUnsafeBytes {
                _ = try fixture.library.write(handle, offset: UInt64(chunk), $0, fixture.caller)
            }
        }
    }

    @Test(arguments: [Limits.production, .least], [0, 1, 70_000, chunk, 3 * chunk + 5, 5 * chunk])
    func `what is cut off meanwhile stays cut off`(_ limits: Limits, _ size: Int) throws {
        let rest = [UInt8](repeating: 0, count: max(0, size - written.count))
        try expect(written.prefix(size) + rest, limits) { fixture, handle in
            let changes = AttributeChanges(size: UInt64(size))
            _ = try fixture.library.setAttributes(handle.ino, changes, handle: handle, fixture.caller)
        }
    }

    @Test func `a file may go before its bytes are sealed`() throws {
        let fixture = try Fixture()
        do {
            let handle = try fixture.createOpen("albums/a")
            let request = HeldRequest(fixture.library, handle, noise(4 * chunk), at: 0)
            _ = try request.write(fixture.caller)
            try fixture.rm("albums/a")
            try fixture.close(handle)
            request.finish()
        }
        try fixture.expectNothingLeft()
    }

    @Test func `what is cut off while the disk fails does not come back`() throws {
        let fixture = try Fixture()
        let size = 3 * chunk + 5
        let expected = written[..<size] + [UInt8](repeating: 0, count: chunk)
        do {
            let handle = try fixture.createOpen("albums/a")
            let request = HeldRequest(fixture.library, handle, written, at: 0)
            _ = try request.write(fixture.caller)
            func resize(_ size: Int) throws {
                let changes = AttributeChanges(size: UInt64(size))
                _ = try fixture.library.setAttributes(handle.ino, changes, handle: handle, fixture.caller)
            }
            fixture.vault.calls.failWrites(.inputOutput)
            #expect(throws: FileError.self) { try resize(size) }
            fixture.vault.calls.failWrites(nil)
            request.finish()
            try resize(expected.count)
            #expect(try fixture.get("albums/a") == Array(expected))
            try fixture.close(handle)
        }
        try fixture.remount()
        #expect(try fixture.get("albums/a") == Array(expected))
    }

    @Test func `what a failing disk does not take is kept, and close tells`() throws {
        let fixture = try Fixture()
        let calls = fixture.vault.calls
        let bytes = noise(4 * chunk, seed: 8)
        do {
            let handle = try fixture.createOpen("albums/a")
            let request = HeldRequest(fixture.library, handle, bytes, at: 0)
            _ = try request.write(fixture.caller)
            calls.failWrites(.inputOutput)
            request.finish()
            #expect(throws: FileError.self) { try fixture.library.flush(handle) }
            #expect(try fixture.get("albums/a") == bytes)
            calls.failWrites(nil)
            try fixture.close(handle)
        }
        try fixture.remount()
        #expect(try fixture.get("albums/a") == bytes)
    }

    @Test(arguments: [true, false]) func `writes that a failing disk refuses count as no dirty chunks`(
        _ isHeld: Bool
    ) throws {
        let fixture = try Fixture(limits: .least)
        do {
            let handle = try fixture.createOpen("albums/a")
            defer { fixture.library.release(handle) }
            let part = noise(1000)
            try fixture.write(handle, part)
            fixture.vault.calls.failWrites(.inputOutput)
            for number in 1...20 {
                #expect(throws: FileError.self) {
                    if isHeld {
                        let request = HeldRequest(
                            fixture.library, handle, noise(chunk), at: UInt64(number * chunk))
                        defer { request.finish() }
                        _ = try request.write(fixture.caller)
                    } else {
                        try fixture.write(handle, part, at: UInt64(number * chunk))
                    }
                }
            }
            #expect(fixture.library.session.context.dirtyChunks == 1)
            fixture.vault.calls.failWrites(nil)
            try fixture.library.flush(handle)
            #expect(fixture.library.session.context.dirtyChunks == 0)
            #expect(fixture.library.session.context.reservedRoom == 0)
        }
        try fixture.remount()
        #expect(try fixture.get("albums/a") == noise(1000))
    }

    @Test func `a full space is told by the write`() throws {
        let fixture = try Fixture(bytes: 16 << 20)
        var written = 0
        let bytes = noise(4 * chunk, seed: 9)
        do {
            let handle = try fixture.createOpen("albums/a")
            var requests: [HeldRequest] = []
            let error = #expect(throws: FileError.self) {
                while written < 64 << 20 {
                    let request = HeldRequest(fixture.library, handle, bytes, at: UInt64(written))
                    requests.append(request)
                    written += try request.write(fixture.caller)
                    if requests.count == 4 { requests.removeFirst().finish() }
                }
            }
            #expect(error == .noRoom)
            for request in requests { request.finish() }
            try fixture.close(handle)
        }
        try fixture.remount()
        let got = try fixture.get("albums/a")
        #expect(got.count == written && got.elements(everyFrom: bytes))
    }

    @Test(arguments: [Limits.production, .least], [UInt64](1...4)) func `by chance`(
        _ limits: Limits, _ seed: UInt64
    ) throws {
        var random = RandomSource(seed)
        let fixture = try Fixture(limits: limits)
        var model: [UInt8] = []
        do {
            let handle = try fixture.createOpen("albums/a")
            var requests: [HeldRequest] = []
            for step in 0..<100 {
                let offset = Int.random(in: 0...8, using: &random) * chunk
                switch Int.random(in: 0..<10, using: &random) {
                case 0..<4:
                    let bytes = noise(Int.random(in: 1...5, using: &random) * chunk, seed: step)
                    let request = HeldRequest(fixture.library, handle, bytes, at: UInt64(offset))
                    #expect(try request.write(fixture.caller) == bytes.count)
                    requests.append(request)
                    put(bytes, at: offset, into: &model)
                case 4..<7:
                    if let index = requests.indices.randomElement(using: &random) {
                        requests.remove(at: index).finish()
                    }
                case 7:
                    let bytes = noise(Int.random(in: 1...200_000, using: &random), seed: step)
                    let place = offset + Int.random(in: 0..<chunk, using: &random)
                    try fixture.write(handle, bytes, at: UInt64(place))
                    put(bytes, at: place, into: &model)
                case 8:
                    let size = Int.random(in: 0...9 * chunk, using: &random)
                    _ = try fixture.library.setAttributes(
                        handle.ino, AttributeChanges(size: UInt64(size)), handle: handle, fixture.caller)
                    model =
                        Array(model.prefix(size)) + [UInt8](repeating: 0, count: max(0, size - model.count))
                default: try fixture.library.fsync(handle, dataOnly: false)
                }
                let isSame = try fixture.get("albums/a") == model
                #expect(isSame, "seed \(seed), step \(step)")
            }
            for request in requests { request.finish() }
            try fixture.close(handle)
        }
        try fixture.remount()
        #expect(try fixture.get("albums/a").elementsEqual(model), "seed \(seed)")
        try fixture.rm("albums/a")
        try fixture.expectNothingLeft("seed \(seed)")
    }

    private func put(_ bytes: [UInt8], at offset: Int, into model: inout [UInt8]) {
        if model.count < offset { model += [UInt8](repeating: 0, count: offset - model.count) }
        let end = min(model.count, offset + bytes.count)
        model.replaceSubrange(offset..<end, with: bytes)
    }
}

extension [UInt8] {
    fileprivate func elements(everyFrom pattern: [UInt8]) -> Bool {
        stride(from: 0, to: count, by: pattern.count).allSatisfy {
            self[$0..<Swift.min($0 + pattern.count, count)].elementsEqual(pattern.prefix(count - $0))
        }
    }
}
