import Foundation
import PhotoImaging
import TestFixtures

/// Writes the tests' generated pictures, as seeds, into the directory that `OBSCURA_FUZZ_SEEDS` names.
func seedMetadata() {
    guard let directory = ProcessInfo.processInfo.environment["OBSCURA_FUZZ_SEEDS"] else { return }
    for sample in Samples.all {
        let path = "\(directory)/\(sample.name)"
        precondition(FileManager.default.createFile(atPath: path, contents: Data(sample.bytes)), path)
    }
}

/// Everything PhotoImaging does with one untrusted file, within its bounds.
func fuzzMetadata(_ input: UnsafeRawBufferPointer) {
    checkMetadata(Array(input))
}

/// What else is read of a picture before its pixels: the preview that is shown at once, code points of colours, and the
/// geometry of a HEIF's items.
private func checkPictureReaders(_ bytes: [UInt8]) {
    let source = CountingSource(bytes)
    if let preview = embeddedPreview(in: source) {
        precondition(
            !preview.isEmpty && preview.upperBound <= UInt64(bytes.count), "a preview outside the file")
    }
    if let points = pngCodePoints(source) {
        precondition(points.count == 4 && points.allSatisfy((0...255).contains), "no code points")
    }
    _ = HEIFGeometry(source).item(1)
    precondition(source.reads <= 5 * 84, "too many reads of a picture")
}

/// Checks what the readers say of a file, and how much of it they read.
func checkMetadata(_ bytes: [UInt8]) {
    let source = CountingSource(bytes)
    let type = identifyMedia(source)
    precondition(source.reads <= 20, "too many reads to know the type")
    let facts = readFacts(source)
    precondition(source.reads <= 20 + 64 && source.bytesRead <= 1024 * 1024 + 128 * 1024, "too many reads")
    precondition(type == facts?.type, "two opinions of the type")
    let sidecar = readSidecar(MemoryByteSource(bytes))
    checkPictureReaders(bytes)
    guard let facts else { return }
    precondition((1...8).contains(facts.orientation), "no orientation")
    precondition(facts.width >= 0 && facts.height >= 0, "a size below nothing")
    for preview in [facts.embeddedPreview, facts.largestPreview].compactMap(\.self) {
        precondition(preview.upperBound <= UInt64(bytes.count), "a preview outside the file")
    }
    for sidecar in [sidecar, nil] {
        let answer = captureDate(
            facts, fileName: Array(bytes.prefix(64)), modified: testModified, sidecar: sidecar, now: testNow,
            localOffset: { _ in 5 * 3600 })
        precondition((1826...2027).contains(answer.time.year), "a day that is none of moments")
    }
}
