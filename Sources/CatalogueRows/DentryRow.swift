/// A name in a directory.
public struct DentryRow: Sendable, Equatable {
    public var parent: UInt64
    public var id: UInt64
    public var name: [UInt8]
    public var ino: UInt64
    /// Whether the name puts a photo of moments into an album.
    public var isMember: Bool

    public init(
        parent: UInt64, id: UInt64, name: [UInt8], ino: UInt64, isMember: Bool = false
    ) {
        self.parent = parent
        self.id = id
        self.name = name
        self.ino = ino
        self.isMember = isMember
    }

    public func isOf(_ parent: UInt64, _ name: [UInt8]) -> Bool { self.parent == parent && self.name == name }
}
