import Foundation
import Glibc
import TestSupport
import TestThreads
import Testing

/// A day of culling with file tools: bursts, pairs and Live Photos with sidecars, half of them removed at random.
/// Nothing goes that was not named, but what is no photo of its own; and all of it comes back.
@Suite("Moments: culling", .serialized, .waiting) struct CullingMountTests {
    private static let day = "moments/2024-05-01/"
    private static let trash = "D/.Trash-\(geteuid())"

    /// A burst of ten, raw pairs, and Live Photos, by name.
    private static let photos: [String: [UInt8]] = {
        var photos: [String: [UInt8]] = [:]
        for number in 0..<10 {
            photos["B\(number).jpg"] = appleJPEG("2024-05-01", tag: 11, "C0FFEE", more: number)
        }
        for number in 0..<5 {
            photos["P\(number).jpg"] = jpeg("2024-05-01", more: 20 + number)
            photos["P\(number).cr2"] = raw("2024-05-01", more: number)
        }
        for number in 0..<4 {
            photos["L\(number).jpg"] = appleJPEG("2024-05-01", tag: 17, "LIVE-\(number)", more: 30 + number)
            photos["L\(number).mov"] = movie("2024-05-01", "LIVE-\(number)", more: UInt8(number))
        }
        return photos
    }()

    /// A sidecar's name, and the photos that need it.
    private static let sidecars: [(path: String, photos: [String])] = {
        var sidecars: [(String, [String])] = []
        for number in 0..<5 {
            sidecars.append((day + "P\(number).xmp", ["P\(number).jpg", "P\(number).cr2"]))
            sidecars.append((day + "P\(number).cr2.xmp", ["P\(number).cr2"]))
        }
        for number in 0..<4 {
            sidecars.append((day + "L\(number).jpg.xmp", ["L\(number).jpg"]))
            sidecars.append(("albums/Shoot/L\(number).xmp", ["L\(number).jpg", "L\(number).mov"]))
        }
        return sidecars + [(day + "B3.jpg.xmp", ["B3.jpg"])]
    }()

    private func paths(of photo: String) -> [String] {
        [Self.day + photo, "albums/Shoot/" + photo] + (photo.hasPrefix("L") ? ["albums/Best/" + photo] : [])
    }

    /// Every file outside the trash with a digest of its bytes.
    private func files(_ place: Place) throws -> [String: String] {
        let told = try place.shell("cd D; find albums moments -type f -exec md5sum {} +")
        var files: [String: String] = [:]
        for line in told.split(separator: "\n") {
            files[String(line.dropFirst(34))] = String(line.prefix(32))
        }
        return files
    }

    /// What must be left without those photos.
    private func left(_ before: [String: String], without named: Set<String>) -> [String: String] {
        let videos: [String] = named.filter { $0.hasPrefix("L") && $0.hasSuffix(".jpg") }
            .map { String($0.dropLast(3)) + "mov" }
        let gone = named.union(videos)
        var left = before
        for photo in gone { for path in paths(of: photo) { left[path] = nil } }
        for sidecar in Self.sidecars where gone.isSuperset(of: sidecar.photos) { left[sidecar.path] = nil }
        return left
    }

    private func remove(_ names: [String], _ way: Int, _ place: Place) throws {
        let day = "D/" + Self.day
        switch way {
        case 0: try place.shell("cd \(day); rm " + names.joined(separator: " "))
        case 1: try place.shell("cd \(day); gio trash " + names.joined(separator: " "))
        default:
            try place.shell("mkdir -p -m 700 \(Self.trash)/files \(Self.trash)/info")
            for name in names {
                let info = "[Trash Info]\\nPath=\(Self.day)\(name)\\nDeletionDate=2024-06-01T10:00:00\\n"
                // It may be gone with its still, which another process removed.
                try place.shell(
                    """
                    test -e \(day)\(name) || exit 0
                    printf '\(info)' >\(Self.trash)/info/\(name).trashinfo
                    mv \(day)\(name) \(Self.trash)/files/\(name)
                    """)
            }
        }
    }

    @Test(arguments: [1, 2, 3]) func `half of a day goes and comes back`(seed: UInt64) throws {
        let place = try Place(isLeast: seed == 2)
        try place.mount()
        for (name, bytes) in Self.photos { try place.source(name, bytes) }
        try place.shell("mkdir D/albums/Shoot D/albums/Best; cp source/* D/albums/Shoot")
        for number in 0..<4 { try place.shell("cd D/albums; ln Shoot/L\(number).* Best") }
        for (path, photos) in Self.sidecars { try place.shell("echo '\(photos)' >D/\(path)") }
        let before = try files(place)
        #expect(before.count == 2 * Self.photos.count + 8 + Self.sidecars.count)

        var random = RandomSource(seed)
        let names = Self.photos.keys.sorted()
        let half = names.shuffled(using: &random).prefix(names.count / 2)
        for (way, group) in [half.prefix(5), half.dropFirst(5).prefix(5), half.dropFirst(10)].enumerated() {
            try remove(Array(group), way, place)
        }
        let rest = left(before, without: Set(half))
        // The kernel keeps names of albums until it is notified.
        #expect(try eventually { try files(place) == rest })
        if seed == 3 {
            try place.unmount()
            try place.mount()
        }
        #expect(try files(place) == rest)

        let trashed = try place.files(place.root + "/" + Self.trash + "/files").shuffled(using: &random)
        let words = seed == 1 ? ["--all"] : trashed
        let ended = try place.run([obscura, "trash", "D", "restore"] + words)
        #expect(ended.status == 0, "\(ended.errors)")
        #expect(try eventually { try files(place) == before })
        #expect(try place.files(place.root + "/" + Self.trash + "/files").isEmpty)

        // The other half goes for good, and no more.
        let others = Set(names).subtracting(half)
        try remove(others.sorted(), 0, place)
        #expect(try place.run([obscura, "trash", "D", "empty"]).status == 0)
        let last = left(before, without: others)
        #expect(try eventually { try files(place) == last })
        try place.unmount()
        #expect(try place.run([obscura, "check", "V", "--password-stdin"], "one\n").status == 0)
    }
}
