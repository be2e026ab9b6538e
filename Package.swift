// swift-tools-version: 6.2
import PackageDescription

let settings: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .treatAllWarnings(as: .error),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A Swift target of this package; targets may import only what stands in `uses`.
func layer(_ name: String, uses: [Target.Dependency] = []) -> Target {
    .target(name: name, dependencies: uses, swiftSettings: settings)
}

func tests(_ name: String, uses: [Target.Dependency]) -> Target {
    .testTarget(name: name, dependencies: uses, swiftSettings: settings)
}

let package = Package(
    name: "obscura",
    targets: [
        .systemLibrary(name: "CSodium", pkgConfig: "libsodium", providers: [.apt(["libsodium-dev"])]),
        .target(name: "CShims"),
        layer("LinuxIO", uses: ["CShims"]),
        layer("VaultFormat"),
        layer("VaultCrypto", uses: ["CSodium", "VaultFormat"]),
        layer("VaultStore", uses: ["VaultFormat", "VaultCrypto", "LinuxIO"]),
        tests("VaultFormatTests", uses: ["VaultFormat"]),
        tests("VaultCryptoTests", uses: ["VaultCrypto", "VaultFormat"]),
        tests("VaultStoreTests", uses: ["VaultStore", "VaultCrypto", "VaultFormat", "LinuxIO"]),
    ]
)
