package import CatalogueRows
package import PhotoImaging

/// Result of classifying a file by its bytes.
package enum Classification: Sendable {
    /// Not classified, or the bytes could not be read: change nothing.
    case unknown
    /// Neither a picture nor a video.
    case plain
    case media(MediaProbe)
}

extension Classification {
    /// Drops the photos found with the same bytes.
    package mutating func forgetEquals() {
        guard case .media(var probe) = self else { return }
        (probe.equals, probe.isCompared) = ([], true)
        self = .media(probe)
    }

    /// Whether the comparison with photos that may have the same bytes is still to be finished.
    package var isUndecided: Bool {
        guard case .media(let probe) = self else { return false }
        return !probe.isCompared
    }
}

/// Metadata of a photo or video, read from its bytes.
package struct MediaProbe: Sendable {
    package var facts: MediaFacts
    /// The date information of a sidecar file next to it.
    package var sidecar: Sidecar?
    package var fingerprint: UInt64
    /// Photos of the space with the same bytes.
    package var equals: [EqualPhoto] = []
    /// False if there was too much to compare: `equals` is then incomplete.
    package var isCompared = true

    package init(
        facts: MediaFacts, sidecar: Sidecar? = nil, fingerprint: UInt64, equals: [EqualPhoto] = [],
        isCompared: Bool = true
    ) {
        self.facts = facts
        self.sidecar = sidecar
        self.fingerprint = fingerprint
        self.equals = equals
        self.isCompared = isCompared
    }

    /// Whether that photo has the same bytes.
    package func names(_ photo: InodeRow) -> Bool {
        equals.contains { $0.ino == photo.ino && $0.revision == photo.revision }
    }
}

/// A photo found to have the same bytes as a file: valid while its revision is the same.
package struct EqualPhoto: Sendable {
    package var ino: UInt64
    package var revision: UInt64

    package init(ino: UInt64, revision: UInt64) {
        self.ino = ino
        self.revision = revision
    }
}
