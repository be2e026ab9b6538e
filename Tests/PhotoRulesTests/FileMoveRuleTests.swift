import CatalogueRows
import PhotoRules
import Testing

/// *The tree* of the contract: the effect of rename(2) on files of each kind.
@Suite("Moments: rules of moved files") struct FileMoveRuleTests {
    private static let ofFiles: [RenameEffect] = [
        .moveInAlbums, .moveIntoDay, .moveInDays, .addToAlbum, .moveToTrash, .restoreToAlbum, .removeToTrash,
        .restoreIntoDay,
    ]

    /// All moves of the table, with those that another one continues.
    private static let moves: [(effect: RenameEffect, file: MovedFile, move: FileMove)] =
        RenameEffect.allCases.flatMap { effect in
            MovedFile.allCases.compactMap { file in fileMove(effect, of: file).map { (effect, file, $0) } }
        }

    private func steps(_ effect: RenameEffect, _ file: MovedFile) -> [FileMoveStep]? {
        guard let move = fileMove(effect, of: file) else { return nil }
        guard move.then == nil else { return move.before }
        return move.before + [move.name] + move.after + move.finally
    }

    @Test func `in albums names move, plain files may become photos, and photos replace backups`() {
        #expect(steps(.moveInAlbums, .plain) == [.move, .classify])
        #expect(steps(.moveInAlbums, .special) == [.move])
        #expect(steps(.moveInAlbums, .copy) == [.move, .replaceBackup])
        #expect(steps(.moveInAlbums, .photo) == [.move, .replaceBackup, .noteBackup, .followName])
        #expect(steps(.moveInAlbums, .trashedPhoto) == [.move, .replaceBackup])
    }

    @Test func `a photo moved into a day leaves its moment and is pinned; nothing special enters a day`() {
        #expect(
            steps(.moveIntoDay, .photo)
                == [.queueCompanionMoves, .leaveMoment, .move, .keepOnlyArrived, .pin, .noteGivenName])
        #expect(steps(.moveIntoDay, .plain) == [.move, .classify])
        #expect(steps(.moveIntoDay, .copy) == [.becomePhoto])
        #expect(fileMove(.moveIntoDay, of: .copy)?.then == .moveIntoDay)
        #expect(steps(.moveIntoDay, .trashedPhoto) == [.move, .restore, .pin])
        #expect(steps(.moveIntoDay, .special) == nil)
    }

    @Test func `between days a photo takes its companions along and is pinned`() {
        #expect(
            steps(.moveInDays, .photo)
                == [
                    .queueCompanionMoves, .move, .replaceBackup, .noteBackup, .keepOnlyArrived, .pin,
                    .noteGivenName,
                ])
        #expect(steps(.moveInDays, .plain) == [.move, .classify])
        for file in [MovedFile.special, .copy, .trashedPhoto] { #expect(steps(.moveInDays, file) == nil) }
    }

    @Test func `mv from moments into an album adds a photo and moves a plain file`() {
        #expect(steps(.addToAlbum, .photo) == [.addMembership])
        #expect(steps(.addToAlbum, .plain) == [.move, .classify])
        for file in [MovedFile.special, .copy, .trashedPhoto] { #expect(steps(.addToAlbum, file) == nil) }
    }

    @Test func `trashing a photo of a day takes it out of the albums; a name of an album goes alone`() {
        #expect(steps(.removeToTrash, .photo) == [.removeToTrash])
        #expect(steps(.removeToTrash, .plain) == [.move, .noteTrashAge])
        for file in [MovedFile.special, .copy, .trashedPhoto] { #expect(steps(.removeToTrash, file) == nil) }
        #expect(steps(.moveToTrash, .plain) == [.move, .classify, .noteTrashAge])
        #expect(steps(.moveToTrash, .photo) == [.move, .replaceBackup, .noteTrashAge])
        for file in [MovedFile.special, .copy, .trashedPhoto] {
            #expect(steps(.moveToTrash, file) == [.move, .noteTrashAge])
        }
    }

    @Test func `restoring brings a photo back to its albums, and into a day pins it there`() {
        #expect(steps(.restoreToAlbum, .trashedPhoto) == [.moveAsMember, .forgetTrashAge, .restore])
        #expect(steps(.restoreToAlbum, .copy) == [.move, .forgetTrashAge, .restore])
        #expect(steps(.restoreToAlbum, .plain) == [.move, .classify, .forgetTrashAge])
        for file in [MovedFile.photo, .special] {
            #expect(steps(.restoreToAlbum, file) == [.move, .forgetTrashAge])
        }
        #expect(steps(.restoreIntoDay, .trashedPhoto) == [.forgetTrashAge, .move, .restore, .pin])
        #expect(steps(.restoreIntoDay, .copy) == [.forgetTrashAge, .restore])
        for file in [MovedFile.plain, .photo] {
            #expect(steps(.restoreIntoDay, file) == [.forgetTrashAge])
        }
        for file in [MovedFile.plain, .photo, .copy] {
            #expect(fileMove(.restoreIntoDay, of: file)?.then == .moveIntoDay)
        }
        #expect(steps(.restoreIntoDay, .special) == nil)
    }

    @Test func `renames of directories have no row for files, and all others have one`() {
        for effect in RenameEffect.allCases {
            let hasRow = MovedFile.allCases.contains { fileMove(effect, of: $0) != nil }
            #expect(hasRow == Self.ofFiles.contains(effect), "\(effect)")
        }
    }

    @Test func `nothing in the trash is a new version of a photo, nor is an empty file`() {
        for (effect, file, move) in Self.moves where move.maySave {
            #expect(file != .special, "\(effect)")
            #expect(![.restoreToAlbum, .restoreIntoDay].contains(effect), "\(effect) \(file)")
        }
    }

    @Test func `a move that another continues ends there`() {
        for (effect, file, move) in Self.moves {
            guard let next = move.then else { continue }
            #expect(move.after.isEmpty && move.finally.isEmpty && move.name == .move, "\(effect) \(file)")
            for later in MovedFile.allCases where later != .copy {
                #expect(fileMove(next, of: later)?.then == nil, "\(effect) \(later)")
            }
        }
    }

    @Test func `each step is used`() {
        let used = Self.moves.flatMap { $0.move.before + [$0.move.name] + $0.move.after + $0.move.finally }
        #expect(Set(used) == Set(FileMoveStep.allCases))
    }

    @Test func `a photo from elsewhere never replaces a photo of a day`() {
        func replaced(isPhoto: Bool, isInDay: Bool, isBeside: Bool, isToBePhoto: Bool) -> ReplacedFile {
            replacedFile(isPhoto: isPhoto, isInDay: isInDay, isBeside: isBeside, isToBePhoto: isToBePhoto)
        }
        for isBeside in [false, true] {
            for isToBePhoto in [false, true] {
                for isPhoto in [false, true] {
                    let inAlbum = replaced(
                        isPhoto: isPhoto, isInDay: false, isBeside: isBeside, isToBePhoto: isToBePhoto)
                    #expect(inAlbum == .unlinked)
                }
                let plain = replaced(
                    isPhoto: false, isInDay: true, isBeside: isBeside, isToBePhoto: isToBePhoto)
                #expect(plain == .unlinked)
            }
        }
        #expect(replaced(isPhoto: true, isInDay: true, isBeside: false, isToBePhoto: true) == .kept)
        #expect(replaced(isPhoto: true, isInDay: true, isBeside: true, isToBePhoto: true) == .removed)
        #expect(replaced(isPhoto: true, isInDay: true, isBeside: false, isToBePhoto: false) == .removed)
        #expect(replaced(isPhoto: true, isInDay: true, isBeside: true, isToBePhoto: false) == .removed)
    }
}
