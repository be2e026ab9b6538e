import Glibc
import LinuxIO
package import TestFixtures
package import TestSupport
import VaultFormat

@testable import CatalogueRows
@testable package import FileRequests
@testable package import PhotoLibrary
@testable import VaultCatalogue
@testable import VaultStore

/// A library on a disk in memory, driven by paths. Commits are made by hand.
package final class MemoryUser: LibraryUser {
    package let library: Library
    package let caller = Caller(uid: 0, gid: 0)
    private let disk: MemoryDisk

    package init(
        _ vault: MemoryVault, _ disk: MemoryDisk, _ change: (inout LibraryOptions) -> Void = { _ in }
    ) throws {
        self.disk = disk
        var options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        options.pictureMaker = StandInMaker()
        options.settleMilliseconds = 1 << 40
        options.commitsByHand = true
        change(&options)
        library = try Library.open(try vault.unlock(disk), options: options)
        library.didGoLive()
    }

    package func close() throws {
        defer { disk.closeAll() }
        try library.close()
    }

    /// Removes all that lies in a directory, by names as they are: some are no UTF-8.
    ///
    /// - Parameter kept: stays.
    package func removeAll(in directory: UInt64, but kept: Name? = nil) throws {
        for entry in try library.walk.entries(of: directory) where entry.name != kept {
            let ino = try library.lookup(directory, entry.name, caller).attributes.ino
            if entry.mode & UInt32(S_IFMT) == UInt32(S_IFDIR) {
                try removeAll(in: ino)
                try library.removeDirectory(directory, entry.name, caller)
            } else {
                try library.unlink(directory, entry.name, caller)
            }
            library.forget(ino)
        }
    }

    /// Visits everything, each inode of a directory once; a name of 40 that are in each other at most.
    package func walk(_ visit: (_ path: String, Attributes) throws -> Void) throws {
        var entered: Set<UInt64> = []
        func enter(_ path: String, _ ino: UInt64, depth: Int) throws {
            guard depth < 40, entered.insert(ino).inserted else { return }
            for entry in try library.walk.entries(of: ino) {
                let below = path.isEmpty ? entry.name.description : "\(path)/\(entry.name)"
                let found = try library.lookup(ino, entry.name, caller).attributes
                try visit(below, found)
                if found.isDirectory { try enter(below, found.ino, depth: depth + 1) }
            }
        }
        try enter("", 1, depth: 0)
    }
}
