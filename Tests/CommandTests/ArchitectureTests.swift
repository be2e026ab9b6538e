import Foundation
import Testing

/// The architecture page names types and functions; readers follow them into the code.
@Suite("Documents: the architecture page") struct ArchitectureTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// The declarations of a file: types with extensions and functions, and members.
    private struct Declarations {
        var types: Set<Substring> = []
        var members: Set<Substring> = []
    }

    /// The declarations of every Swift file in Sources.
    private static func sources() throws -> [Declarations] {
        let directory = root.appendingPathComponent("Sources")
        let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
        let typeWords: Set<Substring> = ["class", "struct", "enum", "protocol", "extension", "func"]
        let memberWords: Set<Substring> = ["func", "var", "let", "case"]
        return try (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { $0.pathExtension == "swift" }
            .map { url in
                let text = try String(contentsOf: url, encoding: .utf8)
                let words = text.utf8.split { byte in
                    !(UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                }.map { Substring($0) }
                var declared = Declarations()
                for (word, name) in zip(words, words.dropFirst()) {
                    if typeWords.contains(word) { declared.types.insert(name) }
                    if memberWords.contains(word) { declared.members.insert(name) }
                }
                return declared
            }
    }

    /// Names in backquotes of the walks, such as `Space.read`, in order.
    private static func names() throws -> [String] {
        let page = root.appendingPathComponent("Sources/obscura/obscura.docc/Architecture.md")
        let walks = try #require(
            try String(contentsOf: page, encoding: .utf8).components(separatedBy: "# Six walks").last)
        return walks.matches(of: /`([A-Za-z]+(\.[A-Za-z]+)?)`/).map { String($0.1) }
    }

    @Test func `every file that the page sends a reader to exists`() throws {
        let page = Self.root.appendingPathComponent("Sources/obscura/obscura.docc/Architecture.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        let table = try #require(text.firstRange(of: "| question | file |"))
        let walks = try #require(text.firstRange(of: "# Six walks"))
        var room = ""
        let files = text[table.upperBound..<walks.lowerBound].matches(
            of: /`([A-Za-z\/]+\/)?([A-Za-z+]+\.swift)`/)
        #expect(files.count > 6)
        for file in files {
            // A file without a room is in that of the one before.
            room = file.1.map(String.init) ?? room
            let path = Self.root.path + "/Sources/" + room + file.2
            #expect(FileManager.default.fileExists(atPath: path), "\(path)")
        }
    }

    @Test func `every name in the six walks exists`() throws {
        let (names, sources) = (try Self.names(), try Self.sources())
        #expect(names.count > 60 && sources.count > 150)
        for name in Set(names) where name != "ArchitectureTests" {
            let parts = name.split(separator: ".")
            let isFound = sources.contains {
                $0.types.contains(parts[0])
                    && (parts.count == 1 || $0.members.contains(parts[parts.count - 1]))
            }
            #expect(isFound, "\(name) is not in Sources")
        }
    }
}
