import FileRequests
public import Recovery
public import VaultStore

extension Salvage {
    /// Reads all of a space. Calls `progress` with the number of finished segments.
    ///
    /// - Parameter readOnly: nothing will be rebuilt.
    public static func survey(
        _ unlocked: UnlockedSpace, options: LibraryOptions, readOnly: Bool = false,
        progress: (_ done: Int, _ total: Int) throws(VaultError) -> Void
    ) throws(VaultError) -> Salvage {
        try survey(
            unlocked, options.treeOptions, readOnly: readOnly,
            classify: { unlocked throws(VaultError) in try classify(unlocked, options) },
            progress: progress)
    }

    private static func classify(
        _ unlocked: UnlockedSpace, _ options: LibraryOptions
    ) throws(VaultError) {
        let library = try Library.open(unlocked, options: options)
        library.didGoLive()
        do throws(FileError) { try library.close() } catch {
            throw error == .noRoom ? .noRoom : .damaged("the recovered files could not be classified")
        }
    }
}
