/// The kind of a folder in a Google export.
package enum FolderKind: Equatable {
    /// All photos of a year, made by Google: no album.
    case year
    /// An album, with the name to give it.
    case album(String)
    /// None of both: the archive, the trash, a folder without a title, or an album whose JSON is in another part of the
    /// export.
    case other

    /// - Parameters:
    ///   - name: the folder's name.
    ///   - title: the title that the album's JSON in it gives; nil if there is no such JSON. The JSON's own name is
    ///     translated (`metadata.json`, `Metadaten.json`, `métadonnées.json`), and does not matter.
    package init(_ name: String, title: String?) {
        if Self.isYear(name) || Self.isDay(name) {
            self = .year
        } else if let title, !title.isEmpty {
            self = .album(Self.albumName(title, folder: name))
        } else {
            self = .other
        }
    }

    /// `Photos from 2023` in any language: one year, at the beginning or the end, and a word of the table before it.
    private static func isYear(_ name: String) -> Bool {
        let words = name.split { !$0.isLetter && !$0.isNumber }.map { $0.lowercased() }
        let isPlain = words.filter { isYearNumber($0) }.count == 1
        guard isPlain, words.count >= 2, words.count <= 4 else { return false }
        if isYearNumber(words[words.count - 1]) {
            return photosFrom.contains(words.dropLast().joined(separator: " "))
        }
        return isYearNumber(words[0]) && photosOf.contains(words.dropFirst().joined(separator: " "))
    }

    private static func isYearNumber(_ word: String) -> Bool {
        word.utf8.count == 4 && (Int(word).map { (1826...2200).contains($0) } ?? false)
    }

    /// Until 2019 Google made a folder of each day, `2016-07-03` or `2016-07-03 #2`, with the same JSON as an album's.
    private static func isDay(_ name: String) -> Bool {
        let parts = name.split(separator: " ", maxSplits: 1)
        guard let first = parts.first, first.utf8.count == 10 else { return false }
        let isNumbered = parts.count == 1 || parts[1].hasPrefix("#")
        let fields = first.split(separator: "-", omittingEmptySubsequences: false)
        return isNumbered && fields.map(\.utf8.count) == [4, 2, 2]
            && fields.allSatisfy { $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }
    }

    private static let photosFrom: Set<String> = [
        "photos from", "fotos von", "fotos aus", "photos de", "fotos de", "fotos del", "foto del", "foto dal",
        "foto da", "foto", "fotos uit", "foto's uit", "foto s uit", "zdjęcia z", "foton från", "bilder från",
        "billeder fra", "bilder fra", "kuvat vuodelta", "fotky z roku", "fotografie z roku", "fényképek",
        "фото за",
        "фотографии за", "фото з", "fotoğraflar",
    ]
    private static let photosOf: Set<String> = [
        "年の写真", "年的照片", "年 の写真", "yılından fotoğraflar", "년의 사진",
    ]

    /// The name of an album in the library.
    ///
    /// Two albums of one title differ by their folder only, `Trip` and `Trip(1)`: so do their names.
    static func albumName(_ title: String, folder: String) -> String {
        let (_, number) = SidecarIndex.numbered(folder)
        let isNumbered = number.isEmpty || title.hasSuffix("(\(number))")
        return isNumbered ? fileName(title) : fileName(title, suffix: " (\(number))")
    }

    /// A title as the name of a directory: no slash, no point in front (programs' own directories begin so), at most
    /// 255 bytes. Titles of nothing but slashes, points and blanks stay different: those become visible characters.
    package static func fileName(_ title: String, suffix: String = "") -> String {
        let isBare = title.allSatisfy { visible[$0] != nil }
        var name = ""
        for character in title {
            let clean =
                isBare
                ? visible[character] ?? character : character == "/" || character == "\0" ? "_" : character
            guard name.utf8.count + clean.utf8.count + suffix.utf8.count <= 255 else { break }
            name.append(clean)
        }
        while name.hasSuffix(" ") { name.removeLast() }
        name += suffix
        if name.hasPrefix(".") { name = "_" + name.dropFirst() }
        if name == "@eaDir" { name = "_eaDir" }
        return name.isEmpty ? "_" : name
    }

    /// Fullwidth forms, and the open box.
    private static let visible: [Character: Character] = ["/": "／", ".": "．", " ": "␣"]
}
