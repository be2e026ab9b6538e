import VaultCrypto

/// The keys of a space, derived from its one secret.
struct SpaceKeys: Sendable {
    let content: SealingKey
    let descriptor: SealingKey
    let page: SealingKey
    let boot: SecretBytes
    let claim: SecretBytes

    init(_ spaceKey: SecretBytes) {
        content = SealingKey(deriveKey(spaceKey, purpose: "obscura 1 content"))
        descriptor = SealingKey(deriveKey(spaceKey, purpose: "obscura 1 descriptor"))
        page = SealingKey(deriveKey(spaceKey, purpose: "obscura 1 page"))
        boot = deriveKey(spaceKey, purpose: "obscura 1 boot")
        claim = deriveKey(spaceKey, purpose: "obscura 1 claim")
    }
}
