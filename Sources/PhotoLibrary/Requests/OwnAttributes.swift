import CatalogueRows
import FileRequests
import PhotoImaging
import PhotoRules
import VaultCatalogue

/// The attributes `user.obscura.NAME` of a photo: virtual, read-only and not listed.
private enum OwnAttribute: String {
    /// The photo's date on the camera's wall clock, `YYYY-MM-DD HH:MM:SS`, with a fraction if there is one.
    case captured
    /// The source of that date: a `DateSource`'s raw value.
    case capturedSource = "captured.source"
    /// In pixels as stored, before the orientation is applied.
    case width
    /// In pixels as stored, before the orientation is applied.
    case height
    /// EXIF orientation, 1–8.
    case orientation
    /// Make and model.
    case camera
    /// Degrees north, six decimal places.
    case latitude
    /// Degrees east, six decimal places.
    case longitude
}

/// Answers them from the rows of a photo, or from its bytes.
struct OwnAttributes {
    let session: TreeSession

    /// The value of the attribute `user.obscura.NAME`. Throws `.noData` if the file is not a photo, or the value is
    /// unknown.
    ///
    /// Rarely requested values are not stored but read from the photo's bytes, with no lock held.
    func value(of ino: UInt64, _ name: [UInt8]) throws(FileError) -> [UInt8] {
        if try session.locked({ tree throws(FileError) in tree.sidecars.hasNoted }) {
            try session.applyCompanionMoves()
        }
        let row = try session.locked { tree throws(FileError) in
            let inode = try tree.inode(ino)
            guard let photo = try tree.copies.photo(representedBy: inode) else { throw .noData }
            return try tree.photos.photo(photo)
        }
        let value: [UInt8]? =
            switch OwnAttribute(rawValue: String(decoding: name, as: UTF8.self)) {
            case .captured: capturedText(row)
            case .capturedSource: row.sourceName
            case .width: row.width > 0 ? text(row.width) : nil
            case .height: row.height > 0 ? text(row.height) : nil
            case .orientation: text(row.orientation)
            case .camera: try facts(of: ino)?.camera.map { Array($0.utf8) }
            case .latitude: try facts(of: ino)?.latitude.map(degreesText)
            case .longitude: try facts(of: ino)?.longitude.map(degreesText)
            case nil: nil
            }
        guard let value else { throw .noData }
        return value
    }

    /// The facts in the present bytes. Throws if these cannot be read.
    private func facts(of ino: UInt64) throws(FileError) -> MediaFacts? {
        try session.withState(of: ino) { file throws(FileError) in
            let source = FileSource(file)
            let facts = readFacts(source)
            if source.hasFailed { throw .damaged }
            return facts
        }
    }
}

private func text(_ number: Int64) -> [UInt8] { Array(String(number).utf8) }

/// Signed degrees with six decimal places, a tenth of a metre: `-122.031200`.
private func degreesText(_ degrees: Double) -> [UInt8] {
    let millionths = Int64((degrees * 1_000_000).rounded())
    let fraction = String(millionths.magnitude % 1_000_000)
    let sign = millionths < 0 ? "-" : ""
    let zeros = String(repeating: "0", count: 6 - fraction.utf8.count)
    return Array("\(sign)\(millionths.magnitude / 1_000_000).\(zeros)\(fraction)".utf8)
}
