package import HostFiles

extension SourceFile: ImportSource {
    /// The file under its own name.
    package var importFile: ImportFile<SourceFile> {
        ImportFile(name: path.name, details: details, source: self)
    }
}
