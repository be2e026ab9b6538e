import FileRequests

/// Whether the name is that of a sidecar.
package func isSidecarName(_ name: [UInt8]) -> Bool { sidecarStem(name) != nil }

/// The possible names of a photo's sidecar, in order of precedence.
package func sidecarNames(_ name: [UInt8]) -> [[UInt8]] {
    let stem = stemOf(name)
    var names: [[UInt8]] = []
    for base in stem == name ? [name] : [name, stem] {
        for suffix in sidecarSuffixes where base.count + suffix.count <= nameBytesMax {
            names.append(base + suffix)
        }
    }
    return names
}

/// The name of a sidecar, or of another file with the photo's stem, next to `shown`, if next to `name` it is called
/// `companion`. Other names stay.
package func companionName(_ companion: [UInt8], of name: [UInt8], for shown: [UInt8]) -> [UInt8] {
    for (old, new) in [(name, shown), (stemOf(name), stemOf(shown))] {
        if companion.count > old.count, companion.starts(with: old + [dot]) {
            return new + companion.dropFirst(old.count)
        }
    }
    return companion
}

package func sidecarStem(_ name: [UInt8]) -> [UInt8]? {
    for suffix in sidecarSuffixes where hasSuffix(name, suffix) && name.count > suffix.count {
        return Array(name.dropLast(suffix.count))
    }
    return nil
}

/// A name without its extension.
package func stemOf(_ name: [UInt8]) -> [UInt8] {
    guard let last = name.lastIndex(of: dot), last > 0 else { return name }
    return Array(name[..<last])
}

/// Maximum number of names that begin with a stem and a dot and are examined: `IMG.jpg`, but also `IMG.001.jpg`, which
/// does not belong to `IMG`.
package let siblingNamesMax = 1024
private let dot = UInt8(ascii: ".")
private let sidecarSuffixes: [[UInt8]] = [".xmp", ".XMP"].map { Array($0.utf8) }
