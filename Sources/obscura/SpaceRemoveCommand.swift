import LinuxIO
import PhotoLibrary
import VaultStore

func runSpaceRemove(_ arguments: Arguments) throws(Failure) {
    let vault = try existingVault(arguments)
    try requireUnmounted(vault)
    let terminal = arguments.has(.yes) ? nil : Terminal()
    guard terminal != nil || arguments.has(.yes) else {
        throw Failure(
            .usage, "space remove",
            "no terminal to ask on: give --yes to destroy the space without being asked")
    }
    let space = try Passwords(arguments).opening(vault) { (password) throws(VaultError) in
        try Vault.unlockForRemoval(vault, password: password, stretcher: ChildStretcher())
    }
    // The vault's lock is held from here on: the space that is destroyed is the one that the user confirms.
    if let terminal {
        try terminal.confirm(removalText(SpaceContents(space)), vault, word: "destroy")
    }
    try onVault(vault) { () throws(VaultError) in try space.destroy() }
    say(
        "\(vault): the space is gone; copies of the header made before still open what has not been overwritten"
    )
}

/// The contents of a space that matter to a user about to destroy it.
struct SpaceContents: Equatable {
    var photos: Int
    var trashed: Int
    var bytes: UInt64

    init(photos: Int, trashed: Int, bytes: UInt64) {
        (self.photos, self.trashed, self.bytes) = (photos, trashed, bytes)
    }

    /// Counts, and writes nothing. Nil if the space cannot be read: one that is damaged, or that a later release made,
    /// can be destroyed as well.
    init?(_ space: UnlockedSpace) {
        var options = LibraryOptions.forThisUser
        options.readOnly = true
        options.thumbnails = .off
        guard let library = try? Library.open(space, options: options) else { return nil }
        // It is open for reading: nothing can be lost.
        defer { try? library.close() }
        guard let photos = try? library.walk.photoCount(), let trashed = try? library.walk.trashedPhotoCount()
        else {
            return nil
        }
        self.init(photos: photos, trashed: trashed, bytes: library.usedBytes)
    }
}

/// The sentences before the question whether to destroy a space.
func removalText(_ contents: SpaceContents?) -> String {
    guard let contents else {
        return "The photos of this space cannot be read and counted here. Removing it destroys it for good."
    }
    let trashed = contents.trashed > 0 ? " (and \(contents.trashed) in the trash)" : ""
    let photos = counted(contents.photos, "photo") + trashed
    return
        "This space holds \(photos), \(sizeText(contents.bytes)) in all. Removing it destroys them for good."
}
