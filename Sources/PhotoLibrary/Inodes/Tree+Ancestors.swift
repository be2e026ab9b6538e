import CatalogueRows
package import FileRequests
import VaultCatalogue

/// Walk from a directory up to the root.
struct AncestorWalk {
    /// The present directory.
    package private(set) var current: Inode
    private let tree: Tree
    /// Cycle detection as by Brent: a directory passed before, and the steps until another is remembered. In a cycle of
    /// any length it is met again.
    private var passed: UInt64 = 0
    private var (steps, stepsLeft) = (1, 1)

    package init(from directory: Inode, _ tree: Tree) { (current, self.tree) = (directory, tree) }

    /// Goes to the parent directory. Returns false at the root, and if there is no parent.
    ///
    /// Throws `.damaged` if directories contain each other: anybody with the password can write any rows.
    fileprivate mutating func rise() throws(FileError) -> Bool {
        guard current.row.parent != 0, current.ino != WellKnownInode.root else { return false }
        current = try tree.inode(current.row.parent)
        guard current.ino != passed else { throw .damaged }
        stepsLeft -= 1
        if stepsLeft == 0 {
            passed = current.ino
            steps *= 2
            stepsLeft = steps
        }
        return true
    }
}

extension Tree {
    /// Whether `directory` is `ancestor` or lies below it.
    package func isInside(_ directory: Inode, _ ancestor: Inode) throws(FileError) -> Bool {
        var way = AncestorWalk(from: directory, self)
        while way.current.ino != ancestor.ino {
            guard try way.rise() else { return false }
        }
        return true
    }

    /// Whether the directory, or one above it, is a program's working directory.
    package func isInWorkingDirectory(_ directory: Inode) throws(FileError) -> Bool {
        var way = AncestorWalk(from: directory, self)
        while !way.current.row.flags.contains(.working) {
            guard try way.rise() else { return false }
        }
        return true
    }

    /// The path of a directory below the root, without a slash at its begin or end.
    package func path(of directory: Inode) throws(FileError) -> [UInt8] {
        var way = AncestorWalk(from: directory, self)
        var names: [[UInt8]] = []
        repeat {
            guard let name = try tables.dentries.names(of: way.current.ino).first?.name else { break }
            names.insert(name, at: 0)
        } while try way.rise()
        return Array(names.joined(separator: [UInt8(ascii: "/")]))
    }

    /// Whether a directory is a trash, or is in one.
    package func isInTrash(_ directory: Inode) throws(FileError) -> Bool {
        var way = AncestorWalk(from: directory, self)
        while way.current.row.parent != WellKnownInode.root {
            guard try way.rise() else { return false }
        }
        return way.current.ino > WellKnownInode.versions
    }
}
