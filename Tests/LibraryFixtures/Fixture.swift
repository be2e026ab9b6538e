import Foundation
package import LinuxIO
package import TestSupport
package import Testing
import VaultCatalogue
package import VaultFormat

@testable package import FileRequests
@testable package import PhotoLibrary
@testable package import Recovery
@testable package import VaultStore

/// Foundation has one too.
package typealias Handle = PhotoLibrary.FileHandle

/// A library in a real vault, driven by paths as a program would through the kernel.
package final class Fixture: LibraryUser, @unchecked Sendable {
    package let vault: TestVault
    package let observer = Recorder()
    package let caller = Caller(uid: 0, gid: 0)
    private let options: LibraryOptions
    private let isFragmented: Bool
    /// The room of the new space.
    private let fresh: SpaceUse
    /// Sectors that belong to nobody, in a fragmented space.
    private var ballastSectors = 0
    private var ballast: [(sector: UInt64, count: Int)] = []
    private var opened: Library?

    /// The library that is open now. A reference to it, or a handle of it, keeps the vault locked.
    package var library: Library {
        guard let opened else { preconditionFailure("the fixture is closed") }
        return opened
    }
    package var space: Space { library.session.space }
    /// The limits with which the vault is open.
    package var limits: Limits { options.limits }
    /// The thumbnails of a mount that has them.
    package var thumbnails: PhotoThumbnails {
        guard let virtual = library.virtual else { preconditionFailure("the fixture has no thumbnails") }
        return virtual.thumbnails
    }

    /// - Parameters:
    ///   - isFragmented: no free run in the space is long enough for a whole chunk.
    ///   - limits: the least make a vault of the smallest segments.
    package init(
        bytes: UInt64 = 64 << 20, byRoot: Bool = true, uid: UInt32 = 0, isFragmented: Bool = false,
        trashDays: Int = 0, clocks: Clocks = Clocks(), limits: Limits = .production, spaces: Int = 2
    ) throws {
        vault = try TestVault(bytesPerSpace: bytes, limits: limits, spaces: spaces)
        var options = LibraryOptions(owner: (uid, uid), mountedByRoot: byRoot)
        options.workerPath = workerPath
        // No test may depend on pictures made ahead.
        options.settleMilliseconds = 1 << 40
        // Most tests compare the space when all is removed.
        options.trashDays = trashDays
        options.clocks = clocks
        options.limits = limits
        self.options = options
        self.isFragmented = isFragmented
        fresh = try vault.unlock().openSpace(readOnly: true).sectors.capacity
        try reopen()
    }

    // MARK: Sessions

    /// Opens the closed library, audits its state, and goes live as a mount does.
    package func reopen(auditing: Bool = true, _ change: (inout LibraryOptions) -> Void = { _ in }) throws {
        precondition(opened == nil)
        var options = options
        change(&options)
        let unlocked = try vault.unlock(readOnly: options.readOnly)
        let space = try unlocked.openSpace(readOnly: options.readOnly, limits: options.limits)
        if auditing { try audit(space) }
        let catalogue = try Catalogue(storage: space, readOnly: options.readOnly)
        let library = try Library(space: space, catalogue: catalogue, options: options, unlocked: unlocked)
        library.observer = observer
        library.didGoLive()
        opened = library
        if isFragmented { try fragment() }
    }

    /// Closes the library for good. Nothing may stay reserved.
    package func close() throws {
        try space.parts.lock.withLock {
            for (sector, count) in ballast { try space.sectors.allocator.abandon(sector, count) }
        }
        (ballast, ballastSectors) = ([], 0)
        try library.close()
        #expect(space.parts.lock.withLock { space.sectors.allocator.reservedSectors } == 0)
        opened = nil
    }

    /// Closes the library as far as it can be.
    package func closeAnyhow() {
        (ballast, ballastSectors) = ([], 0)
        try? opened?.close()
        opened = nil
    }

    /// Closes the library and opens it anew, as a new mount would.
    package func remount() throws {
        try close()
        try reopen()
    }

    /// Drops the library without a word once all that was saved is in a soft root, and opens it anew, as
    /// after the daemon was killed.
    package func kill() throws {
        try die()
        try reopen()
    }

    /// The first half of `kill`.
    package func die() throws {
        if library.options.commitsByHand { library.session.committer.commitByHand(durable: false) }
        // The first commit after this may have begun before it; the second holds all there is.
        for _ in 0..<(library.options.commitsByHand ? 0 : 2) {
            let seen = space.generation
            _ = try library.setAttributes(1, AttributeChanges(), caller)
            try #require(eventually { space.generation > seen })
        }
        vanish()
    }

    /// Drops the library as it is, with what was published.
    package func vanish() {
        library.abandonUnsaved()
        (ballast, ballastSectors) = ([], 0)
        opened = nil
    }

    // MARK: Sectors

    /// Bytes of the space that somebody has: in a commit, or set aside for one. Identity records do not count.
    package var usedBytes: UInt64 {
        // Under the catalogue's lock no record comes or goes.
        let used = try? library.session.locked { tree throws(FileError) in
            let use = space.sectors.capacity
            return use.total - use.free - (try recordBytes(tree.tables))
        }
        return (used ?? 0) - UInt64(ballastSectors * 512)
    }

    private func recordBytes(_ tables: Tables) throws(FileError) -> UInt64 {
        try tables.identities.locations(after: 0, limit: .max).reduce(0) {
            $0 + UInt64($1.run.sectorCount * 512)
        }
    }

    /// Closes the library of which everything was removed: the space must be as it was when it was new, once
    /// two durable commits have freed the sectors that the last ones gave back. Identity records are left: of empty
    /// directories, and of numbers that are no more in use.
    package func expectNothingLeft(_ comment: Comment? = nil) throws {
        try close()
        let space = try vault.unlock().openSpace(readOnly: false)
        try audit(space)
        for _ in 0..<2 { try space.publish(space.freeze(), durable: true) }
        #expect(space.sectors.pendingBytes == 0, comment)
        var use = space.sectors.capacity
        let catalogue = try Catalogue(storage: space)
        let left = try catalogue.locked { tables in
            try recordBytes(tables)
        }
        #expect(use.total - use.free == left, comment)
        use.free += left
        use.available += left
        // The catalogue keeps the segments it once needed.
        if space.segments.pairs.count == 1 { #expect(use == fresh, comment) }
    }

    /// Takes all of the space and gives back every other piece, each too short for a whole chunk.
    private func fragment() throws {
        let pieceSectors = 90
        try space.parts.lock.withLock {
            while let taken = try space.sectors.allocator.take(
                least: pieceSectors, most: pieceSectors, near: nil)
            {
                ballast.append(taken)
            }
            for (sector, count) in ballast.enumerated().filter({ $0.offset % 2 == 0 }).map(\.element) {
                try space.sectors.allocator.abandon(sector, count)
            }
        }
        ballast = ballast.enumerated().filter { $0.offset % 2 == 1 }.map(\.element)
        ballastSectors = ballast.reduce(0) { $0 + $1.count }
    }

    /// Damages the sealed chunk that holds a byte of a file, in the vault's own file.
    package func damage(_ path: String, at offset: UInt64) throws {
        let handle = try open(path, O_RDONLY)
        defer { library.release(handle) }
        let state = try #require(handle.state)
        let run = try #require(
            state.map.pieces.map(\.run).first { $0.offset <= offset && offset < $0.offset + $0.length })
        let sector = Int(run.sector(ofChunk: Int((offset - run.offset) / Chunk.bytes)))
        let perSegment = space.parts.disk.sectorsPerSegment
        try vault.damage(
            spaceIndex: try #require(library.unlocked).index, segment: sector / perSegment,
            offset: UInt64(sector % perSegment * 512 + 200))
    }

    // MARK: Without a catalogue

    /// Closes the library and fills all that its catalogue, maps and roots lay in with random bytes.
    package func destroyCatalogue() throws {
        let segments = space.segments.pairs.flatMap { [Int($0.a), Int($0.b)] }
        let index = try #require(library.unlocked).index
        try close()
        for segment in segments { try vault.scramble(spaceIndex: index, segment: segment) }
    }

    /// Rebuilds the closed library without its catalogue, and opens it.
    package func salvage() throws -> SalvageReport {
        let report = try rebuild()
        try reopen()
        return report
    }

    /// Rebuilds the closed library. A function of its own: a salvage keeps the vault locked.
    package func rebuild() throws -> SalvageReport {
        let salvage = try Salvage.survey(try vault.unlock(), options: options) { _, _ in }
        try salvage.rebuild()
        return salvage.report
    }
}

/// A request to write whose bytes are sealed after its answer.
package final class HeldRequest {
    /// Nil when it is finished: they keep the vault locked.
    private var target: (library: Library, handle: Handle)?
    private let offset: UInt64
    private let buffer: UnsafeMutableRawBufferPointer

    package init(_ library: Library, _ handle: Handle, _ bytes: some Collection<UInt8>, at offset: UInt64) {
        (target, self.offset) = ((library, handle), offset)
        buffer = .allocate(byteCount: bytes.count, alignment: 16)
        buffer.copyBytes(from: bytes)
    }

    deinit { buffer.deallocate() }

    package func write(_ caller: Caller) throws(FileError) -> Int {
        guard let target else { return 0 }
        return try target.library.write(
            target.handle, offset: offset, UnsafeRawBufferPointer(buffer), caller, isHeld: true)
    }

    /// Seals, and uses the buffer for something else.
    package func finish() {
        guard let (library, handle) = target else { return }
        library.sealAccepted(handle, offset: offset, UnsafeRawBufferPointer(buffer))
        target = nil
        buffer.initializeMemory(as: UInt8.self, repeating: 0xEE)
    }
}

/// A library that is used by paths, as programs do.
package protocol LibraryUser: AnyObject {
    var library: Library { get }
    var caller: Caller { get }
}

extension LibraryUser {
    // MARK: Paths

    package func ino(_ path: String) throws -> UInt64 { try stat(path).ino }

    package func stat(_ path: String) throws -> Attributes {
        var attributes = try library.attributes(1).0
        for part in path.split(separator: "/") {
            attributes = try library.lookup(attributes.ino, Name(String(part)), caller).attributes
        }
        return attributes
    }

    package func exists(_ path: String) -> Bool { (try? stat(path)) != nil }

    package func place(_ path: String) throws -> (UInt64, Name) {
        let parts = path.split(separator: "/").map(String.init)
        return (try ino(parts.dropLast().joined(separator: "/")), Name(parts.last ?? ""))
    }

    // MARK: Requests of programs

    package func mkdir(_ path: String, mode: UInt32 = 0o755) throws {
        let (parent, name) = try place(path)
        _ = try library.makeDirectory(parent, name, mode: mode, caller)
    }

    package func createOpen(_ path: String, mode: UInt32 = 0o644) throws -> Handle {
        let (parent, name) = try place(path)
        if let found = try? library.lookup(parent, name, caller).attributes.ino {
            return try library.open(found, flags: O_RDWR | O_TRUNC, caller)
        }
        return try library.create(parent, name, mode: mode, flags: O_RDWR, caller).1
    }

    package func open(_ path: String, _ flags: Int32 = O_RDWR) throws -> Handle {
        try library.open(try ino(path), flags: flags, caller)
    }

    @discardableResult
    package func write(_ handle: Handle, _ bytes: [UInt8], at offset: UInt64 = 0) throws -> Int {
        var done = 0
        // As the kernel does: requests of up to 1 MiB.
        while done < bytes.count {
            let end = min(bytes.count, done + (1 << 20))
            let part = bytes[done..<end]
            // Sealed after the answer, or before it.
            if part.count >= Int(Chunk.bytes), handle.ino % 2 == 0 {
                let request = HeldRequest(library, handle, part, at: offset + UInt64(done))
                defer { request.finish() }
                done += try request.write(caller)
            } else {
                done += try part.withUnsafeBytes {
                    try library.write(handle, offset: offset + UInt64(done), $0, caller)
                }
            }
        }
        return done
    }

    package func close(_ handle: Handle) throws {
        defer { library.release(handle) }
        try library.flush(handle)
    }

    @discardableResult
    package func put(_ path: String, _ bytes: [UInt8]) throws -> UInt64 {
        let handle = try createOpen(path)
        do {
            if !bytes.isEmpty { try write(handle, bytes) }
        } catch {
            library.release(handle)
            throw error
        }
        try close(handle)
        return try ino(path)
    }

    /// Makes a file that is not there, as one thread of a program.
    @discardableResult
    package func makeAnew(
        _ path: String, _ bytes: [UInt8], by caller: Caller, _ flag: Int32 = O_EXCL
    ) throws -> UInt64 {
        let (parent, name) = try place(path)
        let (entry, handle) = try library.create(
            parent, name, mode: 0o640, flags: O_RDWR | O_CREAT | flag, caller)
        try write(handle, bytes)
        try close(handle)
        return entry.attributes.ino
    }

    package func read(_ handle: Handle, _ count: Int = 1 << 20, at offset: UInt64 = 0) throws
        -> [UInt8]
    {
        try library.read(handle, offset: offset, count: count) { Array($0) }
    }

    package func get(_ path: String) throws -> [UInt8] {
        let handle = try open(path, O_RDONLY)
        defer { library.release(handle) }
        var bytes: [UInt8] = []
        while true {
            let more = try read(handle, 100_000, at: UInt64(bytes.count))
            if more.isEmpty { return bytes }
            bytes += more
        }
    }

    package func mv(_ from: String, _ to: String, _ flags: RenameFlags = [], by caller: Caller? = nil) throws
    {
        let (parent, name) = try place(from)
        let (newParent, newName) = try place(to)
        try library.rename(parent, name, newParent, newName, flags, caller ?? self.caller)
    }

    /// Removes a file and renames another onto its name, as one thread of a program.
    package func replace(_ path: String, by temporary: String, remover: Int32 = 7, mover: Int32 = 7) throws {
        try rm(path, by: Caller(uid: 0, gid: 0, pid: remover))
        try mv(temporary, path, by: Caller(uid: 0, gid: 0, pid: mover))
    }

    package func ln(_ from: String, _ to: String) throws {
        let (parent, name) = try place(to)
        _ = try library.link(try ino(from), parent, name, caller)
    }

    package func rm(_ path: String, by caller: Caller? = nil) throws {
        let (parent, name) = try place(path)
        let target = try ino(path)
        try library.unlink(parent, name, caller ?? self.caller)
        library.forget(target)
    }

    package func rmdir(_ path: String) throws {
        let (parent, name) = try place(path)
        let target = try ino(path)
        try library.removeDirectory(parent, name, caller)
        library.forget(target)
    }

    /// Names in a directory, sorted.
    package func ls(_ path: String) throws -> [String] { try list(path).map(\.name.description).sorted() }

    package func list(_ path: String, plus: Bool = true, page: Int = 7) throws -> [DirectoryEntry] {
        let handle = try library.openDirectory(try ino(path))
        var entries: [DirectoryEntry] = []
        var cookie: UInt64 = 0
        while true {
            var got: [DirectoryEntry] = []
            try library.readDirectory(handle, after: cookie, plus: plus) {
                if got.count == page { return false }
                got.append($0)
                return true
            }
            guard let last = got.last else { break }
            cookie = last.cookie
            entries += got
        }
        return entries.filter { $0.name != "." && $0.name != ".." }
    }

    package func rmrf(_ path: String) throws {
        for entry in try list(path) {
            let below = path + "/" + entry.name.description
            if entry.mode & 0o170000 == 0o040000 { try rmrf(below) } else { try rm(below) }
        }
        try rmdir(path)
    }

    package func captured(_ path: String) throws -> String { try own("captured", path) }
    package func source(_ path: String) throws -> String { try own("captured.source", path) }

    /// The value of `user.obscura.NAME`.
    package func own(_ name: String, _ path: String) throws -> String {
        let name = Array("user.obscura.\(name)".utf8)
        return String(decoding: try library.getExtendedAttribute(try ino(path), name: name), as: UTF8.self)
    }

    package func utimes(_ path: String, modified: Int64) throws {
        try setModified(path, Timestamp(seconds: modified, nanoseconds: 5))
    }

    package func setModified(_ path: String, _ time: Timestamp) throws {
        _ = try library.setAttributes(
            try ino(path), AttributeChanges(accessed: .set(time), modified: .set(time)), caller)
    }

    package func truncate(_ path: String, _ size: UInt64) throws {
        _ = try library.setAttributes(try ino(path), AttributeChanges(size: size), caller)
    }

    /// All photos in moments, as DAY/NAME.
    package func moments() throws -> [String] {
        try ls("moments").flatMap { day in try ls("moments/" + day).map { day + "/" + $0 } }
    }
}

package func expectError(_ error: FileError, _ body: () throws -> Void, line: Int = #line) {
    do {
        try body()
        Issue.record("no error, but \(error) was due (line \(line))")
    } catch let found as FileError {
        #expect(found == error, "line \(line)")
    } catch {
        Issue.record("\(error) (line \(line))")
    }
}

extension Library {
    /// Lets go of an open file, as the end of the process does: it and its library hold each other.
    package func abandon(_ file: FileState) {
        session.context.unregister(file)
        file.inode.state = nil
    }

    /// The same for all that are not saved.
    package func abandonUnsaved() { session.context.unsavedFiles.forEach(abandon) }
}
