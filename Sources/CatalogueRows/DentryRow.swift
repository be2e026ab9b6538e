/// A name in a directory.
public struct DentryRow: Sendable, Equatable {
    public var parent: UInt64
    public var id: UInt64
    public var name: [UInt8]
    public var ino: UInt64
    /// Whether the name puts a photo of moments into an album.
    public var isMember: Bool
    /// Whether it is a hard link that was made of another name of a photo in albums.
    public var isLink: Bool

    public init(
        parent: UInt64, id: UInt64, name: [UInt8], ino: UInt64, isMember: Bool = false, isLink: Bool = false
    ) {
        self.parent = parent
        self.id = id
        self.name = name
        self.ino = ino
        self.isMember = isMember
        self.isLink = isLink
    }

    /// - Parameter member: the value in tables and records.
    public init(parent: UInt64, id: UInt64, name: [UInt8], ino: UInt64, member: Int64) {
        let isLink = member == Self.link
        self.init(
            parent: parent, id: id, name: name, ino: ino, isMember: member != 0 && !isLink, isLink: isLink)
    }

    /// The value in tables and records; see the format specification, table `dentry`.
    public var member: Int64 { isMember ? 1 : isLink ? Self.link : 0 }
    private static let link: Int64 = 2

    public func isOf(_ parent: UInt64, _ name: [UInt8]) -> Bool { self.parent == parent && self.name == name }
}
