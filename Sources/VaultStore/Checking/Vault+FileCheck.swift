import Glibc
public import LinuxIO
import VaultFormat

/// What is wrong with a vault's files, as anyone can see.
public struct FileDamage: Sendable, Equatable {
    /// Its path from the vault's directory.
    public var file: String
    /// In words that follow the path and a colon.
    public var cause: String
}

extension Vault {
    /// Looks at what can be checked without a password: both copies of the header, and that every space has as many
    /// segments as the others, all of one size. Nothing is written or locked.
    public static func checkFiles(
        _ path: String, calls: any FileSystemCalls = LinuxCalls.shared
    ) throws(VaultError) -> [FileDamage] {
        let (vault, header) = try open(path, calls: calls, mayRepair: false)
        var found = headerDamage(vault)
        var sizes: [[Int: UInt64]] = []
        for space in 0..<header.spaceCount {
            do throws(VaultError) {
                sizes.append(try vault.segmentSizes(space: space))
            } catch {
                guard case .damaged = error else { throw error }
                found.append(FileDamage(file: "\(VaultDirectory.spacesName)/\(space)", cause: "is missing"))
                sizes.append([:])
            }
        }
        let numbers = Set(sizes.flatMap(\.keys)).sorted()
        for (space, sizes) in sizes.enumerated() {
            for number in numbers {
                guard let cause = segmentDamage(sizes[number], header) else { continue }
                found.append(FileDamage(file: segmentPath(space, number), cause: cause))
            }
        }
        return found + gaps(numbers)
    }

    /// Segments that no space has though all have later ones.
    private static func gaps(_ numbers: [Int]) -> [FileDamage] {
        zip([-1] + numbers, numbers).filter { $1 > $0 + 1 }.map { before, after in
            let (first, last) = (SegmentFiles.name(before + 1), SegmentFiles.name(after - 1))
            return FileDamage(
                file: VaultDirectory.spacesName,
                cause: first == last ? "\(first) is missing" : "\(first) to \(last) are missing")
        }
    }

    private static func segmentPath(_ space: Int, _ number: Int) -> String {
        "\(VaultDirectory.spacesName)/\(space)/\(SegmentFiles.name(number))"
    }

    /// - Parameter size: nil where there is no such file.
    private static func segmentDamage(_ size: UInt64?, _ header: Header) -> String? {
        guard let size else {
            return header.spaceCount == 1
                ? "is missing" : "is missing: it was lost, or growing the vault was interrupted"
        }
        if size > header.segmentBytes { return "is longer than a segment" }
        if header.spaceCount > 1, size < header.segmentBytes {
            return "is too short: it was cut, or growing the vault was interrupted"
        }
        return nil
    }

    private static func headerDamage(_ vault: VaultDirectory) -> [FileDamage] {
        let states = Header.copyStates(vault.header, calls: vault.calls)
        let file = VaultDirectory.headerName
        for (index, state) in states.enumerated() where !state {
            return [
                FileDamage(file: file, cause: "copy \(index == 0 ? "A" : "B") is damaged; the other serves")
            ]
        }
        return []
    }
}

extension VaultDirectory {
    /// The numbers of a space's segments, in no order.
    func segmentNumbers(space: Int) throws(VaultError) -> [Int] {
        try listing(space: space).numbers
    }

    /// The sizes of a space's segments, by number.
    func segmentSizes(space: Int) throws(VaultError) -> [Int: UInt64] {
        var sizes: [Int: UInt64] = [:]
        for number in try segmentNumbers(space: space) {
            sizes[number] = segmentBytes(space: space, number: number)
        }
        return sizes
    }
}

extension UnlockedSpace {
    /// Repairs what `Vault.checkFiles` finds, as far as it can be: the header's other copy, and segments that some
    /// spaces have and others lack, which come back full of random bytes.
    ///
    /// A mount leaves a lost segment alone between others: it may still be put back.
    public func repairFiles() throws(VaultError) {
        let header = try Header.read(vault.header, calls: vault.calls, mayRepair: true)
        guard header.spaceCount > 1 else { return }
        let lock = try Vault.lockSpaces(vault)
        defer { vault.calls.close(lock) }
        var last = -1
        for space in 0..<header.spaceCount {
            last = max(last, try vault.segmentNumbers(space: space).max() ?? -1)
        }
        // A number beyond all measure is some stray file's.
        for number in 0..<min(last + 1, Self.segmentNumberMax) where !isComplete(number, header) {
            try Vault.fill(
                vault.directory, header.spaceCount, number..<number + 1, header.segmentBytes, vault.calls
            ) { _, _ in }
        }
    }

    private static let segmentNumberMax = 1 << 20

    /// Whether a segment needs nothing: every space has it, or none.
    private func isComplete(_ number: Int, _ header: Header) -> Bool {
        let sizes = (0..<header.spaceCount).map { vault.segmentBytes(space: $0, number: number) }
        return sizes.allSatisfy { ($0 ?? 0) >= header.segmentBytes } || sizes.allSatisfy { $0 == nil }
    }
}
