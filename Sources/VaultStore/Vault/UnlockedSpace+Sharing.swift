import Glibc
import LinuxIO
import VaultCrypto
import VaultFormat

/// A space on a host that several computers use in turn.
extension UnlockedSpace {
    /// Tells mounts that have the space's password where this one is, and hands the vault over if they ask for it. Does
    /// nothing for a vault in files.
    ///
    /// Of several spaces nobody is told: whoever has the password of one would learn whether it is this one.
    ///
    /// - Parameter handOver: called when another mount asks; nil: the vault stays here until the unmount.
    public func share(handOver: (@Sendable () -> Void)?) throws(VaultError) {
        guard let shared = vault.shared else { return }
        if !layout.isShared {
            let host = String(decoding: hostName(), as: UTF8.self)
            try shared.setHolderNote(HolderNote(key).sealed("\(host), since \(localTime())"))
        }
        if let handOver { try shared.whenAsked(handOver) }
    }

    /// Gives the vault up for other computers, at the end of a session. Does nothing for a vault in files, whose lock
    /// ends with the process.
    public func giveUp() { vault.shared?.giveUp() }

    /// Requests of this mount to a cluster so far, and their bytes; nil for a vault in files.
    public var requestCounts: [(name: String, value: UInt64)]? { vault.shared?.requestCounts }

    private func localTime() -> String {
        var (now, parts) = (time(nil), tm())
        localtime_r(&now, &parts)
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, "%Y-%m-%d %H:%M %z", &parts)
        return String(decoding: text.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// A mount's computer and beginning, sealed for mounts with the same password: nobody else reads it.
struct HolderNote {
    private let key: SealingKey
    private static let associated = Array("obscura 1 holder".utf8)
    private static let overhead = Geometry.nonceBytes + Geometry.tagBytes

    init(_ key: SecretBytes) { self.key = SealingKey(deriveKey(key, purpose: "obscura 1 holder")) }

    /// Nonce, tag and ciphertext.
    func sealed(_ text: String) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: Self.overhead) + Array(text.utf8)
        bytes.withUnsafeMutableBytes { bytes in
            let (nonce, tag, body) = Self.parts(bytes)
            fillRandom(nonce)
            Self.associated.withUnsafeBytes {
                key.seal(
                    UnsafeRawBufferPointer(body), into: body, tag: tag, nonce: UnsafeRawBufferPointer(nonce),
                    associated: $0)
            }
        }
        return bytes
    }

    /// Nil if it was sealed under another key.
    func opened(_ sealed: [UInt8]) -> String? {
        guard sealed.count > Self.overhead else { return nil }
        var bytes = sealed
        return bytes.withUnsafeMutableBytes { bytes in
            let (nonce, tag, body) = Self.parts(bytes)
            let isOpen = Self.associated.withUnsafeBytes {
                key.open(
                    UnsafeRawBufferPointer(body), into: body, tag: UnsafeRawBufferPointer(tag),
                    nonce: UnsafeRawBufferPointer(nonce), associated: $0)
            }
            return isOpen ? String(decoding: body, as: UTF8.self) : nil
        }
    }

    private static func parts(
        _ bytes: UnsafeMutableRawBufferPointer
    ) -> (
        nonce: UnsafeMutableRawBufferPointer, tag: UnsafeMutableRawBufferPointer,
        body: UnsafeMutableRawBufferPointer
    ) {
        (
            bytes.slice(0, Geometry.nonceBytes), bytes.slice(Geometry.nonceBytes, Geometry.tagBytes),
            bytes.slice(overhead, bytes.count - overhead)
        )
    }
}
