package import FileRequests
package import VaultStore

/// The tree of a mounted space and its lock. `TreeSession` implements it.
package protocol TreeAccess: AnyObject, Sendable {
    var space: Space { get }

    /// Runs `body`, which must not change anything, with the catalogue's lock held.
    func reading<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R

    /// Runs `body`, whose changes are part of the commit that is about to be made, with the catalogue's lock held.
    func committing<R>(_ body: (Tree) throws(FileError) -> R) throws(FileError) -> R
}
