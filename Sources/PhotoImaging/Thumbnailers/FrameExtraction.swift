/// Frames of videos that ffmpeg draws where the installed thumbnailers would draw a wrong one, or none:
/// ffmpegthumbnailer shows HDR without tone mapping, and finds nothing in a video of one frame.
enum FrameExtraction {
    private static let program = "/usr/bin/ffmpeg"
    /// The part of a video before its frame, as ffmpegthumbnailer chooses it.
    private static let partBefore = 0.1
    /// Hable's curve: still pictures of HDR are mapped in the same way (see obscura-worker, `DisplayConversion`).
    private static let toneMapping =
        ",zscale=t=linear:npl=203,format=gbrpf32le,zscale=p=bt709,tonemap=hable,zscale=t=bt709:m=bt709:r=full"

    /// Has the PNG say that it is sRGB: of BT.709's curve ffmpeg would write `gAMA` 1/1.961, and the codes of a video's
    /// frames are shown as they are, as players do.
    private static let shownAsStored = ",setparams=color_primaries=bt709:color_trc=iec61966-2-1"

    /// The thumbnailers of a video in the order in which they are tried: `installed` ones of the system, and ffmpeg if
    /// it is there and `installed` is not empty.
    static func thumbnailers(
        _ installed: [ThumbnailerCatalogue.Thumbnailer], for facts: MediaFacts?
    ) -> [ThumbnailerCatalogue.Thumbnailer] {
        guard let facts, facts.type.isVideo, !installed.isEmpty, isProgram(program) else { return installed }
        if facts.isHDR, let mapped = thumbnailer(seconds: facts.durationSeconds * partBefore, isHDR: true) {
            return [mapped] + installed
        }
        return installed + [thumbnailer(seconds: 0, isHDR: false)].compactMap(\.self)
    }

    /// - Parameter seconds: the time of the frame.
    private static func thumbnailer(seconds: Double, isHDR: Bool) -> ThumbnailerCatalogue.Thumbnailer? {
        let milliseconds = Int(min(max(seconds, 0), 1e6) * 1000)
        // Seeking ends at a frame before the time: there may be none behind. Reduced first: the rest is slow. "V"
        // leaves out covers.
        let filter =
            "scale=%s:%s:force_original_aspect_ratio=decrease" + (isHDR ? toneMapping : "") + ",format=rgb24"
            + shownAsStored
        let command =
            "ffmpeg -nostdin -v error -protocol_whitelist file -noaccurate_seek -ss \(milliseconds)ms -i %i -map 0:V:0 "
            + "-frames:v 1 -vf \(filter) -y %o"
        let text = "[Thumbnailer Entry]\nExec=\(command)\nMimeType=video/mp4\n"
        return ThumbnailerEntry(text).map { ThumbnailerCatalogue.Thumbnailer(entry: $0, program: program) }
    }
}
