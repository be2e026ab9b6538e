package import FileRequests

/// The settings of an import.
package struct ImportSettings {
    /// The path of an album, created if it is missing; empty: none.
    package var album: [Name] = []
    /// Whether nothing is changed.
    package var isDry = false
    /// Whether sources are removed once their bytes are safe.
    package var moves = false
    /// Whether the user has called the import off: asked again and again.
    package var isCancelled: () -> Bool

    /// An import of everything into the days of the photos, which leaves the sources where they are.
    package init(isCancelled: @escaping () -> Bool) { self.isCancelled = isCancelled }
}

/// An import, from the list of sources to the report.
package protocol ImportTask: AnyObject {
    /// How far it has come.
    var state: TransferState { get }
    /// Called whenever `state` has changed.
    var onProgress: ((TransferState) -> Void)? { get set }
    /// Complete when `run` has returned or thrown.
    var report: ImportReport { get }

    /// Returns at the end, or early if it is called off. Throws if the vault refuses.
    func run() throws(FileError)
}
