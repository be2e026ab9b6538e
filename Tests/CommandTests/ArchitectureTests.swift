import Foundation
import Testing

/// The architecture page names types and functions; readers follow them into the code.
@Suite struct ArchitectureTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The text of every Swift file in Sources.
    private static func sources() throws -> [String] {
        let directory = root.appendingPathComponent("Sources")
        let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
        return try (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .map { try String(contentsOf: $0, encoding: .utf8) }
    }

    /// Names in backquotes of the walks, such as `Space.read`, in order.
    private static func names() throws -> [String] {
        let page = root.appendingPathComponent("Sources/obscura/obscura.docc/Architecture.md")
        let walks = try #require(
            try String(contentsOf: page, encoding: .utf8).components(separatedBy: "# Five walks").last)
        return walks.matches(of: /`([A-Za-z]+(\.[A-Za-z]+)?)`/).map { String($0.1) }
    }

    @Test func `every name in the five walks exists`() throws {
        let (names, sources) = (try Self.names(), try Self.sources())
        #expect(names.count > 60 && sources.count > 150)
        for name in Set(names) where name != "ArchitectureTests" {
            let parts = name.split(separator: ".").map(String.init)
            let type = try Regex("\\b(class|struct|enum|protocol|extension|func) \(parts[0])\\b")
            let member = try Regex("\\b(func|var|let|case) \(parts.last ?? "")\\b")
            let isFound = sources.contains {
                $0.contains(type) && (parts.count == 1 || $0.contains(member))
            }
            #expect(isFound, "\(name) is not in Sources")
        }
    }
}
