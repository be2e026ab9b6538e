package import HostFiles

/// The results of `import --takeout` besides added photos.
package struct TakeoutReport {
    /// Names of photos in albums that were added, Favourites included.
    package internal(set) var memberships = 0
    /// The albums of these names.
    package internal(set) var albums: Set<String> = []
    /// Names that were added to Favourites.
    package internal(set) var favourites = 0
    /// XMP sidecars that were written from the export's metadata.
    package internal(set) var written = 0
    /// Edited photos, which became the present bytes of their originals.
    package internal(set) var edited: [HostPath] = []
    /// In the service's trash, and left out.
    package internal(set) var trashed: [HostPath] = []
    /// In the trash of the space, and left there.
    package internal(set) var inTrash: [HostPath] = []
    /// Photos that the export says nothing about, and metadata of no photo.
    package internal(set) var unmatched: [PathNote] = []
}
