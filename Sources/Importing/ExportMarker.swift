package import FileRequests
package import HostFiles

/// The file at the top of an export that is not complete.
package enum ExportMarker {
    /// Nothing at the top of a library can have this name.
    package static let name: Name = ".obscura-export-unfinished"

    /// Whether a directory has the marker.
    package static func isIn(_ directory: HostPath) -> Bool {
        (try? directory.appending(name).status())?.isRegular == true
    }
}
