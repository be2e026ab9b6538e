import VaultCatalogue
import VaultFormat
public import VaultStore

extension Library {
    /// Opens the library of a space whose password was right.
    public static func open(_ unlocked: UnlockedSpace, options: LibraryOptions) throws(VaultError) -> Library
    {
        let space = try unlocked.openSpace(readOnly: options.readOnly, limits: options.limits)
        let catalogue: Catalogue
        do throws(CatalogueError) {
            catalogue = try Catalogue(
                storage: space, readOnly: options.readOnly && space.pageCount > 0,
                cacheKibibytes: options.limits.catalogueCacheKibibytes)
        } catch {
            if case .unsupportedVersion(let version) = error { throw .unsupportedVersion(version) }
            throw .damaged("the space's catalogue cannot be read")
        }
        do throws(FileError) {
            return try Library(space: space, catalogue: catalogue, options: options, unlocked: unlocked)
        } catch {
            if error == .noRoom { throw .noRoom }
            throw .damaged("the space's catalogue cannot be read")
        }
    }
}
