import Foundation
import LibraryFixtures
import PhotoLibrary
import Recovery
import TestSupport
import Testing
import VaultFormat
import VaultStore

/// Segments that have each other's names are found by a check, and nothing else is.
@Suite("Damage: exchanged segments, checked") struct ExchangeCheckTests {
    private func exchange(_ specimen: Specimen, _ first: Int, _ second: Int) throws {
        let (first, second) = (try specimen.path(segment: first), try specimen.path(segment: second))
        try FileManager.default.moveItem(atPath: first, toPath: first + "x")
        try FileManager.default.moveItem(atPath: second, toPath: first)
        try FileManager.default.moveItem(atPath: first + "x", toPath: second)
    }

    @Test func `any two segments exchanged are found`() throws {
        let specimen = try Specimen(spaces: 1)
        let used = try Set(specimen.runs().map { Int($0.run.sector / 8192) })
        let count = specimen.segmentCount
        for first in 0..<count {
            for second in first + 1..<count {
                // Of segments without content nothing can be told, and nothing need be.
                guard first < 2 || used.contains(first) || used.contains(second) else { continue }
                try exchange(specimen, first, second)
                let report = try specimen.check()
                #expect(
                    report.findings.map(\.text) == [
                        "the space: segments \(first) and \(second) are exchanged"
                    ])
                #expect(report.plan.lines.count == 2 && !report.plan.mustSalvage)
                try SpaceRepair.run(specimen.unlocked, report.plan)
                #expect(try specimen.check().findings == [])
                #expect(try specimen.unreadable().isEmpty)
                for segment in 0..<count { #expect(try specimen.isWhole(segment)) }
            }
        }
    }

    /// Other damage is told once the files have their own names, and repaired then.
    @Test func `exchanged and damaged segments are found`() throws {
        let specimen = try Specimen(spaces: 1)
        let run = try #require(try specimen.runs().first { !$0.isRecord && $0.run.length > 100_000 })
        try specimen.flip(run.run.sector, 300)
        let damage = try specimen.check().findings
        #expect(damage.count == 1)
        let content = Int(run.run.sector / 8192)
        try exchange(specimen, 0, content)
        let report = try specimen.check()
        #expect(report.findings.first?.text == "the space: segments 0 and \(content) are exchanged")
        #expect(Array(report.findings.dropFirst()) == damage)
        try SpaceRepair.run(specimen.unlocked, report.plan)
        #expect(try specimen.check().findings == damage)
    }
}
