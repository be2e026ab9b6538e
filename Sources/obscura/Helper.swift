import LinuxIO
import PhotoLibrary

/// A program of ours that this one starts, from its own directory.
enum Helper: String, CaseIterable {
    case worker = "obscura-worker"
    case `guard` = "obscura-guard"
    case sleep = "obscura-sleep"
    case desktop = "obscura-desktop"
    case archive = "obscura-archive"
    case receiver = "obscura-receiver"

    var isMissing: Bool { programBeside(rawValue) == nil }

    /// The consequence of its absence.
    var loss: String {
        switch self {
        case .worker: "no thumbnails"
        case .guard: "a killed mount may hang"
        case .sleep: "keys stay in memory in suspend"
        case .desktop: "lists of recent files are not cleaned"
        case .archive: "no import of zip files"
        case .receiver: "no photos from phones"
        }
    }

    /// Whether a mount with these options does without it.
    func isTurnedOff(by words: MountOptionParser) -> Bool {
        switch self {
        case .worker: words.thumbnails == .off
        case .sleep: !words.endsBeforeSleep
        case .desktop: !words.sweeps
        case .guard, .archive, .receiver: false
        }
    }

    /// The names and consequences, in words for the user; nil if none is missing.
    ///
    /// - Parameter names: as a mount's status has them; those of later releases too.
    static func missingText(_ names: [String]) -> String? {
        if names.isEmpty { return nil }
        let parts = names.map { name in Helper(rawValue: name).map { "\(name) (\($0.loss))" } ?? name }
        return parts.joined(separator: ", ") + ": install Obscura again, then mount again"
    }
}

/// The helpers that a mount needs and does not have.
struct MissingHelpers: Sendable {
    private let words: MountOptionParser
    /// Helpers that were missing when the mount began: it does not use them when they come back.
    private let sinceMounting: Set<Helper>

    init(_ words: MountOptionParser) {
        self.words = words
        sinceMounting = Set([Helper.worker, .guard, .sleep].filter(\.isMissing))
    }

    var names: [String] {
        Helper.allCases.filter { ($0.isMissing || sinceMounting.contains($0)) && !$0.isTurnedOff(by: words) }
            .map(\.rawValue)
    }
}
