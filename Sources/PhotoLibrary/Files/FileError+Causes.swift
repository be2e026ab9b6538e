package import FileRequests
import LinuxIO
package import VaultCatalogue
import VaultFormat
package import VaultStore

extension FileError {
    package init(_ error: CatalogueError) {
        switch error {
        case .damaged, .newer: self = .damaged
        case .noRoom: self = .noRoom
        }
    }

    package init(_ error: StoreError) {
        switch error {
        case .noRoom: self = .noRoom
        case .damaged, .segmentMissing, .segmentShort: self = .damaged
        case .readOnly, .newer: self = .readOnly
        case .io(let number) where number.refusesWriting: self = .readOnly
        case .io(let number): self = number.meansNoRoom ? .noRoom : .damaged
        }
    }
}

extension Space {
    /// As `FileError.init`, for a change that found no room: not a lack of it where the host does not answer.
    func failure(_ error: StoreError) -> FileError {
        error == .noRoom && isHostSilent ? .damaged : FileError(error)
    }
}

extension Catalogue {
    /// Opens the catalogue of a space; see `init(storage:readOnly:cacheKibibytes:)`. Throws `damaged` also for one of a
    /// later release.
    package convenience init(
        of space: Space, readOnly: Bool, cacheKibibytes: Int = Limits.production.catalogueCacheKibibytes
    ) throws(FileError) {
        do throws(CatalogueError) {
            try self.init(storage: space, readOnly: readOnly, cacheKibibytes: cacheKibibytes)
        } catch {
            throw FileError(error)
        }
    }
}

/// Runs a call of the store and converts its errors to `FileError`.
@inline(__always)
package func stored<R>(_ body: @autoclosure () throws(StoreError) -> R) throws(FileError) -> R {
    do throws(StoreError) {
        return try body()
    } catch {
        throw FileError(error)
    }
}
