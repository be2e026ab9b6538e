import VaultFormat

/// Damage of the segments' files that is visible without a password.
extension VaultFiles {
    func damage(_ layout: SegmentLayout) throws(VaultError) -> [FileDamage] {
        layout.isShared ? spacesDamage(layout) : try segmentDamage(layout)
    }

    private func spacesDamage(_ layout: SegmentLayout) -> [FileDamage] {
        let file = SegmentLayout.sharedName
        guard let size = fileBytes(file) else { return [FileDamage(file: file, cause: "missing")] }
        if size > 0 && size % layout.rowBytes == 0 { return [] }
        return [
            FileDamage(
                file: file,
                cause:
                    "does not end on a segment boundary: it was truncated, or growing the vault was interrupted"
            )
        ]
    }

    private func segmentDamage(_ layout: SegmentLayout) throws(VaultError) -> [FileDamage] {
        let numbers: [Int]
        do throws(VaultError) { numbers = try listing(layout).numbers } catch {
            guard case .damaged = error else { throw error }
            return [FileDamage(file: SegmentLayout.directoryName, cause: "missing")]
        }
        let found = numbers.map { layout.path(SegmentPlace(space: 0, number: $0)) }.compactMap { file in
            guard let size = fileBytes(file) else { return FileDamage(file: file, cause: "missing") }
            return size > layout.segmentBytes
                ? FileDamage(file: file, cause: "is longer than a segment") : nil
        }
        return found + FileDamage.gaps(numbers)
    }
}
