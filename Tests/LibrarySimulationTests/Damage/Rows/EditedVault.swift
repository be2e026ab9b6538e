import CatalogueRows
import FileRequests
import Foundation
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestFixtures
import TestSupport
import VaultCatalogue
import VaultFormat
import VaultStore

/// A vault on a disk in memory with one of everything, whose rows a test changes.
final class EditedVault {
    private let vault: MemoryVault
    private let base: DiskState
    /// The bytes of each content of a file, by its number.
    private let contents: [UInt64: [UInt8]]

    init(spaces: Int) throws {
        vault = try MemoryVault(spaces: spaces, segments: 8)
        let disk = MemoryDisk(vault.empty, isRecording: false)
        let user = try MemoryUser(vault, disk)
        try Self.fill(user)
        var contents: [UInt64: [UInt8]] = [:]
        try user.walk { path, attributes in
            guard attributes.isRegular else { return }
            let content = try user.library.session.locked { tree throws(FileError) in
                try tree.inode(attributes.ino).row.content
            }
            contents[content] = try user.get(path)
        }
        self.contents = contents
        try user.close()
        var state = disk.state
        state.settleAll()
        base = state
    }

    private static func fill(_ user: MemoryUser) throws {
        for album in ["Trip", "Trip/Day 2", "Empty"] { try user.mkdir("albums/\(album)") }
        for number in 0..<4 {
            try user.put(
                "albums/Trip/p\(number).jpg", jpeg("2024-05-0\(number + 1)", more: number, size: 700))
        }
        let large = jpeg("2024-05-01", more: 7)
        try user.put("albums/large.jpg", large + noise(300_000, seed: 7))
        try user.put("albums/Trip/Day 2/copy.jpg", user.get("albums/Trip/p0.jpg"))
        try user.ln("moments/2024-05-02/p1.jpg", "albums/member.jpg")
        try user.put("albums/notes", noise(400_000))
        try user.ln("albums/notes", "albums/link")
        try user.put("albums/sparse", noise(1000, seed: 3))
        try user.truncate("albums/sparse", 500_000)
        let sparse = try user.open("albums/sparse")
        try user.write(sparse, noise(1000, seed: 4), at: 400_000)
        try user.close(sparse)
        try user.put("albums/empty", [])
        try user.put("albums/Trip/p0.jpg.xmp", xmp("2024-05-01"))
        _ = try user.library.makeSymbolicLink(3, "symlink", target: Array("notes".utf8), user.caller)
        for number in 0..<3 {
            try user.library.setExtendedAttribute(
                try user.ino("albums/notes"), name: Array("user.a\(number)".utf8), value: [1, 2, 3],
                policy: .any)
        }
        for number in [2, 3] {
            try user.ln("moments/2024-05-0\(number + 1)/p\(number).jpg", "albums/Empty/\(number).jpg")
        }
        try user.rm("moments/2024-05-03/p2.jpg")
        for name in ["Trip/.thumbs/p0.jpg", "Trip/.thumbs/p1.jpg", ".thumbs/large.jpg"] {
            _ = try user.get("albums/\(name)")
        }
        // Numbers that came to their end.
        try user.put("albums/gone", noise(5000))
        try user.rm("albums/gone")
        user.library.session.committer.commitByHand(durable: true)
    }

    /// A disk with the vault, after changes at random.
    func edited(_ count: Int, _ random: RandomSource) throws -> (disk: MemoryDisk, edits: [String]) {
        let disk = MemoryDisk(base, isRecording: false)
        var editor = try RowEditor(try vault.openSpace(disk), random)
        try editor.run(count)
        disk.closeAll()
        return (disk, editor.edits)
    }

    /// A disk with the vault as it was made.
    func whole() -> MemoryDisk { MemoryDisk(base, isRecording: false) }

    func unlock(_ disk: MemoryDisk) throws -> UnlockedSpace { try vault.unlock(disk) }

    func openSpace(_ disk: MemoryDisk) throws -> Space { try vault.openSpace(disk) }

    func mount(_ disk: MemoryDisk) throws -> MemoryUser { try MemoryUser(vault, disk) }

    /// Whether bytes at an offset of a file are those that a content had there; behind its end there were none.
    func isRight(_ bytes: [UInt8], at offset: UInt64, of content: UInt64) -> Bool {
        guard let known = contents[content] else { return true }
        let first = Int(min(offset, UInt64(known.count)))
        let count = min(bytes.count, known.count - first)
        // Not byte by byte: tests are not optimised.
        let isSame = known.withUnsafeBytes { known in
            bytes.withUnsafeBytes { bytes in
                guard count > 0, let one = known.baseAddress, let other = bytes.baseAddress else {
                    return true
                }
                return memcmp(one + first, other, count) == 0
            }
        }
        return isSame && bytes[count...].allSatisfy { $0 == 0 }
    }
}
