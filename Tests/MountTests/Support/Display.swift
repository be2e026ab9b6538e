import TestSupport
import Testing

/// A screen that nobody looks at.
final class Display {
    let name: String
    private let process: Child

    init() throws {
        // A screen that resets itself when its last program has ended turns others away meanwhile.
        process = try Child(
            [
                "/usr/bin/Xvfb", "-displayfd", "1", "-screen", "0", "800x600x24", "-nolisten", "tcp", "-ac",
                "-noreset",
            ],
            output: .collected)
        name = ":" + (process.output?.next(upTo: "\n") ?? "")
        try #require(name.count > 1, "Xvfb did not start")
    }

    deinit {
        // Asked to end, it cleans up.
        process.terminate()
        process.wait(secondsMax: 10)
    }

    /// Waits for a window whose title has `word`, up to two minutes; whether it came.
    func waitForWindow(_ place: Place, _ word: String) throws -> Bool {
        let look = "xwininfo -root -tree 2>/dev/null | grep -q '\(word)'"
        let line = "for i in {1..1200}; do if \(look); then exit 0; fi; sleep 0.1; done; exit 1"
        return try place.run(["env", "DISPLAY=\(name)", "/bin/bash", "-c", line]).status == 0
    }
}
