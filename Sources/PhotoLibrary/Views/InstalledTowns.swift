import LinuxIO
import PhotoRules

/// The list of towns that the system has, read when a view is first entered. No secret takes part in that.
package final class InstalledTowns: @unchecked Sendable {
    /// As Debian's libgweather-4-common installs it, and before Debian 12 libgweather-common.
    package static let files = [
        "/usr/share/libgweather-4/Locations.xml", "/usr/share/libgweather/Locations.xml",
    ]

    /// A photo farther from every town is shown elsewhere. Uluru is 341 km from the next town of libgweather 4.2, the
    /// middle of the North Sea 312, that of the Atlantic 760; of 65 photos of public collections one is farther than
    /// 195, at 460.
    package static let kilometersMax = 500.0

    private let files: [String]
    private let lock = Lock()
    /// Under `lock`.
    private var found: (towns: Towns?, whyNone: String)?

    init(_ files: [String]) { self.files = files }

    /// The towns of the first of the files that has any.
    var towns: Towns? { read().towns }
    /// Why there are none, in words for the user.
    var whyNone: String { read().whyNone }

    private func read() -> (towns: Towns?, whyNone: String) {
        lock.withLock {
            let result = found ?? Self.read(files)
            found = result
            return result
        }
    }

    private static func read(_ files: [String]) -> (towns: Towns?, whyNone: String) {
        var whyNone = "no list of towns is installed (Debian: libgweather-4-common)"
        for file in files {
            guard let bytes = contents(ofFile: file, bytesMax: TownFile.bytesMax) else { continue }
            if let towns = Towns(TownFile(bytes).towns, kilometersMax: kilometersMax) { return (towns, "") }
            whyNone = "\(file) names no towns"
        }
        return (nil, whyNone)
    }
}
