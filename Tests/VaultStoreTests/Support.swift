import Foundation
import LinuxIO
import TestSupport
import VaultCrypto
import VaultFormat
import VaultStore

/// A directory of its own for a test, removed when the object goes.
final class TemporaryDirectory {
    let path: String

    init() {
        var template = Array("/tmp/obscura-test-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template))
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }
}

func secret(_ text: String) -> SecretBytes {
    Array(text.utf8).withUnsafeBytes { SecretBytes(copying: $0) }
}

let quickKDF = KDFParameters(memoryBytes: 8 << 20, passes: 1)

/// A small generator whose seed a failing test prints.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

/// A vault made for a test.
func makeVault(
    _ directory: TemporaryDirectory, spaces: Int = 1, bytes: UInt64? = nil, limits: Limits = .production,
    calls: any FileSystemCalls = LinuxCalls.shared
) throws -> String {
    let path = directory.path + "/vault"
    try Vault.create(
        at: path, spaces: spaces, bytesPerSpace: bytes, kdf: quickKDF, password: secret("one"), calls: calls,
        limits: limits, coverBytes: 0
    ) { _, _ in }
    return path
}

func openSpace(
    _ path: String, password: String = "one", readOnly: Bool = false, limits: Limits = .production,
    calls: any FileSystemCalls = LinuxCalls.shared
) throws -> Space {
    try patiently {
        try Vault.unlock(
            path, password: secret(password), readOnly: readOnly, stretcher: RememberingStretcher.shared,
            calls: calls)
    }
    .openSpace(readOnly: readOnly, limits: limits)
}

func bytes(_ count: Int, seed: UInt64) -> [UInt8] {
    noise(count, seed: Int(truncatingIfNeeded: seed))
}

extension Space {
    func writeAll(_ content: UInt64, _ bytes: [UInt8]) throws -> [ExtentRun] {
        try bytes.withUnsafeBytes { try write(role: .content, content: content, offset: 0, $0, near: nil) }
    }

    func readAll(_ content: UInt64, _ runs: [ExtentRun]) throws -> [UInt8] {
        var result: [UInt8] = []
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Space.readBufferBytes, alignment: 16)
        defer { buffer.deallocate() }
        for run in runs {
            for chunk in 0..<run.chunkCount {
                result += Array(
                    try read(role: .content, content: content, run: run, chunk: chunk, into: buffer))
            }
        }
        return result
    }

    func stage(_ page: UInt32, _ byte: UInt8) {
        [UInt8](repeating: byte, count: 4056).withUnsafeBytes { plain in
            let whole = Array(plain) + [UInt8](repeating: 0, count: 40)
            whole.withUnsafeBytes { stagePage(page, $0) }
        }
    }

    func page(_ index: UInt32) throws -> UInt8 {
        var bytes = [UInt8](repeating: 0, count: 4096)
        try bytes.withUnsafeMutableBytes { try readPage(index, into: $0) }
        return bytes[17]
    }

    func commit(durable: Bool) throws { try publish(freeze(), durable: durable) }
}
