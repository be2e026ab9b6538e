/// The kind of a folder in Apple's export of iCloud Photos.
package enum AppleFolder: Equatable {
    /// Albums that Apple makes by itself, or of hidden photos: a list in it is no album of the user.
    case memories
    case hidden
    /// The trash.
    case deleted
    case other

    package init(_ name: String) {
        let word = name.lowercased()
        self =
            switch true {
            case memoriesNames.contains(word): .memories
            case hiddenNames.contains(word): .hidden
            case word == "recently deleted": .deleted
            default: .other
            }
    }

    /// Whether a table in the folder that lists photos is an album.
    package var hasAlbums: Bool { self != .memories && self != .hidden }
}

// Exports have been seen with English names only, in accounts of other languages too (immich-go#853: Norwegian). The
// other names are those by which Apple's app Photos calls the same collections; none of them was seen in an export. A
// user's folder of such a name has no tables: only Apple's have.

private let memoriesNames: Set<String> = [
    "memories", "andenken", "rückblicke", "souvenirs", "recuerdos", "ricordi", "herinneringen", "memórias",
    "minnen", "minder", "minner", "muistot", "wspomnienia", "vzpomínky", "spomienky", "emlékek", "amintiri",
    "uspomene", "records", "anılar", "αναμνήσεις", "воспоминания", "спогади",
    "メモリー", "回忆", "回憶", "추억", "الذكريات", "זכרונות", "kỷ niệm",
    "ความทรงจำ", "kenangan",
]

private let hiddenNames: Set<String> = [
    "hidden", "ausgeblendet", "masqués", "masqué", "oculto", "ocultos", "ocultas", "nascosti", "nascoste",
    "verborgen", "gömda", "dolda", "skjulte", "skjult", "kätketyt", "ukryte", "skryté", "rejtett",
    "ascunse", "skriveno", "gizli", "κρυφά", "скрытые", "приховані",
    "非表示", "已隐藏", "已隱藏", "가려진 항목", "مخفي", "מוסתר", "tersembunyi",
    "ซ่อนอยู่",
]
