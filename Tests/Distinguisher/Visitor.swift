import FileRequests
import Glibc
import PhotoLibrary
import TestSupport

/// A user of one space's photos. Remembers from session to session which photos it put there.
struct Visitor {
    private struct Photo {
        var name: String
        var day: String
    }
    private var photos: [Photo] = []
    private var made = 0
    private let caller = Caller(uid: getuid(), gid: getgid())
    /// Called after each action, to wait until some seconds have passed since the last one.
    var wait: () -> Void = {}
    /// Called then.
    var pause: @Sendable () -> Void = {}

    /// Imports, edits, deletes, writes notes, syncs and waits for commits, by the random of `seed`. The first action of
    /// a space is an import.
    mutating func act(_ library: Library, seed: UInt64, count: Int) throws {
        var generator = Generator(seed)
        for _ in 0..<count {
            // Drawn first, so that the random numbers do not depend on the photos.
            let (kind, number) = (Int.random(in: 0..<8, using: &generator), Int(generator.next() >> 33))
            switch kind {
            case 3 where !photos.isEmpty: try delete(library, number % photos.count)
            case 4 where !photos.isEmpty: try edit(library, photos[number % photos.count], number)
            case 5: try put(library, "notes-\(number % 3).txt", noise(1 + number % 9000, seed: number))
            case 6: try library.makeDurable()
            case 7: awaitCommit(of: library)
            default: try addPhoto(library, number)
            }
            pass(library)
        }
        if made == 0 { try addPhoto(library, 7) }
    }

    /// Looks at everything and changes nothing, and takes the time of so many actions.
    func look(_ library: Library, count: Int) throws {
        for _ in 0..<count { pass(library) }
        for photo in photos {
            guard let ino = try? find(library, photo) else { continue }
            let handle = try library.open(ino, flags: O_RDONLY, caller)
            defer { library.release(handle) }
            _ = try library.read(handle, offset: 0, count: 4096) { $0.count }
        }
    }

    /// An action every few seconds.
    func pass(_ library: Library) {
        wait()
        library.noteRequest()
        pause()
    }

    private mutating func addPhoto(_ library: Library, _ number: Int) throws {
        made += 1
        let photo = Photo(name: "IMG_\(1000 + made).jpg", day: "2024-05-0\(1 + number % 5)")
        try put(library, photo.name, photoBytes(photo.day, number))
        photos.append(photo)
    }

    func put(_ library: Library, _ name: String, _ bytes: [UInt8]) throws {
        let albums = try library.lookup(1, "albums", caller).attributes.ino
        let found = try? library.lookup(albums, Name(name), caller).attributes.ino
        let handle =
            if let found {
                try library.open(found, flags: O_RDWR | O_TRUNC, caller)
            } else { try library.create(albums, Name(name), mode: 0o644, flags: O_RDWR, caller).1 }
        defer { library.release(handle) }
        try write(library, handle, bytes, at: 0)
        try library.flush(handle)
    }

    private func write(_ library: Library, _ handle: FileHandle, _ bytes: [UInt8], at offset: UInt64) throws {
        var done = 0
        while done < bytes.count {
            done += try bytes[done...].withUnsafeBytes {
                try library.write(handle, offset: offset + UInt64(done), $0, caller)
            }
        }
    }

    /// Fails where a kill has cost the photo.
    private func find(_ library: Library, _ photo: Photo) throws -> UInt64 {
        let moments = try library.lookup(1, "moments", caller).attributes.ino
        let day = try library.lookup(moments, Name(photo.day), caller).attributes.ino
        return try library.lookup(day, Name(photo.name), caller).attributes.ino
    }

    private mutating func delete(_ library: Library, _ index: Int) throws {
        let photo = photos.remove(at: index)
        guard let ino = try? find(library, photo) else { return }
        let moments = try library.lookup(1, "moments", caller).attributes.ino
        let day = try library.lookup(moments, Name(photo.day), caller).attributes.ino
        try library.unlink(day, Name(photo.name), caller)
        library.forget(ino)
    }

    /// Writes over a part of it that says nothing of its day.
    private func edit(_ library: Library, _ photo: Photo, _ number: Int) throws {
        guard let ino = try? find(library, photo) else { return }
        let handle = try library.open(ino, flags: O_RDWR, caller)
        defer { library.release(handle) }
        try write(library, handle, noise(4000 + number % 30_000, seed: number), at: 2000)
        try library.flush(handle)
    }
}

/// A photo of that day; cameras too leave bytes behind a picture's end.
func photoBytes(_ day: String, _ number: Int) -> [UInt8] {
    jpeg(day, more: number % 100_000) + noise(60_000 + number % 200_000, seed: number)
}

/// Waits until a kill would cost nothing: the library commits soon after each change.
func awaitCommit(of library: Library) { eventually { library.isCommitted } }
