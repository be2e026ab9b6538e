import FileRequests
import VaultCatalogue
import VaultFormat
public import VaultStore

extension Library {
    /// Opens the library of an unlocked space.
    ///
    /// - Parameter takingOver: see `UnlockedSpace.openSpace`.
    public static func open(
        _ unlocked: UnlockedSpace, options: LibraryOptions, takingOver: ((Int64) -> Void)? = nil
    ) throws(VaultError) -> Library {
        let access =
            options.readOnly ? SpaceAccess.reading : options.allowsReadOnly ? .writingIfPossible : .writing
        let space = try unlocked.openSpace(
            access, limits: options.limits, samples: Catalogue.runSamples, takingOver: takingOver)
        var options = options
        options.readOnly = space.isReadOnly
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
