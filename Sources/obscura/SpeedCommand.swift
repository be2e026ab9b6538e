import Glibc
import LinuxIO
import PhotoImaging
import Synchronization
import VaultCrypto

/// Time for each measurement; long enough for a processor to reach its full speed.
private let measuringNanoseconds: Int64 = 500_000_000

/// Prints the speed of this machine's processor; no disk is involved.
func runSpeed(_: Arguments) throws(Failure) {
    let chunk = SpeedChunk()
    say(speedLine("Sealing", chunk.seal))
    say(speedLine("Opening", chunk.open))
    say(speedLine("Hashing", chunk.digest))
    say(labelled("Key derivation", try derivationText()))
    say(labelled("Thumbnails", thumbnailText() ?? "none: obscura-worker cannot be started"))
}

private func labelled(_ label: String, _ text: String) -> String {
    label + String(repeating: " ", count: 16 - label.utf8.count) + text
}

private func speedLine(_ label: String, _ work: @escaping @Sendable () -> Void) -> String {
    let one = bytesPerSecond(threads: 1, work)
    let all = bytesPerSecond(threads: coreCount, work)
    return labelled(
        label, "\(sizeText(one))/s on one core, \(sizeText(all))/s on \(counted(coreCount, "core"))")
}

/// The bytes of chunks that this many threads process together in a second.
private func bytesPerSecond(threads: Int, _ work: @escaping @Sendable () -> Void) -> UInt64 {
    let begun = MonotonicClock.nanoseconds
    let count = Counter()
    onAllCores(threads) { _ in
        while MonotonicClock.nanoseconds - begun < measuringNanoseconds {
            work()
            count.add()
        }
    }
    let seconds = Double(MonotonicClock.nanoseconds - begun) / 1e9
    return UInt64(Double(count.value) * Double(SpeedChunk.byteCount) / seconds)
}

private final class Counter: Sendable {
    private let count = Atomic<UInt64>(0)
    var value: UInt64 { count.load(ordering: .relaxed) }
    func add() { count.wrappingAdd(1, ordering: .relaxed) }
}

/// A chunk of a photo, as large as those of a vault, and the operations on it.
private final class SpeedChunk: Sendable {
    static let byteCount = 128 << 10
    private let key = SealingKey(SecretBytes.random(count: 32))
    private let plain = [UInt8](repeating: 1, count: byteCount)
    private let nonce = [UInt8](repeating: 2, count: 24)
    private let sealed: [UInt8]
    private let tag: [UInt8]

    init() {
        var (sealed, tag) = ([UInt8](repeating: 0, count: Self.byteCount), [UInt8](repeating: 0, count: 16))
        Self.seal(key, plain, nonce, &sealed, &tag)
        (self.sealed, self.tag) = (sealed, tag)
    }

    private static func seal(
        _ key: SealingKey, _ plain: [UInt8], _ nonce: [UInt8], _ sealed: inout [UInt8], _ tag: inout [UInt8]
    ) {
        plain.withUnsafeBytes { plain in
            nonce.withUnsafeBytes { nonce in
                sealed.withUnsafeMutableBytes { sealed in
                    tag.withUnsafeMutableBytes { tag in
                        key.seal(
                            plain, into: sealed, tag: tag, nonce: nonce,
                            associated: UnsafeRawBufferPointer(rebasing: nonce[..<8]))
                    }
                }
            }
        }
    }

    func seal() {
        withUnsafeTemporaryAllocation(byteCount: Self.byteCount + 16, alignment: 64) { room in
            plain.withUnsafeBytes { plain in
                nonce.withUnsafeBytes { nonce in
                    key.seal(
                        plain, into: UnsafeMutableRawBufferPointer(rebasing: room[..<Self.byteCount]),
                        tag: UnsafeMutableRawBufferPointer(rebasing: room[Self.byteCount...]), nonce: nonce,
                        associated: UnsafeRawBufferPointer(rebasing: nonce[..<8]))
                }
            }
        }
    }

    func open() {
        withUnsafeTemporaryAllocation(byteCount: Self.byteCount, alignment: 64) { room in
            sealed.withUnsafeBytes { sealed in
                tag.withUnsafeBytes { tag in
                    nonce.withUnsafeBytes { nonce in
                        let isOpen = key.open(
                            sealed, into: room, tag: tag, nonce: nonce,
                            associated: UnsafeRawBufferPointer(rebasing: nonce[..<8]))
                        precondition(isOpen, "what was sealed opens")
                    }
                }
            }
        }
    }

    func digest() {
        var out = [UInt8](repeating: 0, count: 32)
        out.withUnsafeMutableBytes { out in plain.withUnsafeBytes { hash([$0], into: out) } }
    }
}

/// Derives the key of one password with the parameters of a new vault.
private func derivationText() throws(Failure) -> String {
    let parameters = KDFParameters.standard
    let password = Array("speed".utf8).withUnsafeBytes { SecretBytes(copying: $0) }
    let begun = MonotonicClock.milliseconds
    let salt = [UInt8](repeating: 3, count: 16)
    let isDone = salt.withUnsafeBytes {
        stretch(password: password, salt: $0, parameters: parameters, count: 32) != nil
    }
    guard isDone else { throw Failure("key derivation", "allocating its memory", Errno(ENOMEM)) }
    let milliseconds = MonotonicClock.milliseconds - begun
    return "\(milliseconds) ms for one password with \(sizeText(parameters.memoryBytes))"
}

// MARK: Thumbnails

/// Makes thumbnails of a picture until the time is over. Nil if none can be made.
private func thumbnailText() -> String? {
    guard let path = programBeside("obscura-worker") else { return nil }
    let workers = ThumbnailWorkers(executable: path, count: coreCount)
    defer { workers.shutDown() }
    let box = PictureSize(width: SpeedPicture.width, height: SpeedPicture.height)
    let raw = MemoryByteSource(SpeedPicture.tiff)
    guard let picture = try? workers.makeThumbnail(of: raw, type: .tiff, size: box) else { return nil }
    let source = MemoryByteSource(picture)
    let made = Counter()
    let begun = MonotonicClock.nanoseconds
    onAllCores(coreCount) { _ in
        while MonotonicClock.nanoseconds - begun < 2 * measuringNanoseconds {
            guard
                (try? workers.makeThumbnail(of: source, type: .jpeg, size: PictureSize(fitting: 256))) != nil
            else { return }
            made.add()
        }
    }
    let seconds = Double(MonotonicClock.nanoseconds - begun) / 1e9
    guard made.value > 0 else { return nil }
    let size = "JPEGs of 12 megapixels, \(sizeText(UInt64(picture.count))) each"
    return "\(Int(Double(made.value) / seconds)) a second of \(size), on \(counted(coreCount, "core"))"
}

/// A picture with some detail everywhere, like a photo.
private enum SpeedPicture {
    static let width = 4000
    static let height = 3000
    private static let pixelsOffset = 256

    /// An uncompressed TIFF (TIFF 6.0, section 6) of 8-bit RGB.
    static var tiff: [UInt8] {
        let pixelBytes = width * height * 3
        var bytes = [UInt8](repeating: 0, count: pixelsOffset + pixelBytes)
        func put(_ value: Int, at offset: Int, _ count: Int) {
            for index in 0..<count { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> (8 * index)) }
        }
        bytes[0] = UInt8(ascii: "I")
        bytes[1] = UInt8(ascii: "I")
        put(42, at: 2, 2)
        put(8, at: 4, 4)
        let tags: [(tag: Int, type: Int, value: Int)] = [
            (256, 4, width), (257, 4, height), (258, 3, 8), (259, 3, 1), (262, 3, 2), (273, 4, pixelsOffset),
            (277, 3, 3), (278, 4, height), (279, 4, pixelBytes),
        ]
        put(tags.count, at: 8, 2)
        for (index, entry) in tags.enumerated() {
            let offset = 10 + 12 * index
            put(entry.tag, at: offset, 2)
            put(entry.type, at: offset + 2, 2)
            put(1, at: offset + 4, 4)
            put(entry.value, at: offset + 8, 4)
        }
        fill(&bytes)
        return bytes
    }

    /// Fills the picture with repeated strips of noise over shades.
    private static func fill(_ bytes: inout [UInt8]) {
        let stripRows = 24
        var noise: UInt32 = 1
        var strip = [UInt8](repeating: 0, count: stripRows * width * 3)
        for index in strip.indices {
            noise = noise &* 1_664_525 &+ 1_013_904_223
            let pixel = index / 3
            strip[index] = UInt8((pixel % width + pixel / width) >> 4 & 0x7F) + UInt8(noise >> 28)
        }
        for start in stride(from: pixelsOffset, to: bytes.count, by: strip.count) {
            bytes.replaceSubrange(start..<start + strip.count, with: strip)
        }
    }
}
