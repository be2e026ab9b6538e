package import CatalogueRows
package import FileRequests
import LinuxIO
package import VaultCatalogue
package import VaultFormat

/// A copy of the metadata of a file, directory, link or node, stored outside the catalogue, so that a salvage finds the
/// inode without it. See the format specification, *Identity records*.
package struct IdentityRecord: Equatable {
    /// As in the table, except that `nlink` is 0, and `size` of a directory too: both follow from the names.
    package var row: InodeRow
    package var names: [RecordedName] = []
    package var photo: PhotoRow?
    /// Set for a photo that was moved from moments to the trash: the time, and its name in moments.
    package var trashed: TrashRow?
    /// The names in albums that the photo and its copies had before that. `id` is 0.
    package var keptNames: [DentryRow] = []
    package var target: [UInt8] = []
    /// The runs of the bytes; nil if there are more than fit.
    package var runs: [ExtentRun]? = []
    /// Only as many as fit.
    package var attributes: [ExtendedAttribute] = []

    package init(row: InodeRow) { self.row = row }
}

/// Limits on the parts of a record.
package struct RecordLimits {
    /// Bytes of names, and of kept names.
    var nameBytes: Int
    package var runs: Int

    package static let ofRecords = RecordLimits(nameBytes: 20 << 10, runs: 2048)
    /// For uses that write no record.
    package static let none = RecordLimits(nameBytes: 1 << 40, runs: 1 << 40)
}

/// A name and the inode of its directory: renaming the directory does not change this.
package struct RecordedName: Equatable {
    package var parent: UInt64
    package var name: [UInt8]
    package var isMember: Bool
    package var isLink = false
    /// When it was moved to the trash; nil if it is not there.
    package var since: Int64?

    package init(
        parent: UInt64, name: [UInt8], isMember: Bool, isLink: Bool = false, since: Int64? = nil
    ) {
        (self.parent, self.name, self.since) = (parent, name, since)
        (self.isMember, self.isLink) = (isMember, isLink)
    }
}

/// Proof, in a record, that commits of other records were published.
package struct RecordedHistory: Equatable {
    /// The mount and the commit of the newest records that existed when the mount of this one began.
    package var before: (epoch: UInt64, generation: UInt64)
    /// Generation of the newest durable root.
    package var durable: UInt64

    package static func == (one: Self, other: Self) -> Bool {
        one.before == other.before && one.durable == other.durable
    }
}

/// The payload of an extent of role 3.
package enum Recorded: Equatable {
    case inode(IdentityRecord)
    /// A bitmap of retired numbers in one block; see `RetiredIDs`.
    case retired(block: UInt64, bits: [UInt8])

    /// A new version of records goes with a new version of the catalogue's tables.
    private static let version: UInt8 = 1
    private static let releaseOffset = 4
    private static let kindInode: UInt8 = 1
    private static let kindRetired: UInt8 = 2

    package func encoded(_ history: RecordedHistory) -> [UInt8] {
        var writer = RecordWriter()
        writer.number(Self.version)
        switch self {
        case .inode: writer.number(Self.kindInode)
        case .retired: writer.number(Self.kindRetired)
        }
        writer.number(UInt16(0))
        writer.number(UInt32(0))
        writer.number(history.before.epoch)
        writer.number(history.before.generation)
        writer.number(history.durable)
        switch self {
        case .inode(let record): record.encode(into: &writer)
        case .retired(let block, let bits):
            writer.number(block)
            writer.text(bits)
        }
        return writer.bytes
    }

    /// The version of a record that a later release wrote; nil for a record of a known version.
    package static func newerVersion(_ bytes: UnsafeRawBufferPointer) -> NewerVersion? {
        guard bytes.count >= releaseOffset + Release.storedBytes, unsafe bytes[0] > version else {
            return nil
        }
        let release = unsafe Release(decoding: bytes.slice(releaseOffset, Release.storedBytes))
        return unsafe NewerVersion(.record, version: Int(bytes[0]), release: release)
    }

    /// Returns nil for bytes in no format that this version knows.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> (
        history: RecordedHistory, content: Recorded
    )? {
        var reader = unsafe RecordReader(bytes)
        guard reader.number(UInt8.self) == version, let kind = reader.number(UInt8.self),
            reader.number(UInt16.self) != nil, reader.number(UInt32.self) != nil,
            let epoch = reader.number(UInt64.self), let generation = reader.number(UInt64.self),
            let durable = reader.number(UInt64.self)
        else { return nil }
        let history = RecordedHistory(before: (epoch, generation), durable: durable)
        switch kind {
        case kindInode: return IdentityRecord(&reader).map { (history, .inode($0)) }
        case kindRetired:
            guard let block = reader.number(UInt64.self), let bits = reader.text(),
                block < 2 * RetiredIDs.contents, bits.count == RetiredIDs.bitmapBytes
            else { return nil }
            return (history, .retired(block: block, bits: bits))
        default: return nil
        }
    }
}

extension IdentityRecord {
    fileprivate func encode(into writer: inout RecordWriter) {
        encodeRow(into: &writer)
        writer.number(UInt8(photo == nil ? 0 : 1))
        if let photo { Self.encode(photo, into: &writer) }
        writer.number(UInt8(trashed == nil ? 0 : 1))
        if let trashed {
            writer.number(trashed.since)
            writer.text(trashed.name)
        }
        writer.text(target)
        writer.number(UInt32(names.count))
        for name in names {
            writer.number(name.parent)
            writer.number(UInt8(name.isMember ? 1 : name.isLink ? 2 : 0))
            writer.number(name.since ?? Int64.min)
            writer.text(name.name)
        }
        writer.number(UInt32(keptNames.count))
        for name in keptNames {
            writer.number(name.parent)
            writer.number(name.ino)
            writer.number(UInt8(name.member))
            writer.text(name.name)
        }
        writer.number(UInt8(runs == nil ? 0 : 1))
        writer.number(UInt32(runs?.count ?? 0))
        for run in runs ?? [] {
            for number in [run.offset, run.length, run.sector, run.generation, run.epoch] {
                writer.number(number)
            }
        }
        encodeAttributes(into: &writer)
    }

    private func encodeRow(into writer: inout RecordWriter) {
        writer.number(row.ino)
        for number in [row.mode, row.uid, row.gid] { writer.number(number) }
        for number in [row.rdev, row.size, row.allocated, row.content, row.revision] { writer.number(number) }
        writer.number(row.day)
        writer.number(row.flags.rawValue)
        for time in [row.accessed, row.modified, row.changed] {
            writer.number(time.seconds)
            writer.number(time.nanoseconds)
        }
    }

    private static func encode(_ photo: PhotoRow, into writer: inout RecordWriter) {
        writer.number(photo.day)
        writer.number(UInt8((photo.isPinned ? 1 : 0) + (photo.isDatedByMtime ? 2 : 0)))
        for number in [
            photo.captured, photo.capturedNanoseconds, photo.media, photo.width, photo.height,
            photo.orientation,
        ] { writer.number(number) }
        writer.number(photo.fingerprint)
        writer.text(photo.source)
        writer.number(UInt8(photo.former == nil ? 0 : 1))
        if let former = photo.former { writer.text(former) }
        writer.text(photo.camera ?? [])
        for number in [photo.kind, photo.rating] { writer.number(number) }
        writer.number(photo.arrived)
        writer.text(photo.group ?? [])
    }

    /// Encodes as many as fit into one chunk behind all that precedes them.
    private func encodeAttributes(into writer: inout RecordWriter) {
        var bytes = writer.bytes.count + 4
        let fitting = attributes.prefix {
            bytes += $0.name.count + $0.value.count + 8
            return bytes <= Geometry.chunkBytes
        }
        writer.number(UInt32(fitting.count))
        for attribute in fitting {
            writer.text(attribute.name)
            writer.text(attribute.value)
        }
    }
}

extension IdentityRecord {
    fileprivate init?(_ reader: inout RecordReader) {
        guard let row = Self.row(&reader), let hasPhoto = reader.number(UInt8.self) else { return nil }
        self.init(row: row)
        if hasPhoto != 0 {
            guard let photo = Self.photo(of: row.ino, &reader) else { return nil }
            self.photo = photo
        }
        guard let isTrashed = reader.number(UInt8.self) else { return nil }
        if isTrashed != 0 {
            guard let since = reader.number(Int64.self), let name = reader.text() else { return nil }
            trashed = TrashRow(ino: row.ino, id: 0, since: since, name: name)
        }
        guard let target = reader.text(), let names = reader.list(Self.name),
            let kept = reader.list(Self.keptName), let hasRuns = reader.number(UInt8.self),
            let runs = reader.list(Self.run), let attributes = reader.list(Self.attribute)
        else { return nil }
        (self.target, self.names, keptNames, self.attributes) = (target, names, kept, attributes)
        self.runs = hasRuns != 0 ? runs : nil
        guard isPlausible else { return nil }
    }

    /// Whether all values are possible in a file: callers calculate with the numbers and create files with the names.
    private var isPlausible: Bool {
        let inMoments = trashed.map { [$0.name] } ?? []
        let former = [photo?.former, photo?.camera].compactMap(\.self)
        let times = [row.accessed, row.modified, row.changed]
        return row.size <= UInt64(Int64.max) && row.isPlausible && (photo?.isPlausible ?? true)
            && [row.ino, row.allocated, row.content, row.revision, photo?.arrived ?? 0]
                .allSatisfy { $0 < Geometry.numberMax }
            && times.allSatisfy { $0.nanoseconds < 1_000_000_000 }
            && (names.map(\.name) + keptNames.map(\.name) + inMoments + former).allSatisfy(isEntryName)
            && (names.map(\.parent) + keptNames.flatMap { [$0.parent, $0.ino] })
                .allSatisfy { $0 < Geometry.numberMax }
            && (runs ?? []).allSatisfy { $0.isPlausible }
            && zip(runs ?? [], (runs ?? []).dropFirst()).allSatisfy { $0.end <= $1.offset }
    }

    private static func row(_ reader: inout RecordReader) -> InodeRow? {
        func time() -> Timestamp? {
            guard let seconds = reader.number(Int64.self), let nanoseconds = reader.number(UInt32.self)
            else { return nil }
            return Timestamp(seconds: seconds, nanoseconds: nanoseconds)
        }
        guard let ino = reader.number(UInt64.self), let mode = reader.number(UInt32.self),
            let uid = reader.number(UInt32.self), let gid = reader.number(UInt32.self),
            let rdev = reader.number(UInt64.self), let size = reader.number(UInt64.self),
            let allocated = reader.number(UInt64.self), let content = reader.number(UInt64.self),
            let revision = reader.number(UInt64.self), let day = reader.number(Int64.self),
            let flags = reader.number(Int64.self), let accessed = time(), let modified = time(),
            let changed = time()
        else { return nil }
        var row = InodeRow(ino: ino, mode: mode, uid: uid, gid: gid, now: changed)
        (row.rdev, row.size, row.allocated) = (rdev, size, allocated)
        (row.content, row.revision, row.day) = (content, revision, day)
        row.flags = InodeFlags(rawValue: flags)
        (row.accessed, row.modified) = (accessed, modified)
        return row
    }

    private static func photo(of ino: UInt64, _ reader: inout RecordReader) -> PhotoRow? {
        guard let day = reader.number(Int64.self), let bits = reader.number(UInt8.self),
            let captured = reader.number(Int64.self), let nanoseconds = reader.number(Int64.self),
            let media = reader.number(Int64.self), let width = reader.number(Int64.self),
            let height = reader.number(Int64.self), let orientation = reader.number(Int64.self),
            let fingerprint = reader.number(UInt64.self), let source = reader.text(),
            let hasFormer = reader.number(UInt8.self)
        else { return nil }
        var photo = PhotoRow(ino: ino, day: day)
        (photo.isPinned, photo.isDatedByMtime) = (bits & 1 != 0, bits & 2 != 0)
        (photo.captured, photo.capturedNanoseconds) = (captured, nanoseconds)
        (photo.media, photo.width, photo.height, photo.orientation) = (media, width, height, orientation)
        (photo.fingerprint, photo.source) = (fingerprint, source)
        if hasFormer != 0 {
            guard let former = reader.text() else { return nil }
            photo.former = former
        }
        guard let camera = reader.text(), let kind = reader.number(Int64.self),
            let rating = reader.number(Int64.self), let arrived = reader.number(UInt64.self),
            let group = reader.text()
        else { return nil }
        photo.group = group.isEmpty ? nil : group
        photo.camera = camera.isEmpty ? nil : camera
        (photo.kind, photo.rating, photo.arrived) = (kind, rating, arrived)
        return photo
    }

    private static func name(_ reader: inout RecordReader) -> RecordedName? {
        guard let parent = reader.number(UInt64.self), let member = reader.number(UInt8.self),
            let since = reader.number(Int64.self), let name = reader.text()
        else { return nil }
        return RecordedName(
            parent: parent, name: name, isMember: member != 0 && member != 2, isLink: member == 2,
            since: since == Int64.min ? nil : since)
    }

    private static func keptName(_ reader: inout RecordReader) -> DentryRow? {
        guard let parent = reader.number(UInt64.self), let ino = reader.number(UInt64.self),
            let member = reader.number(UInt8.self), let name = reader.text()
        else { return nil }
        return DentryRow(parent: parent, id: 0, name: name, ino: ino, member: Int64(member))
    }

    private static func run(_ reader: inout RecordReader) -> ExtentRun? {
        guard let offset = reader.number(UInt64.self), let length = reader.number(UInt64.self),
            let sector = reader.number(UInt64.self), let generation = reader.number(UInt64.self),
            let epoch = reader.number(UInt64.self)
        else { return nil }
        return ExtentRun(
            offset: offset, length: length, sector: sector, generation: generation, epoch: epoch)
    }

    private static func attribute(_ reader: inout RecordReader) -> ExtendedAttribute? {
        guard let name = reader.text(), let value = reader.text() else { return nil }
        return ExtendedAttribute(name: name, value: value)
    }
}
