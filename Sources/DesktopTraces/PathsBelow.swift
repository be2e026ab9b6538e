import Glibc
import HostFiles
import LinuxIO

/// Tells whether paths lead into a directory, also through symbolic links, as `~/Pictures` may.
struct PathsBelow {
    private let directories: [[UInt8]]
    private let barriers: Set<[UInt8]>
    /// Link targets of the directories met so far; empty for a directory that is not a link.
    private var targets: [[UInt8]: [UInt8]] = [:]

    /// The kernel's own limit.
    private static let linksMax = 40
    private static let up = Array("..".utf8)

    /// - Parameters:
    ///   - directory: the directory to find, by any of its names. It need not exist.
    ///   - near: a path whose filesystems answer.
    ///   - mounts: every mount point. Links are followed only on filesystems that hold `directory` or `near`: any
    ///     other may be a server that does not answer.
    init(_ directory: String, near: String, mounts: [String] = mountTable().map(\.directory)) {
        let places = [absolutePath(directory), realPath(directory)]
        directories = places.map { Self.joined(Self.components(pathBytes($0))) }
        let answering = places + [near, realPath(near)]
        barriers = Set(
            mounts.filter { mount in !answering.contains { isInside($0, mount) } }.map { pathBytes($0) })
    }

    /// Whether the absolute `path` is the directory or below it.
    mutating func contains(_ path: [UInt8]) -> Bool { remainder(of: path) != nil }

    /// The rest of the absolute `path` below the directory, without a leading slash; empty for the directory itself,
    /// nil for a path that is not below it.
    mutating func remainder(of path: [UInt8]) -> [UInt8]? {
        var rest = Array(Self.components(path).reversed())
        var here: [[UInt8]] = []
        var links = 0
        while let component = rest.popLast() {
            if component == [UInt8(ascii: ".")] { continue }
            if component == Self.up {
                _ = here.popLast()
                continue
            }
            here.append(component)
            let place = Self.joined(here)
            if let inside = remainder(below: place), !rest.contains(Self.up) {
                let onward = Self.components(inside) + rest.reversed()
                return Array(
                    onward.filter { $0 != [UInt8(ascii: ".")] }.joined(separator: [UInt8(ascii: "/")]))
            }
            if barriers.contains(place) || links == Self.linksMax { return nil }
            let target = target(of: place, isLast: rest.isEmpty)
            guard !target.isEmpty else { continue }
            links += 1
            here = target.first == UInt8(ascii: "/") ? [] : here.dropLast()
            rest += Self.components(target).reversed()
        }
        return nil
    }

    private func remainder(below place: [UInt8]) -> [UInt8]? {
        let found = directories.first {
            place.starts(with: $0) && (place.count == $0.count || place[$0.count] == UInt8(ascii: "/"))
        }
        return found.map { Array(place.dropFirst($0.count)) }
    }

    /// The target of a link; empty if it is not a link or does not exist. Cached for directories.
    private mutating func target(of place: [UInt8], isLast: Bool) -> [UInt8] {
        if let known = targets[place] { return known }
        let target: [UInt8]
        do throws(Errno) { target = try HostPath(place).linkTarget() } catch { target = [] }
        if !isLast { targets[place] = target }
        return target
    }

    private static func components(_ path: [UInt8]) -> [[UInt8]] {
        path.split(separator: UInt8(ascii: "/")).map { Array($0) }
    }

    private static func joined(_ components: [[UInt8]]) -> [UInt8] {
        components.flatMap { [UInt8(ascii: "/")] + $0 }
    }
}
