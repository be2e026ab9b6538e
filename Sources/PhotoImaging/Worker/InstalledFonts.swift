internal import Glibc

/// Fonts of this system that label contact sheets.
///
/// They are opened here because a confined worker cannot open files. The paths are those of Debian's packages:
/// fontconfig would add a library and its caches for a choice that is nearly always the same.
struct InstalledFonts: Sendable {
    /// Paths in groups. The first font of each group that can be opened is used; it draws the characters that the
    /// fonts of earlier groups lack.
    let paths: [[String]]

    /// The paths in Debian, each with its package's name.
    static let debian = InstalledFonts(paths: [
        [
            "/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf",  // fonts-dejavu-core
            "/usr/share/fonts/truetype/noto/NotoSans-Regular.ttf",  // fonts-noto-core
            "/usr/share/fonts/truetype/liberation/LiberationSans-Regular.ttf",  // fonts-liberation
            "/usr/share/fonts/truetype/liberation2/LiberationSans-Regular.ttf",  // fonts-liberation2
        ],
        // Chinese, Japanese, Korean.
        [
            "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",  // fonts-noto-cjk
            "/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf",  // fonts-droid-fallback
            "/usr/share/fonts/truetype/wqy/wqy-microhei.ttc",  // fonts-wqy-microhei
            "/usr/share/fonts/truetype/wqy/wqy-zenhei.ttc",  // fonts-wqy-zenhei
        ],
        // Indian and other scripts.
        ["/usr/share/fonts/truetype/freefont/FreeSans.ttf"],  // fonts-freefont-ttf
        // Broad coverage of Unicode.
        ["/usr/share/fonts/opentype/unifont/unifont.otf"],  // fonts-unifont
    ])

    /// Calls `body` with the descriptors of the installed fonts (possibly none), then closes them.
    func withDescriptors<Result, Failure: Error>(
        _ body: ([Int32]) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        precondition(paths.count <= WorkerProtocol.fontsMax)
        let descriptors = paths.compactMap { group in
            group.lazy.map { open($0, O_RDONLY | O_CLOEXEC) }.first { $0 >= 0 }
        }
        defer { for descriptor in descriptors { close(descriptor) } }
        return try body(descriptors)
    }
}
