import LinuxIO
package import PhotoLibrary
import TestSupport
import VaultStore

@testable import Recovery

extension Fixture {
    /// Repairs the closed library as `check --repair` does, until nothing can be repaired. Returns the findings of the
    /// last check; nil if each repair finds more.
    package func repair() throws -> [Finding]? {
        // Keeps the vault locked while it lives.
        let unlocked = try vault.unlock()
        for _ in 0..<6 {
            let files = try Vault.checkFiles(vault.path)
            var report = try SpaceCheck.run(unlocked)
            let salvage = try salvage(unlocked, &report)
            if salvage == nil && report.findings.isEmpty && files.isEmpty { return [] }
            if report.plan.lines.isEmpty { return report.findings }
            try SpaceRepair.run(unlocked, report.plan, salvage: salvage)
        }
        return nil
    }

    private func salvage(_ unlocked: UnlockedSpace, _ report: inout SpaceReport) throws -> Salvage? {
        guard report.plan.exchange == nil, report.plan.mustSalvage || report.plan.mayFindMore else {
            return nil
        }
        let options = LibraryOptions(owner: (0, 0), mountedByRoot: true)
        let salvage = try Salvage.survey(unlocked, options: options) { _, _ in }
        if report.plan.mustSalvage { return salvage }
        guard salvage.findsMore else { return nil }
        report.takeUp()
        return salvage
    }
}
