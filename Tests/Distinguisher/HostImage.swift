import CShims
import Foundation
import Glibc
import TestSupport

/// A file system of its own, in a file: the disk of one vault. Making and mounting takes root and loop devices.
public struct HostImage: Sendable {
    public enum Kind: String, CaseIterable, Sendable { case ext4, xfs, exfat }

    let kind: Kind
    let path: String
    let mountPoint: String

    /// With fewer the usual block size would be another, and XFS would not be made at all.
    static let bytes = 512 << 20

    /// A tool failed.
    struct Failure: Error { var words: String }

    /// Makes it, below `directory`, and mounts it.
    init(_ kind: Kind, in directory: String) throws {
        self.kind = kind
        (path, mountPoint) = (directory + "/disk", directory + "/host")
        try FileManager.default.createDirectory(atPath: mountPoint, withIntermediateDirectories: false)
        guard FileManager.default.createFile(atPath: path, contents: nil), truncate(path, Self.bytes) == 0
        else { throw Failure(words: "\(path): \(errno)") }
        let options: [String] =
            switch kind {
            // As on a disk that has been in use for a while: otherwise the kernel writes 8 MB of inode tables beside
            // the sessions, at a time of its own, and the bytes ever written tell less than they can.
            case .ext4: ["-q", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
            case .xfs: ["-q"]
            case .exfat: []
            }
        try Self.run(["mkfs.\(kind.rawValue)"] + options + [path])
        try mount()
    }

    func mount() throws { try Self.run(["mount", "-t", kind.rawValue, "-o", "loop", path, mountPoint]) }

    /// Patiently: a program that another thread starts has the vault's descriptors until it is a program of its own.
    func unmount() throws {
        guard eventually({ umount2(mountPoint, 0) == 0 || errno == EINVAL }) else {
            throw Failure(words: "\(mountPoint) stays busy")
        }
        // A sandbox that another test begins has copies of all mounts for a moment. Until they are gone, ext4 keeps its
        // count of written bytes in memory.
        guard try eventually({ try !isOnLoopDevice() }) else {
            throw Failure(words: "\(path) stays mounted elsewhere")
        }
    }

    /// Whether a loop device has the disk; it lets go of it when the last mount ends.
    private func isOnLoopDevice() throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: "/sys/block").contains { device in
            guard device.hasPrefix("loop") else { return false }
            let backing = try? String(
                contentsOfFile: "/sys/block/\(device)/loop/backing_file", encoding: .utf8)
            return backing == path + "\n"
        }
    }

    /// Unmounts it also while it is in use.
    func leave() {
        if (try? unmount()) == nil { umount2(mountPoint, Int32(MNT_DETACH)) }
    }

    /// Has the disk take all that was written, as the kernel does by itself after some seconds, and other programs'
    /// syncs do: a step of the journal, for its later reader.
    func sync() {
        let directory = open(mountPoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard directory >= 0 else { return }
        defer { close(directory) }
        _ = obscura_sync_filesystem(directory)
    }

    /// Why this machine cannot have such disks; nil where it can.
    public static func obstacle(_ kind: Kind, in directory: String) -> String? {
        let path = "\(directory)/distinguisher-\(getpid())-try-\(kind.rawValue)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        do {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            try HostImage(kind, in: path).leave()
            return nil
        } catch let failure as Failure { return failure.words } catch { return "\(error)" }
    }

    /// A tool's output. Throws if it fails.
    @discardableResult static func run(_ words: [String]) throws -> String {
        let ended = try Child(
            words, environment: Child.plainEnvironment, output: .collected, errors: .collected
        ).finish()
        guard ended.status == 0 else {
            throw Failure(
                words: "\(words[0]): \(ended.errors.trimmingCharacters(in: .whitespacesAndNewlines))")
        }
        return ended.output
    }
}
