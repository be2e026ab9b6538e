public import LinuxIO
import VaultFormat

/// Damage of a vault's files that is visible without a password.
public struct FileDamage: Sendable, Equatable {
    /// Its path from the vault's directory.
    public var file: String
    /// The cause, phrased to follow the path and a colon.
    public var cause: String

    /// Missing segments with later ones present.
    static func gaps(_ numbers: [Int]) -> [FileDamage] {
        zip([-1] + numbers, numbers).filter { $1 > $0 + 1 }.map { before, after in
            let (first, last) = (SegmentLayout.name(before + 1), SegmentLayout.name(after - 1))
            return FileDamage(
                file: SegmentLayout.directoryName,
                cause: first == last ? "\(first) is missing" : "\(first) to \(last) are missing")
        }
    }
}

extension Vault {
    /// Checks the facts that are visible without a password: both copies of the header, the numbers and sizes of
    /// segments. Writes and locks nothing.
    public static func checkFiles(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [FileDamage] {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        return headerDamage(vault) + (try vault.damage(header.layout))
    }

    /// Paths, from the vault's directory, of files among its segments that cannot be segments. They are ignored.
    public static func strayFiles(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [String] {
        if hostTraits(of: path).hasObjects { return [] }
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        do throws(VaultError) { return try vault.segments(header.layout).strays } catch {
            // A missing directory is damage, but no stray file.
            if case .damaged = error { return [] }
            throw error
        }
    }

    private static func headerDamage(_ vault: any VaultHost) -> [FileDamage] {
        let states = Header.copyStates(vault)
        let file = VaultFiles.headerName
        for (index, state) in states.enumerated() where !state {
            return [
                FileDamage(
                    file: file, cause: "copy \(index == 0 ? "A" : "B") is damaged; the other is intact")
            ]
        }
        return []
    }
}

extension UnlockedSpace {
    /// Repairs findings of `Vault.checkFiles`: the header's other copy; segments that are too long, which are cut; and
    /// the file of all spaces, which is extended to whole rows with random bytes.
    ///
    /// - Parameter segmentCount: the least number of segments that each space then has.
    public func repairFiles(segmentCount: Int = 0) throws(VaultError) {
        _ = try Header.read(from: vault, mayRepair: true)
        try vault.mendSegments(layout, least: segmentCount)
    }
}
