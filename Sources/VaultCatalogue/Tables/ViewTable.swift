public import CatalogueRows
public import FileRequests

/// The photos of a view, except the newest arrivals: a condition on a column of `photo` that has an index.
public enum ViewKey: Sendable, Equatable {
    /// From the first day to the last one, YYYYMMDD.
    case days(ClosedRange<Int64>)
    case camera([UInt8])
    case kind(Int64)
    case rating(Int64)

    /// Whether a photo is in the view.
    public func contains(_ photo: PhotoRow) -> Bool {
        switch self {
        case .days(let days): days.contains(photo.day)
        case .camera(let camera): photo.camera == camera
        case .kind(let kind): photo.kind == kind
        case .rating(let rating): photo.rating == rating
        }
    }
}

/// A photo in a view.
public struct ViewedPhoto: Sendable, Equatable {
    public var ino: UInt64
    public var name: [UInt8]
    public var day: Int64

    public init(ino: UInt64, name: [UInt8], day: Int64) { (self.ino, self.name, self.day) = (ino, name, day) }
}

struct ViewStatements {
    let name: Statement
    let setName: Statement
    let named: Statement
    let holder: Statement
    let beginning: Statement
    let ofDay: Statement
    let ofCamera: Statement
    let ofKind: Statement
    let ofRating: Statement
    let newest: Statement
    let newer: Statement
    let nextDay: Statement
    let nextCamera: Statement

    init(_ connection: Connection) {
        let select = "SELECT ino, name, day FROM photo WHERE name IS NOT NULL AND"
        name = connection.prepare("SELECT name FROM photo WHERE ino=?")
        setName = connection.prepare("UPDATE photo SET name=?2 WHERE ino=?1")
        named = connection.prepare("SELECT * FROM photo WHERE name=?")
        holder = connection.prepare("SELECT ino FROM photo WHERE name=?")
        beginning = connection.prepare(
            "SELECT name, ino FROM photo WHERE name>=?1 AND name<?2 ORDER BY name LIMIT ?3")
        ofDay = connection.prepare("\(select) day=?1 AND ino>?2 ORDER BY ino")
        ofCamera = connection.prepare("\(select) camera=?1 AND ino>?2 ORDER BY ino")
        ofKind = connection.prepare("\(select) kind=?1 AND kind>0 AND ino>?2 ORDER BY ino")
        ofRating = connection.prepare("\(select) rating=?1 AND rating>0 AND ino>?2 ORDER BY ino")
        newest = connection.prepare(
            "SELECT ino, name, day FROM photo WHERE name IS NOT NULL ORDER BY arrived DESC, ino DESC LIMIT ?")
        newer = connection.prepare(
            "SELECT count(*) FROM (SELECT 1 FROM photo WHERE name IS NOT NULL AND (arrived, ino)>(?1,?2) LIMIT ?3)"
        )
        nextDay = connection.prepare(
            "SELECT day FROM photo WHERE name IS NOT NULL AND day>? ORDER BY day LIMIT 1")
        nextCamera = connection.prepare(
            "SELECT camera FROM photo WHERE name IS NOT NULL AND camera>? ORDER BY camera LIMIT 1")
    }

    func of(_ key: ViewKey) -> Statement {
        switch key {
        case .days: ofDay
        case .camera: ofCamera
        case .kind: ofKind
        case .rating: ofRating
        }
    }
}

/// Views: photos by day, camera, kind, rating and arrival. Each query reads only rows that it returns.
public final class ViewTable {
    let statements: ViewStatements

    init(_ connection: Connection) { statements = ViewStatements(connection) }

    /// The name of a photo in all views; nil if it has none.
    public func name(of ino: UInt64) throws(FileError) -> [UInt8]? {
        statements.name.bind(1, ino)
        return try statements.name.one { $0.isNull(0) ? nil : $0.name(0) } ?? nil
    }

    /// Names a photo in views. No other photo may have the name.
    public func setName(of ino: UInt64, _ name: [UInt8]?) throws(FileError) {
        statements.setName.bind(1, ino)
        statements.setName.bind(2, name)
        try statements.setName.run()
    }

    /// The photo of that name in views.
    public func photo(inViewsAs name: [UInt8]) throws(FileError) -> PhotoRow? {
        statements.named.bind(1, name)
        return try statements.named.one { PhotoRow($0) }
    }

    /// The inode of the photo of that name in views.
    public func holder(ofViewName name: [UInt8]) throws(FileError) -> UInt64? {
        statements.holder.bind(1, name)
        return try statements.holder.one { $0.count(0) }
    }

    /// The names in views that have this prefix, and their photos, at most `limit`. The prefix must not be empty or end
    /// in 0xFF.
    public func names(
        beginning prefix: [UInt8], limit: Int
    ) throws(FileError) -> [[UInt8]: UInt64] {
        statements.beginning.bind(1, prefix)
        statements.beginning.bind(2, DentryTable.end(ofPrefix: prefix))
        statements.beginning.bind(3, Int64(limit))
        var names: [[UInt8]: UInt64] = [:]
        try statements.beginning.each {
            names[$0.name(0)] = $0.count(1)
            return true
        }
        return names
    }

    /// The photos of a view after one, in the order of their days or else of their numbers, until `visit` returns
    /// false.
    ///
    /// - Parameter last: day and number of the last photo before these; of the day only the views by days take account.
    public func eachPhoto(
        in key: ViewKey, after last: (day: Int64, ino: UInt64), _ visit: (ViewedPhoto) -> Bool
    ) throws(FileError) {
        guard case .days(let days) = key else {
            _ = try each(statements.of(key), in: key, after: last.ino, visit)
            return
        }
        // Day by day: SQLite would begin a listing of several at the first photo of the day, not behind the last one.
        var next = days.contains(last.day) ? last.day : try dayWithPhotos(after: days.lowerBound - 1)
        var ino = last.ino
        while let day = next, day <= days.upperBound {
            guard try each(statements.ofDay, in: .days(day...day), after: ino, visit) else { return }
            (next, ino) = (try dayWithPhotos(after: day), 0)
        }
    }

    /// Lists the photos of a view that has one order, that of their numbers. Returns false if `visit` did.
    private func each(
        _ statement: Statement, in key: ViewKey, after ino: UInt64, _ visit: (ViewedPhoto) -> Bool
    ) throws(FileError) -> Bool {
        switch key {
        case .days(let days): statement.bind(1, days.lowerBound)
        case .camera(let camera): statement.bind(1, camera)
        case .kind(let number), .rating(let number): statement.bind(1, number)
        }
        statement.bind(2, ino)
        var (last, isWanted) = (ino, true)
        try statement.each { row in
            let photo = viewed(row)
            row.require(photo.ino > last)
            last = photo.ino
            isWanted = visit(photo)
            return isWanted
        }
        return isWanted
    }

    private func viewed(_ row: Statement) -> ViewedPhoto {
        ViewedPhoto(ino: row.count(0), name: row.name(1), day: row.integer(2, in: InodeRow.days))
    }

    /// The photos that arrived last, the newest first.
    public func newestArrivals(limit: Int) throws(FileError) -> [ViewedPhoto] {
        statements.newest.bind(1, Int64(limit))
        return try statements.newest.all { viewed($0) }
    }

    /// Whether a photo is in `newestArrivals`. Reads an index alone.
    public func isAmongNewestArrivals(_ photo: PhotoRow, limit: Int) throws(FileError) -> Bool {
        statements.newer.bind(1, photo.arrived)
        statements.newer.bind(2, photo.ino)
        statements.newer.bind(3, Int64(limit))
        return try statements.newer.one { $0.integer(0) < Int64(limit) } ?? false
    }

    /// The first day after one that has photos.
    public func dayWithPhotos(after day: Int64) throws(FileError) -> Int64? {
        statements.nextDay.bind(1, day)
        return try statements.nextDay.one {
            let next = $0.integer(0, in: InodeRow.days)
            $0.require(next > day)
            return next
        }
    }

    /// The first camera after one, in the order of bytes, that has photos.
    public func camera(after name: [UInt8]) throws(FileError) -> [UInt8]? {
        statements.nextCamera.bind(1, name)
        return try statements.nextCamera.one {
            let next = $0.name(0)
            $0.require(name.lexicographicallyPrecedes(next))
            return next
        }
    }
}
