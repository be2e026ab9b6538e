/// Names of photos and videos in exports.
package enum MediaName {
    /// A name, and its extension with the dot; the extension is empty if it is none of a photo or video.
    package static func split(_ name: String) -> (stem: String, suffix: String) {
        guard let dot = name.lastIndex(of: "."), dot > name.startIndex else { return (name, "") }
        let suffix = name[dot...]
        return isStill(suffix) || isVideo(suffix) ? (String(name[..<dot]), String(suffix)) : (name, "")
    }

    package static func isStill(_ suffix: some StringProtocol) -> Bool {
        stills.contains(suffix.lowercased())
    }
    package static func isVideo(_ suffix: some StringProtocol) -> Bool {
        videos.contains(suffix.lowercased())
    }

    /// `PXL_1.MP~2`, of an edited moving picture, without its number.
    static func firstEdition(_ name: String) -> String {
        guard let tilde = name.lastIndex(of: "~"), name[..<tilde].lowercased().hasSuffix(".mp") else {
            return name
        }
        return String(name[..<tilde])
    }

    private static let stills = suffixes(
        "jpg jpeg jpe png gif webp heic heif hif avif jxl bmp tif tiff psd ico svg dng cr2 cr3 crw nef nrw arw srf sr2 "
            + "raf rw2 orf pef srw 3fr iiq x3f rwl raw")
    private static let videos = suffixes(
        "mp4 mov m4v 3gp 3g2 avi divx mkv webm mpg mpeg mod tod mts m2t m2ts wmv asf mp mv insv "
            + "ogv flv dv")

    private static func suffixes(_ words: String) -> Set<String> {
        Set(words.split(separator: " ").map { "." + $0 })
    }
}

/// Names of edited photos.
package enum EditedName {
    /// The ends of names of edited photos in the languages of Google Photos. Some are in exports that others reported,
    /// see the page on exports; the others are translations that no export has confirmed.
    private static let suffixes = [
        "-edited", "-bearbeitet", "-modifié", "-modificato", "-ha editado", "-editado", "-editada", "-editat",
        "-bewerkt", "-edytowane", "-編集済み", "-redigerad", "-redigeret", "-redigert", "-muokattu", "-upraveno",
        "-szerkesztett", "-düzenlendi", "-изменено", "-수정됨", "-已修改", "-已編輯", "-已编辑",
        "-đã chỉnh sửa",
    ]
    /// New pictures that Google made of a photo: dated by it, but no versions of it.
    private static let creations = ["-effects", "-smile", "-mix", "-collage", "-animation", "-pano"]
    private static let wordUnitsMax = 16

    /// The name of the original that a photo was made of, if `exists` says that there is one.
    ///
    /// Known words come first, also cut ones where the name was cut. Any other word without digits is believed too: the
    /// photo has no sidecar of its own, and one with the rest of its name has.
    package static func original(_ name: String, where exists: (String) -> Bool) -> String? {
        let (stem, suffix) = MediaName.split(name)
        let (base, number) = SidecarIndex.numbered(stem)
        let ending = (number.isEmpty ? "" : "(\(number))") + suffix
        for dash in base.indices.reversed() where base[dash] == "-" && dash > base.startIndex {
            let word = base[dash...]
            guard SidecarIndex.composedUnits(word) <= wordUnitsMax else { break }
            guard !word.contains(where: \.isNumber) else { continue }
            let original = String(base[..<dash]) + ending
            if exists(original) { return original }
        }
        return nil
    }

    /// Whether a name ends with a known word for edited, so that the photo is a version of its original.
    package static func isVersion(_ name: String) -> Bool {
        let stem = SidecarIndex.numbered(MediaName.split(name).stem).base.lowercased()
        guard let dash = stem.lastIndex(of: "-"), dash > stem.startIndex else { return false }
        let word = String(stem[dash...])
        // A name of 47 units was cut, perhaps within the word.
        let isCut = stem.utf16.count >= 47 && word.utf16.count > 2
        return suffixes.contains { $0 == word || (isCut && $0.hasPrefix(word)) }
    }

    /// Whether Google made a picture of others.
    package static func isCreation(_ name: String) -> Bool {
        let stem = SidecarIndex.numbered(MediaName.split(name).stem).base.lowercased()
        return creations.contains { stem.hasSuffix($0) }
    }

    /// The name of an iPhone's original, if the name is that of an edited photo or video: `IMG_E0001.JPG` was made of
    /// `IMG_0001.JPG` or `IMG_0001.HEIC`. The extension is left out.
    package static func appleOriginal(_ name: String) -> String? {
        let (stem, suffix) = MediaName.split(name)
        guard !suffix.isEmpty, stem.hasPrefix("IMG_E"), stem.utf8.count >= 9,
            stem.utf8.dropFirst(5).prefix(4).allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return "IMG_" + stem.dropFirst(5)
    }

    /// The photo's name without extension to which a file with Apple's adjustments belongs: `IMG_0001.AAE`, and
    /// `IMG_O0001.AAE` for those before the last.
    package static func adjusted(_ name: String) -> String? {
        guard name.lowercased().hasSuffix(".aae"), name.utf8.count > 4 else { return nil }
        let stem = String(name.dropLast(4))
        return stem.hasPrefix("IMG_O") ? "IMG_" + stem.dropFirst(5) : stem
    }
}

/// The name that a photo had before an export cut it; nil if it was not cut.
///
/// - Parameter title: the name in its sidecar.
package func uncutName(_ name: String, title: String) -> String? {
    let (stem, suffix) = MediaName.split(name)
    let base = SidecarIndex.numbered(stem).base
    let full = MediaName.split(title)
    let units = SidecarIndex.composedUnits(base)
    guard units >= 40, SidecarIndex.composedUnits(full.stem) > units, full.stem.hasPrefix(base),
        full.suffix.lowercased() == suffix.lowercased(), title.utf8.count <= 255, !title.contains("/"),
        !title.utf8.contains(0)
    else { return nil }
    return title
}
