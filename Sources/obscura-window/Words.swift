import Glibc

/// A text of the window, in the languages of `obscura receive`: words.txt has all of them.
enum Word: String, CaseIterable {
    case createMenu, chooseMenu, refresh, menu, quit, noVault, noVaultText, chooseTitle, remember
    case notVault, failed, noProgram, cancel, close, choose, chooseFolder, unlock, lock, lockTitle
    case openFolder, openTitle, moreFor, openIn, openReadOnly, dropHere, lost, addSpace, addSpaceOne
    case addSpaceOpen, grow, growOne, forget, lockedNow, stillInUse, endText, endAnyway, unlockTitle
    case unlockButton, password, photosPlace, unlocking, typePassword, wrongPassword, passwordTooLong
    case createTitle, createButton, name, nameWrong, folder, kind, kindGrowing, kindGrowingText, kindFixed
    case kindFixedText, kindMissing, size, sizePhotos, sizeTotal, sizeWrong, forgotten, newPassword
    case passwordAgain, passwordsDiffer, creating, filling, created, addSpaceTitle, addButton
    case addSpaceText, keep, keepText, keptPassword, anotherPassword, keepNone, keepNoneText, overwrite
    case keptWrong, spaceAdded, growTitle, growText, growButton, growing, sizeSmall, grown, trayOpen
    case trayLock

    var text: String { Self.texts[self] ?? rawValue }

    /// Without the mark of an access key.
    var plainText: String { text.filter { $0 != "_" } }

    /// With values for `$1` and `$2`.
    func with(_ values: String...) -> String {
        zip(1..., values).reduce(text) { $0.replacing("$\($1.0)", with: $1.1) }
    }

    /// In the language of this process. A program whose table is not whole does not start.
    private static let texts: [Word: String] = {
        let lines = String(decoding: PackageResources.words_txt, as: UTF8.self)
            .split(separator: "\n").filter { !$0.hasPrefix("#") }
        let entry = Language.allCases.count + 1
        let texts = stride(from: 0, to: lines.count, by: entry).map { start in
            (Word(rawValue: String(lines[start])), String(lines[start + 1 + Language.current.rawValue]))
        }
        precondition(texts.map(\.0) == allCases && lines.count % entry == 0, "words.txt")
        return Dictionary(uniqueKeysWithValues: zip(allCases, texts.map(\.1)))
    }()
}

/// In the order of words.txt.
enum Language: Int, CaseIterable {
    case en, de, fr, es, it, ar

    /// By the first of the variables that is set.
    static let current: Language = {
        for name in ["LC_ALL", "LC_MESSAGES", "LANG"] {
            guard let value = getenv(name), value.pointee != 0 else { continue }
            let code = String(cString: value).prefix { $0.isLetter }
            return allCases.first { "\($0)" == code } ?? .en
        }
        return .en
    }()

    /// Between groups of three digits.
    var digitSeparator: String { [",", ".", "\u{202F}", ".", ".", ","][rawValue] }
}
