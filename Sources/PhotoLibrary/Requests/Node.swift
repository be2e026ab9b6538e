/// The meaning of an inode number, decoded once for a request.
enum Node: Equatable {
    /// An inode that the tables have.
    case real(UInt64)
    /// A directory of versions.
    case version(VersionNode)
    /// A directory of views.
    case view(ViewNode)
    /// A directory or a picture below `.thumbs` and `.sh_thumbnails`; for the meaning see `VirtualNodes`.
    case thumbnail(UInt64)

    init(_ number: UInt64) {
        if number >> 60 == 0 {
            self = .real(number)
        } else if let node = VersionNode(number) {
            self = .version(node)
        } else if let node = ViewNode(number) {
            self = .view(node)
        } else {
            self = .thumbnail(number)
        }
    }

    var isReal: Bool { if case .real = self { true } else { false } }
}
