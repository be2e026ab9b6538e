import FileRequests
package import PhotoImaging

/// The kind of picture of a photo that a path under `.thumbs` names.
package enum ThumbnailKind: Hashable, Sendable {
    /// The preview that the camera embedded, as stored in the photo.
    case fast
    case sized(PictureSize)

    /// The kind of `.thumbs/NAME`.
    package static let standard = ThumbnailKind.sized(.standard)
}

extension ThumbnailKind {
    /// The name that is listed in `.thumbs`; sizes are reachable but not listed.
    package static let fastName = Array("fast".utf8)
    /// Sides that a name may have, in pixels.
    private static let sides = 16...4096
    private static let fillSuffix = Array("-fill".utf8)

    /// The kind of the pictures in a directory of `.thumbs`, from its name: `fast`, `512`, `1024x768`, `256x256-fill`.
    /// Nil for any other name.
    package init?(named name: [UInt8]) {
        if name == Self.fastName {
            self = .fast
            return
        }
        let isFilled = hasSuffix(name, Self.fillSuffix)
        let box = isFilled ? name.dropLast(Self.fillSuffix.count) : name[...]
        let numbers = box.split(separator: UInt8(ascii: "x"), omittingEmptySubsequences: false).map(Self.side)
        switch numbers.count {
        case 1 where !isFilled:
            guard let side = numbers[0] else { return nil }
            self = .sized(PictureSize(fitting: side))
        case 2:
            guard let width = numbers[0], let height = numbers[1] else { return nil }
            self = .sized(PictureSize(width: width, height: height, isFilled: isFilled))
        default: return nil
        }
    }

    /// A side in pixels, written without signs and leading zeros; nil if it is out of bounds.
    private static func side(_ digits: ArraySlice<UInt8>) -> Int? {
        guard (2...4).contains(digits.count), digits.first != UInt8(ascii: "0"),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { return nil }
        let number = digits.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        return sides.contains(number) ? number : nil
    }
}

extension PictureSize {
    /// The box of `.thumbs/NAME`, and of pictures made in the background.
    package static let standard = PictureSize(fitting: 256)

    /// Whether a picture that fits this box has all the pixels that one of the other box needs.
    package func serves(_ other: PictureSize) -> Bool {
        !isFilled && !other.isFilled && width >= other.width && height >= other.height && self != other
    }
}

/// Pictures of a whole directory.
package enum Composition: Hashable, Sendable {
    /// `stack.jpg`: the newest photos as a pile of tiles.
    case stack
    /// `sheet.jpg`: a grid of the newest photos with their names.
    case sheet

    private static let stackName = Array("stack.jpg".utf8)
    private static let sheetName = Array("sheet.jpg".utf8)
    /// The box that the pile fits in: standard pictures with their borders, turned a little.
    static let stackSize = PictureSize(fitting: 360)

    package init?(named name: [UInt8]) {
        switch name {
        case Self.stackName: self = .stack
        case Self.sheetName: self = .sheet
        default: return nil
        }
    }

    /// How many photos it shows at most.
    package var photosMax: Int {
        switch self {
        case .stack: 5
        case .sheet: 100
        }
    }
}

/// The directories of a shared thumbnail repository, freedesktop.org's *Thumbnail Managing Standard* 0.9.
package enum RepositorySize: Int, Hashable, Sendable, CaseIterable {
    case normal = 128
    case large = 256
    case xLarge = 512
    case xxLarge = 1024

    package var name: [UInt8] {
        switch self {
        case .normal: Array("normal".utf8)
        case .large: Array("large".utf8)
        case .xLarge: Array("x-large".utf8)
        case .xxLarge: Array("xx-large".utf8)
        }
    }

    package init?(named name: [UInt8]) {
        guard let found = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = found
    }

    package var pictureSize: PictureSize { PictureSize(fitting: rawValue) }
}
