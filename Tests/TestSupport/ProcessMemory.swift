import Foundation
public import Glibc
import LinuxIO
public import VaultCrypto

/// One mapping of a process, as /proc/PID/smaps tells of it.
public struct MemoryMapping: Sendable {
    public var addresses: Range<UInt>
    /// A file, `[heap]` or the like; empty for most anonymous memory.
    public var name: String
    /// Of VmFlags, proc(5): `lo` is locked, `dd` is left out of dumps.
    public var flags: Set<String> = []
    /// Kibibytes that are no file's.
    var ownKibibytes = 0

    /// Whether it shows the disk's bytes and nothing else.
    var isUnchangedFile: Bool { name.hasPrefix("/") && ownKibibytes == 0 }

    /// As keys must be kept: never swapped out, never in a core.
    public var isLocked: Bool { flags.contains("lo") && flags.contains("dd") }
}

/// A part of a secret that stands in a process's memory.
public struct MemoryFinding: Sendable, CustomStringConvertible {
    public var secret: String
    public var mapping: MemoryMapping

    public var description: String {
        "\(secret) in \(mapping.name.isEmpty ? "anonymous memory" : mapping.name) at "
            + String(mapping.addresses.lowerBound, radix: 16)
    }
}

/// The memory of a process, this one's or, for root, another's.
public struct ProcessMemory {
    private static let pieceBytes = 64 << 10
    /// So many bytes in a row of a secret are a finding.
    private static let windowBytes = 8
    /// The length of a needle: a part this long begins at every fourth byte, so that every window holds one.
    private static let probeBytes = 5
    private static let strideBytes = 4

    private let file: Int32
    private let process: pid_t

    /// Nil where it may not be read.
    public init?(of process: pid_t) {
        file = open("/proc/\(process)/mem", O_RDONLY | O_CLOEXEC)
        if file < 0 { return nil }
        self.process = process
    }

    public func close() { Glibc.close(file) }

    /// Every mapping, also those that cannot be read.
    public func mappings() -> [MemoryMapping] {
        var result: [MemoryMapping] = []
        // Foundation reads only the first page of such files.
        let text = kernelText("/proc/\(process)/smaps") ?? ""
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 5)
            if words[0] == "VmFlags:" {
                result[result.count - 1].flags = Set(line.split(separator: " ").dropFirst().map(String.init))
            } else if ["Anonymous:", "Private_Dirty:", "Shared_Dirty:"].contains(words[0]) {
                result[result.count - 1].ownKibibytes += Int(words[1]) ?? 0
            } else if !words[0].hasSuffix(":") {
                let ends = words[0].split(separator: "-").compactMap { UInt($0, radix: 16) }
                let name = words.count > 5 ? words[5].trimmingCharacters(in: .whitespaces) : ""
                result.append(MemoryMapping(addresses: ends[0]..<ends[1], name: name))
            }
        }
        return result
    }

    /// Where 8 bytes in a row of one of the secrets stand. Pages of files that nobody has changed are left out.
    ///
    /// - Parameter secrets: their names, which alone are told.
    public func find(_ secrets: [(name: String, bytes: SecretBytes)]) -> [MemoryFinding] {
        // In pages of its own, so that the bytes read are not found again in this process.
        let piece = mmap(
            nil, Self.pieceBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)!
        defer { munmap(piece, Self.pieceBytes) }
        let own = UInt(bitPattern: piece)
        var findings: [MemoryFinding] = []
        for mapping in mappings() where !mapping.addresses.contains(own) && !mapping.isUnchangedFile {
            var address = mapping.addresses.lowerBound
            while address < mapping.addresses.upperBound {
                let wanted = min(Self.pieceBytes, Int(mapping.addresses.upperBound - address))
                // A range without pages to read (guards, the kernel's own) answers with an error.
                let count = pread(file, piece, wanted, off_t(truncatingIfNeeded: address))
                if count <= 0 { break }
                let bytes = UnsafeRawBufferPointer(start: piece, count: count)
                if !isZero(bytes) {
                    for secret in secrets where holds(bytes, secret.bytes) {
                        findings.append(MemoryFinding(secret: secret.name, mapping: mapping))
                    }
                }
                // The pieces overlap: a window may lie across their border.
                address += UInt(count == wanted && wanted == Self.pieceBytes ? count - 64 : count)
            }
        }
        wipe(UnsafeMutableRawBufferPointer(start: piece, count: Self.pieceBytes))
        return findings
    }

    /// Memory that was never used, which is most of it.
    private func isZero(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress, bytes[0] == 0 else { return false }
        return memcmp(base, base + 1, bytes.count - 1) == 0
    }

    private func holds(_ memory: UnsafeRawBufferPointer, _ secret: SecretBytes) -> Bool {
        secret.withUnsafeBytes { secret in
            stride(from: 0, through: secret.count - Self.probeBytes, by: Self.strideBytes).contains { start in
                var from = memory.startIndex
                while let found = position(of: secret, start, in: memory, from: from) {
                    if matching(memory, found, secret, start) >= Self.windowBytes { return true }
                    from = found + 1
                }
                return false
            }
        }
    }

    /// Where the part of `secret` that begins at `start` stands next.
    private func position(
        of secret: UnsafeRawBufferPointer, _ start: Int, in memory: UnsafeRawBufferPointer, from: Int
    ) -> Int? {
        guard let base = memory.baseAddress, let probe = secret.baseAddress else { return nil }
        guard let found = memmem(base + from, memory.count - from, probe + start, Self.probeBytes) else {
            return nil
        }
        return UnsafeRawPointer(found) - base
    }

    /// How many bytes in a row around those two places are alike.
    private func matching(
        _ memory: UnsafeRawBufferPointer, _ place: Int, _ secret: UnsafeRawBufferPointer, _ start: Int
    ) -> Int {
        var before = 0
        while before < min(place, start), memory[place - before - 1] == secret[start - before - 1] {
            before += 1
        }
        var after = 0
        while place + after < memory.count, start + after < secret.count,
            memory[place + after] == secret[start + after]
        { after += 1 }
        return before + after
    }
}

/// memmem(3), which Swift does not import.
private let memmem:
    @convention(c) (UnsafeRawPointer, Int, UnsafeRawPointer, Int) -> UnsafeMutableRawPointer? =
        unsafeBitCast(
            dlsym(nil, "memmem")!,
            to: (@convention(c) (UnsafeRawPointer, Int, UnsafeRawPointer, Int) -> UnsafeMutableRawPointer?)
                .self)
