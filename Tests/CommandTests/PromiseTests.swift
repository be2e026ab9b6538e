import Foundation
import Testing

/// The page of promises names suites and their tests; readers search for them.
@Suite("Documents: the page of promises") struct PromiseTests {
    private static let root = URL(fileURLWithPath: #filePath)
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// `SUITE: test` for each test whose name is a sentence.
    private static func tests() throws -> Set<String> {
        let directory = root.appendingPathComponent("Tests")
        let files = FileManager.default.enumerator(at: directory, includingPropertiesForKeys: nil)
        let word = /(?<keyword>struct|class|func) (?:(?<suite>[A-Z]\w*Tests)\b|`(?<test>[^`]+)`)/
        var found: Set<String> = []
        for case let url as URL in files?.allObjects ?? [] where url.pathExtension == "swift" {
            var suite: Substring = ""
            for match in try String(contentsOf: url, encoding: .utf8).matches(of: word) {
                if let name = match.suite { suite = name }
                if let test = match.test { found.insert("\(suite): \(test)") }
            }
        }
        return found
    }

    /// `SUITE: test` as the page has them: *SUITE: \*test\*, \*test\**.
    private static func promised() throws -> [String] {
        let page = root.appendingPathComponent("Sources/obscura/obscura.docc/Promises.md")
        let groups = /(?<suite>[A-Z]\w*Tests): (?<tests>\*[^*|]+\*(?:, \*[^*|]+\*)*)/
        return try String(contentsOf: page, encoding: .utf8).matches(of: groups).flatMap { group in
            group.tests.split(separator: "*").filter { $0 != ", " }.map { "\(group.suite): \($0)" }
        }
    }

    @Test func `every test that the page names exists`() throws {
        let (promised, tests) = (try Self.promised(), try Self.tests())
        #expect(promised.count > 200 && tests.count > 1000)
        for name in promised { #expect(tests.contains(name), "\(name)") }
    }

    @Test func `every promise has a test, or says that it has none`() throws {
        let page = Self.root.appendingPathComponent("Sources/obscura/obscura.docc/Promises.md")
        for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n")
        where line.hasPrefix("| ") && line != "| promise | tests |" {
            #expect(line.contains("Tests: *") || line.contains("*no test*"), "\(line)")
        }
    }
}
