package import CatalogueRows

/// A kind of file that a program makes in a directory.
package enum NewFile: Sendable, CaseIterable {
    case directory, regularFile
    /// A symbolic link, FIFO, socket or device node.
    case special
    /// A further name of a file, by link(2).
    case hardLink
}

/// Whether a file of that kind and name may be made in an area; if not, EPERM. A name in moments is a photo's only one
/// there, so no link is possible.
package func mayMake(_ file: NewFile, named name: [UInt8], in area: Area) -> Bool {
    switch (area, file) {
    case (.root, .directory): isTrashName(name)
    case (.moments, .directory): dayNumber(named: name) != nil
    case (.day, .regularFile): true
    case (.album, _): true
    case (.root, _), (.moments, _), (.day, _): false
    }
}
