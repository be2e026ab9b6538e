import PhotoImaging

@testable import TakeoutRules

/// A file of an export by somebody else: JSON, a table, and names.
func fuzzTakeout(_ bytes: UnsafeRawBufferPointer) {
    let input = Array(bytes)
    _ = GoogleFile(input)
    _ = AppleTable(input)
    _ = ArchiveEntry.head(Array(input.prefix(ArchiveEntry.headBytes)))
    _ = ArchiveEntry(name: input, byteCount: 0, modified: 0, status: .ok).path
    _ = CentralDirectory(MemoryByteSource(input))?.statuses()
    let names = String(decoding: input, as: UTF8.self).split(separator: "\n").map(String.init)
    let index = SidecarIndex(names.filter { SidecarIndex.isSidecar($0) })
    for name in names {
        _ = index.match(name)
        _ = EditedName.isVersion(name)
        _ = EditedName.appleOriginal(name)
        _ = FolderKind(name, title: names.first)
        _ = uncutName(name, title: names.last ?? "")
        _ = sidecarText(date: nil, offset: 0, place: nil, description: name)
    }
}
