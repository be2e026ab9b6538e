public import LinuxIO
import VaultFormat

/// Damage of a vault's files that is visible without a password.
public struct FileDamage: Sendable, Equatable {
    /// Its path from the vault's directory.
    public var file: String
    /// The cause, phrased to follow the path and a colon.
    public var cause: String
}

extension Vault {
    /// Checks the facts that are visible without a password: both copies of the header, the numbers and sizes of
    /// segments. Writes and locks nothing.
    public static func checkFiles(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [FileDamage] {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        let layout = header.layout
        let damage = headerDamage(vault)
        guard let vault = vault as? VaultFiles else {
            if layout.isShared, let vault = vault as? VaultCluster {
                return damage + (try rowDamage(vault, vault.objects(layout)))
            }
            return damage + gaps(try vault.listing(layout).numbers)
        }
        return damage + (layout.isShared ? spacesDamage(vault, layout) : try segmentDamage(vault, layout))
    }

    private static func spacesDamage(_ vault: VaultFiles, _ layout: SegmentLayout) -> [FileDamage] {
        let file = SegmentLayout.sharedName
        guard let size = vault.fileBytes(file) else { return [FileDamage(file: file, cause: "missing")] }
        if size > 0 && size % layout.rowBytes == 0 { return [] }
        return [
            FileDamage(
                file: file,
                cause:
                    "does not end on a segment boundary: it was truncated, or growing the vault was interrupted"
            )
        ]
    }

    /// Missing objects of the rows of segments.
    private static func rowDamage(
        _ vault: VaultCluster, _ layout: ClusterLayout
    ) throws(VaultError) -> [FileDamage] {
        let missing = try vault.missingObjects(layout, least: 1).sorted { $0.key < $1.key }
        return missing.map { row, indices in
            FileDamage(
                file: layout.object(row, indices[0]),
                cause: indices.count == 1
                    ? "missing, or growing the vault was interrupted"
                    : "\(indices.count) objects of this row are missing, or growing the vault was interrupted"
            )
        }
    }

    private static func segmentDamage(
        _ vault: VaultFiles, _ layout: SegmentLayout
    ) throws(VaultError) -> [FileDamage] {
        let numbers: [Int]
        do throws(VaultError) { numbers = try vault.listing(layout).numbers } catch {
            guard case .damaged = error else { throw error }
            return [FileDamage(file: SegmentLayout.directoryName, cause: "missing")]
        }
        let found = numbers.map { layout.path(SegmentPlace(space: 0, number: $0)) }.compactMap { file in
            guard let size = vault.fileBytes(file) else { return FileDamage(file: file, cause: "missing") }
            return size > layout.segmentBytes
                ? FileDamage(file: file, cause: "is longer than a segment") : nil
        }
        return found + gaps(numbers)
    }

    /// Missing segments with later ones present.
    private static func gaps(_ numbers: [Int]) -> [FileDamage] {
        zip([-1] + numbers, numbers).filter { $1 > $0 + 1 }.map { before, after in
            let (first, last) = (SegmentLayout.name(before + 1), SegmentLayout.name(after - 1))
            return FileDamage(
                file: SegmentLayout.directoryName,
                cause: first == last ? "\(first) is missing" : "\(first) to \(last) are missing")
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
