import Glibc

@testable import PhotoImaging

/// Decompresses bytes, and again what Brotli's own library makes of them: both decoders must agree on every stream that
/// the library accepts. Without the library, only the first part.
func fuzzBrotli(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    let how = input.number(UInt8.self)
    let contents = input.takeAll()
    expectSame(contents)
    guard
        let packed = BrotliLibrary.shared?.pack(
            contents, quality: Int32(how % 12), windowBits: 10 + Int32(how >> 4) % 15)
    else { return }
    expectSame(packed)
}

private func expectSame(_ packed: [UInt8]) {
    let limit = 1 << 16
    let own = packed.withUnsafeBytes { bytes in
        bytes.baseAddress.flatMap { Brotli.unpack(ByteView($0, count: bytes.count), limit: limit) } ?? []
    }
    // A word of the dictionary may pass the limit.
    precondition(own.count <= limit + 64, "more than the limit")
    guard let other = BrotliLibrary.shared?.unpack(packed, limit: limit) else { return }
    precondition(own == other, "another result than the library's")
}

/// libbrotlienc and libbrotlidec, which come with the libbrotlicommon that the program is linked with.
private struct BrotliLibrary {
    private typealias Pack =
        @convention(c) (
            CInt, CInt, CInt, Int, UnsafePointer<UInt8>?, UnsafeMutablePointer<Int>,
            UnsafeMutablePointer<UInt8>
        ) -> CInt
    private typealias Unpack =
        @convention(c) (Int, UnsafePointer<UInt8>?, UnsafeMutablePointer<Int>, UnsafeMutablePointer<UInt8>) ->
        CInt

    private let packer: Pack
    private let unpacker: Unpack

    static let shared = BrotliLibrary()

    private init?() {
        guard let encoder = dlopen("libbrotlienc.so.1", RTLD_NOW),
            let decoder = dlopen("libbrotlidec.so.1", RTLD_NOW),
            let pack = dlsym(encoder, "BrotliEncoderCompress"),
            let unpack = dlsym(decoder, "BrotliDecoderDecompress")
        else { return nil }
        packer = unsafeBitCast(pack, to: Pack.self)
        unpacker = unsafeBitCast(unpack, to: Unpack.self)
    }

    /// Nil if the library gives up.
    func pack(_ bytes: [UInt8], quality: CInt, windowBits: CInt) -> [UInt8]? {
        var count = bytes.count + 1024
        var packed = [UInt8](repeating: 0, count: count)
        guard packer(quality, windowBits, 0, bytes.count, bytes, &count, &packed) == 1 else { return nil }
        return Array(packed.prefix(count))
    }

    /// Nil if the stream is damaged, goes on behind its end, or holds more than the limit.
    func unpack(_ packed: [UInt8], limit: Int) -> [UInt8]? {
        var count = limit
        var bytes = [UInt8](repeating: 0, count: limit)
        guard unpacker(packed.count, packed, &count, &bytes) == 1 else { return nil }
        return Array(bytes.prefix(count))
    }
}
