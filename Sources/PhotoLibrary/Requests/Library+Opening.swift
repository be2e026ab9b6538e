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
        var space = try unlocked.openSpace(
            access, limits: options.limits, samples: Catalogue.runSamples, takingOver: takingOver)
        var catalogue = try openCatalogue(space, options)
        // The updated tables need room in the next commit: without it every commit would fail.
        if catalogue.isUpdated, !space.ledger.makesRoom(for: .removal, pages: 0) {
            space.giveUpClaim()
            guard options.allowsReadOnly else { throw .notWritable(.noRoomToUpdate) }
            space = try unlocked.openSpace(
                .reading, limits: options.limits, samples: Catalogue.runSamples)
            space.stopWriting(.noRoomToUpdate)
            catalogue = try openCatalogue(space, options)
        }
        var options = options
        options.readOnly = space.isReadOnly
        options.follows = unlocked.follows
        do throws(FileError) {
            return try Library(space: space, catalogue: catalogue, options: options, unlocked: unlocked)
        } catch {
            if error == .noRoom { throw .noRoom }
            throw .damaged("the space's catalogue cannot be read")
        }
    }

    private static func openCatalogue(
        _ space: Space, _ options: LibraryOptions
    ) throws(VaultError) -> Catalogue {
        do throws(CatalogueError) {
            return try Catalogue(
                storage: space, readOnly: space.isReadOnly && space.pageCount > 0,
                cacheKibibytes: options.limits.catalogueCacheKibibytes)
        } catch {
            if case .newer(let version) = error { throw .newer(version) }
            throw .damaged("the space's catalogue cannot be read")
        }
    }
}
