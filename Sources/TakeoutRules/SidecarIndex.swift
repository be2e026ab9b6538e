/// The JSON files of one folder of a Google export, and which photo each is about.
///
/// Google names a sidecar after its photo, by rules that it never published. The ones here were found by others in
/// their exports (TakeoutMatching.md lists the sources):
/// - the photo's name, then `.supplemental-metadata` (since 2024), cut to 46 UTF-16 units, then `.json`;
/// - a few exports have `.metadata` in place of that;
/// - the photo's own name is cut to 47 units before its extension, so that longer ones are cut twice;
/// - units are those of the composed name, which a Mac stores decomposed;
/// - a photo's number `(1)` stands before its extension, its sidecar's behind all that was cut;
/// - an edited photo, and the video of a moving one, have no sidecar of their own.
package struct SidecarIndex {
    /// How certain it is that a sidecar belongs to a photo.
    package enum Match: Equatable {
        /// It is named after the photo.
        case named
        /// It is named after the original that the photo is an edited version of.
        case edited
        /// It is named after the other part of a Live Photo: for a video its still, for a still its video.
        case motion
        /// It is named after another photo of the same cut name: most likely the same one, exported twice.
        case twin
    }

    private struct Key: Hashable {
        var base: String
        var number: String
    }

    /// By whole name without number and `.json`.
    private var exact: [Key: Int] = [:]
    /// By the name of the photo without its extension.
    private var stems: [Key: [Int]] = [:]
    private let stills: [Bool]

    /// - Parameter names: those of the JSON files, extension included.
    package init(_ names: [String]) {
        var stills: [Bool] = []
        for (index, name) in names.enumerated() {
            let (base, number) = Self.numbered(String(name.dropLast(sidecarExtension.count)))
            let core = Self.core(base)
            let (stem, suffix) = MediaName.split(core)
            stills.append(suffix.isEmpty || MediaName.isStill(suffix))
            if exact[Key(base: base, number: number)] == nil {
                exact[Key(base: base, number: number)] = index
            }
            stems[Key(base: stem, number: number), default: []].append(index)
        }
        self.stills = stills
    }

    /// Whether a file's name ends like that of a sidecar.
    package static func isSidecar(_ name: String) -> Bool {
        name.utf8.count > sidecarExtension.utf8.count && name.lowercased().hasSuffix(sidecarExtension)
    }

    /// Whether a JSON file is named after a photo or video, which may lie elsewhere.
    package static func namesMedia(_ name: String) -> Bool {
        let base = numbered(String(name.dropLast(sidecarExtension.count))).base
        return !MediaName.split(core(base)).suffix.isEmpty
    }

    /// The index of the sidecar of a photo or video; nil if there is none.
    package func match(_ media: String) -> (index: Int, match: Match)? {
        if let found = named(media) { return (found, .named) }
        if let found = motion(media) { return (found, .motion) }
        if let original = EditedName.original(media, where: { named($0) ?? stem($0) != nil }),
            let found = named(original) ?? stem(original)
        {
            return (found, .edited)
        }
        return twin(media).map { ($0, .twin) }
    }

    /// The sidecar that is named after exactly this file.
    private func named(_ media: String) -> Int? {
        let variants = variants(media)
        for (core, number) in variants {
            for suffix in Self.suffixes {
                for base in prefixes(core + suffix, from: core.utf16.count) {
                    if let found = exact[Key(base: base, number: number)] { return found }
                }
            }
        }
        for (core, number) in variants.prefix(1) {
            for base in cuts(core) {
                if let found = exact[Key(base: base, number: number)] { return found }
            }
        }
        // The title had no extension: `27/06/12 - 2` is exported as `27_06_12 - 2.jpg` and `27_06_12 - 2.json`.
        let (stem, number) = Self.numbered(MediaName.split(media).stem)
        for suffix in Self.suffixes {
            for base in prefixes(stem + suffix, from: stem.utf16.count) {
                if let found = exact[Key(base: base, number: number)] { return found }
            }
        }
        return nil
    }

    /// The sidecar of the only photo with this name but for its extension.
    private func stem(_ media: String) -> Int? {
        let (stem, number) = Self.numbered(MediaName.split(media).stem)
        let found = stems[Key(base: stem, number: number)] ?? []
        return found.count == 1 ? found.first : nil
    }

    /// The still of a Live Photo (`IMG_1.HEIC`, `IMG_1.MP4`) or of a moving picture (`PXL_1.MP.jpg` with `PXL_1.MP` or
    /// `PXL_1.MP~2`).
    private func motion(_ media: String) -> Int? {
        let (stem, suffix) = MediaName.split(media)
        let (base, number) = Self.numbered(stem)
        guard !MediaName.isStill(suffix) else {
            // `LE.jpeg` and `LE.MP4` with `LE.MP4.metadata.json`.
            let found = stems[Key(base: base, number: number)] ?? []
            return found.count == 1 && !stills[found[0]] ? found.first : nil
        }
        for key in [
            Key(base: base, number: number), Key(base: media, number: ""), Key(base: stem, number: ""),
            Key(base: MediaName.firstEdition(media), number: ""),
        ] {
            // Where two photos have the name (`IMG_1.HEIC`, `IMG_1.JPG`), neither is known to be the one.
            let found = (stems[key] ?? []).filter { stills[$0] }
            if found.count == 1 { return found.first }
        }
        return nil
    }

    /// Of names that are the same once cut, some exports have one sidecar for all.
    private func twin(_ media: String) -> Int? {
        let (stem, suffix) = MediaName.split(media)
        let (base, number) = Self.numbered(stem)
        guard !number.isEmpty else { return nil }
        return cuts(base + suffix).lazy.compactMap { exact[Key(base: $0, number: "")] }.first
    }

    /// The name and the number of its sidecar, as Google writes them and as it did at times.
    private func variants(_ media: String) -> [(core: String, number: String)] {
        let (stem, suffix) = MediaName.split(media)
        let (base, number) = Self.numbered(stem)
        // `IMG.jpg(1).json`; `IMG(1).jpg.json`; `IMG(1).jpg.supple(1).json`.
        return number.isEmpty ? [(media, "")] : [(base + suffix, number), (media, ""), (media, number)]
    }

    /// The beginnings of a name, the longest first.
    private func prefixes(_ text: String, from shortest: Int) -> [String] {
        let units = Array(text.utf16)
        return (shortest...units.count).reversed().compactMap {
            String(validating: units[..<$0], as: UTF16.self)
        }
    }

    /// The name cut to about 46 units. Where that would halve a character, exports differ by one.
    private func cuts(_ core: String) -> [String] {
        let units = Array(core.utf16)
        let lengths = baseUnitsMax - 1...baseUnitsMax + 1
        let cut = lengths.reversed().filter { $0 < units.count }.compactMap {
            String(validating: units[..<$0], as: UTF16.self)
        }
        return cut + composedCuts(core, lengths)
    }

    /// The beginnings of a name that have so many units once it is composed, if it is stored decomposed. Equality
    /// ignores the difference.
    private func composedCuts(_ core: String, _ lengths: ClosedRange<Int>) -> [String] {
        guard core.utf16.count > Self.composedUnits(core) else { return [] }
        var cut: [String] = []
        var units = 0
        for end in core.indices {
            if lengths.contains(units) { cut.append(String(core[..<end])) }
            units += Self.composedUnits(core[end...end])
        }
        return cut.reversed()
    }

    /// The UTF-16 units of a text if each accent, and each part of a Korean syllable, is composed with the letter
    /// before.
    static func composedUnits(_ text: some StringProtocol) -> Int {
        text.unicodeScalars.reduce(0) { units, scalar in
            let isComposed =
                scalar.properties.canonicalCombiningClass != .notReordered
                || (0x1160...0x11FF).contains(scalar.value)
            return isComposed ? units : units + UTF16.width(scalar)
        }
    }

    /// `IMG(1)` is `IMG`, numbered 1.
    static func numbered(_ stem: String) -> (base: String, number: String) {
        guard stem.last == ")", let open = stem.lastIndex(of: "("), open > stem.startIndex else {
            return (stem, "")
        }
        let digits = stem[stem.index(after: open)...].dropLast()
        guard !digits.isEmpty, digits.utf8.count <= 6, digits.utf8.allSatisfy({ (0x30...0x39).contains($0) })
        else {
            return (stem, "")
        }
        return (String(stem[..<open]), String(digits))
    }

    /// A sidecar's base without as much of `.supplemental-metadata` as was left of it.
    private static func core(_ base: String) -> String {
        guard let dot = base.lastIndex(of: "."), dot > base.startIndex else { return base }
        return suffixes.contains { $0.hasPrefix(base[dot...]) } ? String(base[..<dot]) : base
    }

    private static let suffixes = [".supplemental-metadata", ".metadata"]
    private var baseUnitsMax: Int { 46 }
}

private let sidecarExtension = ".json"
