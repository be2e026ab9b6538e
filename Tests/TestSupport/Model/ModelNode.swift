/// A file, directory or link of a `ModelTree`.
final class ModelNode {
    enum Kind: Equatable {
        case file, directory
        case link(String)
        case fifo
    }

    /// One name of a node.
    struct Name {
        let directory: ModelNode
        let name: String
        /// Names are numbered in the order in which they came.
        let id: Int
        /// Whether it was made from `moments`: such links follow the photo when it is saved anew.
        let isMember: Bool
        /// Whether it was made as a hard link of a photo's name in an album.
        var isLink = false

        func isOf(_ directory: ModelNode, _ name: String) -> Bool {
            self.directory === directory && self.name == name
        }
    }

    /// The facts of a photo.
    struct Photo {
        var day: String
        /// Whether the user chose its day.
        var isPinned = false
        /// Its name in its day before an editor gave it a backup's name.
        var former: String?
        /// Whether its name in moments was given there.
        var isNamed = false
    }

    /// A file that is no longer a photo, because its bytes changed: its facts and name as a photo.
    struct Former {
        var photo: Photo
        let directory: ModelNode
        let name: String
        /// The number of the mount in which that was.
        let session: Int
    }

    /// A photo that was taken out of moments: its name there, and the names in albums that it and its copies had.
    struct Trashed {
        let name: String
        var names: [(node: ModelNode, name: Name)]
    }

    /// Nodes are numbered in the order in which they were made.
    let number: Int
    let kind: Kind
    /// The mount it was made in.
    let session: Int
    var mode: UInt32
    var bytes: [UInt8] = []
    /// Seconds since 1970; nil: the time of the last write.
    var modified: Int64?
    var attributes: [String: [UInt8]] = [:]
    /// In the order of their numbers.
    var names: [Name] = []
    /// Of a directory.
    var entries: [String: ModelNode] = [:]
    /// Of a day in moments: its date.
    var day: String?
    /// Of a day: whether a program asked for it, so that it is listed even when empty.
    var isMadeByHand = false
    var photo: Photo?
    /// The photo that this file is a copy of.
    weak var original: ModelNode?
    /// Of a photo, by their numbers.
    var copies: [ModelNode] = []
    var trashed: Trashed?
    var former: Former?
    /// Whether it has versions of a photo that it is or was.
    var hasVersions = false
    /// The bytes of the version that is called the original; nil if none is.
    var originalBytes: [UInt8]?
    var isGone = false

    init(_ kind: Kind, number: Int, session: Int, mode: UInt32) {
        (self.kind, self.number, self.session, self.mode) = (kind, number, session, mode)
    }

    var isDirectory: Bool { kind == .directory }
    var isFile: Bool { kind == .file }
    var isPhoto: Bool { photo != nil }
    /// A day that is there, because somebody may be about to remove it, but not listed.
    var isUnlistedDay: Bool { day != nil && entries.isEmpty && !isMadeByHand }
    /// Of a directory that has not been removed, and is not the top: where it lies.
    var parent: ModelNode? { names.first?.directory }
    /// Its names in days, of which there are several only where one is a backup's.
    var moments: [Name] { names.filter { $0.directory.day != nil } }
    /// Its name in moments.
    var moment: Name? { moments.first { !isModelBackup($0.name) } ?? moments.first }
    /// Its entries, in the order of their arrival.
    var listed: [(name: Name, node: ModelNode)] {
        entries.flatMap { name, node in
            node.names.filter { $0.isOf(self, name) }.map { ($0, node) }
        }.sorted { $0.0.id < $1.0.id }
    }

    /// The day that the bytes tell of, where they are a picture of `jpeg(_:more:size:)`.
    var takenDay: String? {
        guard bytes.starts(with: [0xFF, 0xD8, 0xFF, 0xE1]), bytes.count > 76 else { return nil }
        return String(decoding: bytes[56..<66], as: UTF8.self).split(separator: ":").joined(separator: "-")
    }
}

/// Whether a file of this name is some program's working file.
func isModelWorkingName(_ name: String) -> Bool {
    name.hasPrefix(".") || ["~", ".part", ".tmp", ".crdownload"].contains { name.hasSuffix($0) }
}

/// `NAME (2).jpg`. Names of the model are too short to be cut; a longer suffix than extensions have is none.
func modelNumbered(_ name: String, _ number: Int) -> String {
    guard let dot = name.lastIndex(of: "."), dot > name.startIndex, name[dot...].utf8.count <= 16 else {
        return "\(name) (\(number))"
    }
    return "\(name[..<dot]) (\(number))\(name[dot...])"
}

/// Whether `shown` is `name`, or that numbered.
func isModelNumbered(_ shown: String, of name: String) -> Bool {
    shown == name || (2..<200).contains { modelNumbered(name, $0) == shown }
}

/// The names that a backup of NAME may have.
func modelBackups(of name: String) -> [String] {
    [name + "~", name + "_original", name + ".bak", name + ".orig", name + ".t", name + ".~1~"]
}

/// Whether it is called as a backup of something.
func isModelBackup(_ name: String) -> Bool {
    ["~", "_original", ".bak", ".orig", ".t"].contains {
        name.hasSuffix($0) && name.utf8.count > $0.utf8.count
    }
}

/// Whether a directory of that name may be made in moments.
func isModelDay(_ name: String) -> Bool {
    let digits = name.split(separator: "-", omittingEmptySubsequences: false)
    guard digits.map(\.count) == [4, 2, 2], let year = Int(digits[0]), let month = Int(digits[1]),
        let day = Int(digits[2]), year > 0, (1...12).contains(month)
    else { return false }
    let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
    let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    return (1...lengths[month - 1]).contains(day)
}
