import PhotoLibrary
import VaultCatalogue
package import VaultStore

extension SpaceCheck {
    /// Finds segments with exchanged names: compares their contents with the roots, the maps and the catalogue.
    ///
    /// - Parameter space: opened for reading, with the names under which its pages were found.
    package static func findExchange(_ unlocked: UnlockedSpace, _ space: Space) throws(VaultError)
        -> SegmentExchange?
    {
        try unlocked.findExchange(Catalogue.runSamples(of: space))
    }
}

extension SpaceReport {
    /// Adds a line for each group of exchanged segments, before all others.
    package mutating func note(_ exchange: SegmentExchange) {
        plan.exchange = exchange
        findings.insert(
            contentsOf: exchange.texts.map { Finding(subject: "the space", cause: $0, kind: .space) }, at: 0)
    }
}
