/// The facts about a photo that an export gives beside it.
package struct PhotoMetadata: Equatable, Sendable {
    /// The name that the photo had when it was uploaded: uncut, and not numbered.
    package var title = ""
    /// Seconds since 1970 UTC when it was taken, as the user last corrected it.
    package var taken: Int64?
    /// Bound of the error of `taken` in seconds: Apple's tables give minutes.
    package var takenPrecision: Int64 = 2
    /// Degrees north and east.
    package var place: Place?
    package var description = ""
    package var isFavourite = false
    /// In the trash of the service when it was exported.
    package var isTrashed = false

    package struct Place: Equatable, Sendable {
        package var latitude: Double
        package var longitude: Double
    }

    package init() {}
}

/// The contents of a JSON file of Google Takeout.
package enum GoogleFile: Equatable {
    case photo(PhotoMetadata)
    /// The title of the album that the folder is; empty if it has none.
    case album(title: String)
    /// JSON about something else: comments, subscriptions, memories.
    case other

    /// Nil if the bytes are no JSON object.
    package init?(_ bytes: [UInt8]) {
        guard let json = JSONValue(bytes), json.isObject else { return nil }
        // Until 2019 the members of an album were in an object of their own.
        let members = json["albumData"] ?? json
        if let taken = json["photoTakenTime"] ?? json["creationTime"], taken.isObject {
            self = .photo(PhotoMetadata(google: json, taken: taken))
        } else if let title = members["title"]?.text, Self.isAlbum(members) {
            self = .album(title: title)
        } else {
            self = .other
        }
    }

    /// Recent albums have a title and nothing that is certain besides; other files with a title have an address.
    private static func isAlbum(_ members: JSONValue) -> Bool {
        members["url"] == nil
    }
}

extension PhotoMetadata {
    init(google json: JSONValue, taken time: JSONValue) {
        self.init()
        title = json["title"]?.text ?? ""
        // A text of digits, but some programs that write the same format give a number.
        switch time["timestamp"] {
        case .text(let text): taken = Int64(text)
        case .number(let number) where abs(number) < 1e15: taken = Int64(number)
        default: taken = nil
        }
        // The user's correction comes before the camera's date.
        place = Place(google: json["geoData"]) ?? Place(google: json["geoDataExif"])
        description = json["description"]?.text ?? ""
        isFavourite = json["favorited"]?.isTrue ?? false
        isTrashed = json["trashed"]?.isTrue ?? false
    }
}

extension PhotoMetadata.Place {
    /// Nil also for 0, 0, which Google writes where it knows no place.
    init?(google json: JSONValue?) {
        guard let latitude = json?["latitude"]?.number, let longitude = json?["longitude"]?.number,
            latitude != 0 || longitude != 0, abs(latitude) <= 90, abs(longitude) <= 180
        else { return nil }
        self.init(latitude: latitude, longitude: longitude)
    }
}
