import VaultCrypto

@testable import FileRequests
@testable import LinuxIO
@testable import PhotoImaging
@testable import PhotoLibrary
@testable import Recovery

/// Texts and packets that others write: `.thumbnailer` files, mountinfo, names below `.thumbs`, cursors of a check, and
/// messages between the program and its workers.
func fuzzTexts(_ bytes: UnsafeRawBufferPointer) {
    let text = String(decoding: bytes, as: UTF8.self)
    if let entry = ThumbnailerEntry(text) {
        let fields = ThumbnailerEntry.Fields(input: "/in", uri: "file:///in", output: "/out", side: 256)
        let line = entry.commandLine(fields)
        precondition(line.count == entry.words.count && !entry.words[0].isEmpty)
    }
    for line in text.split(separator: "\n") {
        if let entry = MountEntry(line: line) {
            precondition(entry.directory.utf8.count <= 3 * line.utf8.count)
        }
    }
    if let cursor = CheckCursor(text) { precondition(CheckCursor(cursor.description) == cursor) }
    _ = ThumbnailKind(named: Array(bytes.prefix(255)))
    let name = Array(bytes.prefix(255))
    _ = (numberedName(name, 17, bytesMax: 255), repositoryDigests(of: name), md5(Array(bytes)))
    if let composition = CompositionRequest(bytes) {
        let again = composition.bytes
        precondition(again.withUnsafeBytes { CompositionRequest($0)?.tiles.count } == composition.tiles.count)
    }
    let words = stride(from: 0, to: bytes.count / 8 * 8, by: 8).map {
        bytes.loadUnaligned(fromByteOffset: $0, as: UInt64.self)
    }
    if let request = WorkerRequest(words: words) { precondition(request.words == words) }
}
