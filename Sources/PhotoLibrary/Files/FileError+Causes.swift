package import FileRequests
import LinuxIO
package import VaultCatalogue
package import VaultStore

extension FileError {
    package init(_ error: CatalogueError) {
        switch error {
        case .damaged, .failed, .newer: self = .damaged
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

/// Runs a query and converts its errors to `FileError`.
@inline(__always)
package func sql<R>(_ body: @autoclosure () throws(CatalogueError) -> R) throws(FileError) -> R {
    do throws(CatalogueError) {
        return try body()
    } catch {
        throw FileError(error)
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
