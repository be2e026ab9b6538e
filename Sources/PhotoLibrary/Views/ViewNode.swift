import LinuxIO
package import PhotoRules

/// A virtual directory of views, whose inode number encodes it.
package enum ViewNode: Equatable, Sendable {
    /// `views` in the root, and the directories in it.
    case root, cameras, years, months, kinds, ratings, recent, similar, places
    /// A camera's number in `CameraNumbers`.
    case camera(UInt64)
    /// YYYY.
    case year(UInt64)
    /// YYYYMM.
    case month(UInt64)
    case kind(PhotoKind)
    /// Stars.
    case rating(UInt64)
    /// The number of the first photo that the group of similar photos had when it was found.
    case group(UInt64)
    /// The place of a country in `Towns.countries`.
    case country(Int)
    /// A directory of towns in `Towns.directories`.
    case town(Int, in: Int)

    /// The directories in `views`, in the order in which they are listed.
    package static let groups: [(name: String, node: ViewNode)] = [
        ("camera", .cameras), ("month", .months), (placesName, .places), ("rating", .ratings),
        ("recent", .recent), ("similar", .similar), ("type", .kinds), ("year", .years),
    ]

    /// Both bits of `VersionNode`, of which its numbers have one. Below them a code of 4 bits, then a key of 56.
    private static let bits: UInt64 = 3 << 60
    private static let keyBits: UInt64 = 56

    package init?(_ number: UInt64) {
        guard number >> 60 == Self.bits >> 60 else { return nil }
        let key = number & (1 << Self.keyBits - 1)
        switch number >> Self.keyBits & 15 {
        case 0: self = .root
        case 1: self = .cameras
        case 2: self = .years
        case 3: self = .months
        case 4: self = .kinds
        case 5: self = .ratings
        case 6: self = .recent
        case 7: self = .camera(key)
        case 8: self = .year(key)
        case 9: self = .month(key)
        case 10:
            guard let kind = PhotoKind(rawValue: Int64(key)) else { return nil }
            self = .kind(kind)
        case 11: self = .rating(key)
        case 12: self = .similar
        case 13: self = .group(key)
        case 14: self = key == 0 ? .places : .country(Int(key) - 1)
        case 15: self = .town(Int(key & 0xFFFF_FFFF), in: Int(key >> 32))
        default: return nil
        }
    }

    package var number: UInt64 {
        let (code, key) = parts
        return Self.bits | code << Self.keyBits | key
    }

    private var parts: (code: UInt64, key: UInt64) {
        switch self {
        case .root: (0, 0)
        case .cameras: (1, 0)
        case .years: (2, 0)
        case .months: (3, 0)
        case .kinds: (4, 0)
        case .ratings: (5, 0)
        case .recent: (6, 0)
        case .camera(let key): (7, key)
        case .year(let key): (8, key)
        case .month(let key): (9, key)
        case .kind(let kind): (10, UInt64(kind.rawValue))
        case .rating(let key): (11, key)
        case .similar: (12, 0)
        // No vault has numbers of more bits.
        case .group(let key): (13, key & (1 << Self.keyBits - 1))
        case .places: (14, 0)
        case .country(let place): (14, UInt64(place) + 1)
        case .town(let place, let country): (15, UInt64(country) << 32 | UInt64(place))
        }
    }

    /// The name of the view by place, which not every mount has.
    package static let placesName = "place"

    /// Whether it is the view by place, or in that.
    package var isOfPlaces: Bool { self == .places || parent == .places || parent?.parent == .places }

    /// Whether photos can be removed in it, and restored into it.
    package var allowsRemoval: Bool {
        switch self {
        case .group, .town: true
        case .root, .cameras, .years, .months, .kinds, .ratings, .recent, .similar, .places, .camera, .year,
            .month, .kind, .rating, .country:
            false
        }
    }

    /// The directory above; nil of `views` itself, which is in the root.
    package var parent: ViewNode? {
        switch self {
        case .root: nil
        case .cameras, .years, .months, .kinds, .ratings, .recent, .similar, .places: .root
        case .camera: .cameras
        case .year: .years
        case .month: .months
        case .kind: .kinds
        case .rating: .ratings
        case .group: .similar
        case .country: .places
        case .town(_, let country): .country(country)
        }
    }
}

/// Numbers of the cameras that a session has looked up or listed: names do not fit into an inode number. Never reused.
package final class CameraNumbers: @unchecked Sendable {
    /// A bound for forged vaults.
    private static let camerasMax = 65_536
    private let lock = Lock()
    // Both under `lock`.
    private var numbers: [[UInt8]: UInt64] = [:]
    private var cameras: [[UInt8]] = []

    package init() {}

    /// The number of a camera; nil if there are more than `camerasMax`.
    package func number(of camera: [UInt8]) -> UInt64? {
        lock.withLock {
            if let number = numbers[camera] { return number }
            guard cameras.count < Self.camerasMax else { return nil }
            cameras.append(camera)
            numbers[camera] = UInt64(cameras.count)
            return UInt64(cameras.count)
        }
    }

    /// The camera with that number.
    package func camera(_ number: UInt64) -> [UInt8]? {
        lock.withLock {
            (1...UInt64(Self.camerasMax)).contains(number) && number <= UInt64(cameras.count)
                ? cameras[Int(number) - 1] : nil
        }
    }
}
