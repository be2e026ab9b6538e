import FileRequests
package import PhotoImaging

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

/// The contents of the sidecars beside a photo: the date, the rating and the place of the first that has one and
/// describes the photo.
///
/// - Parameter found: sidecars beside `photo`, the name next to which they are, in order of precedence.
package func describing(
    _ found: [(photo: [UInt8], name: [UInt8], contents: Sidecar)]
) -> Sidecar? {
    let own = found.filter { describes($0.contents, named: $0.name, $0.photo) }.map(\.contents)
    guard var sidecar = own.first else { return nil }
    sidecar.dates = own.first { !$0.dates.isEmpty }?.dates ?? []
    sidecar.rating = own.lazy.compactMap(\.rating).first
    sidecar.place = own.lazy.compactMap(\.place).first
    return sidecar
}

/// The contents that count of sidecars beside several names of a photo, one from each directory and name: those with
/// the earliest date, then with the most stars. Neither the order in which they came nor their places decide.
package func first(of found: [Sidecar]) -> Sidecar? {
    let ordered = found.sorted { precedes($0, $1) }
    guard var sidecar = ordered.first else { return nil }
    sidecar.rating = ordered.lazy.compactMap(\.rating).first
    sidecar.place = ordered.lazy.compactMap(\.place).first
    return sidecar
}

private func precedes(_ one: Sidecar, _ other: Sidecar) -> Bool {
    switch (one.dates.first?.time, other.dates.first?.time) {
    case (let time?, let otherTime?) where time != otherTime:
        let (seconds, others) = (time.secondsSince1970, otherTime.secondsSince1970)
        return seconds == others ? time.nanosecond < otherTime.nanosecond : seconds < others
    case (_?, nil): return true
    case (nil, _?): return false
    default: return (one.rating ?? -2) > (other.rating ?? -2)
    }
}

/// Whether a sidecar describes the photo beside it: `DSC.xmp` lies beside `DSC.NEF` and `DSC.JPG`, and may name the
/// extension of one of them.
package func describes(_ sidecar: Sidecar, named name: [UInt8], _ photo: [UInt8]) -> Bool {
    guard let only = sidecar.photoExtension, sidecarStem(name) != photo else { return true }
    let own = photo.dropFirst(stemOf(photo).count + 1)
    return String(decoding: own, as: UTF8.self).lowercased() == only.lowercased()
}

/// The names of the photos that a sidecar describes in place of the photo beside it; none if it describes that photo.
package func photosDescribed(by sidecar: Sidecar, named name: [UInt8], besides photo: [UInt8]) -> [[UInt8]] {
    guard !describes(sidecar, named: name, photo), let only = sidecar.photoExtension,
        let stem = sidecarStem(name)
    else { return [] }
    return [only, only.lowercased(), only.uppercased()].map { stem + [dot] + Array($0.utf8) }
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

/// The name of the photo that a sidecar describes by its name, if that photo's extension is that of `shown`.
package func photoName(describedBy sidecar: [UInt8], for shown: [UInt8]) -> [UInt8] {
    let stem = sidecarStem(sidecar) ?? sidecar
    let ending = shown.dropFirst(stemOf(shown).count)
    return hasSuffix(stem, Array(ending)) ? stem : stem + ending
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
