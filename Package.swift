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
///
/// - Parameter bindsC: whether it mostly calls C or works on raw memory: `unsafe` would be on every other line.
func layer(
    _ name: String, uses: [Target.Dependency] = [], linking: [LinkerSetting] = [], bindsC: Bool = false
) -> Target {
    .target(
        name: name, dependencies: uses, swiftSettings: bindsC ? settings : settings + [.strictMemorySafety()],
        linkerSettings: linking)
}

/// A C library of Debian's, known to Swift by a module map.
func system(_ name: String, pkgConfig: String?, package: String) -> Target {
    .systemLibrary(
        name: name, path: "Sources/System/" + name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// For what tests do not wait for: optimising it would take longer than they do. Nothing waits for their module files
/// either, which would have the compiler check all types twice.
let unoptimised = settings + [.unsafeFlags(["-Onone", "-no-emit-module-separately-wmo"])]

/// A target of tests. The programs that it starts are not among its modules: all of them are built with the tests, and
/// waiting for them would leave a core idle.
///
/// - Parameter compute: whether the tests are optimised, because they simulate and compare much themselves.
func tests(_ name: String, uses: [Target.Dependency], compute: Bool = false) -> Target {
    .testTarget(
        name: name, dependencies: uses + ["TestThreads"], swiftSettings: compute ? settings : unoptimised)
}

/// What tests of a whole library look into.
let library: [Target.Dependency] = [
    "PhotoImport", "PhotoLibrary", "PhotoRules",
    "Recovery", "FileRequests", "CatalogueRows", "KernelNames", "PhotoImaging",
    "VaultCatalogue",
    "VaultStore", "VaultCrypto", "VaultFormat", "LinuxIO", "TestSupport", "TestFixtures",
]

/// What the targets of `scripts/fuzz` look into.
let fuzzed: [Target.Dependency] = [
    "Encodings", "obscura", "Importing", "Receiving", "HostFiles", "FuseBridge", "PhotoLibrary", "PhotoRules",
    "Recovery", "FileRequests", "CatalogueRows", "PhotoImaging", "TakeoutRules", "ReceiveProtocol",
    "VaultCatalogue", "VaultStore", "VaultCrypto", "VaultFormat", "LinuxIO", "TestSupport", "TestFixtures",
]

let package = Package(
    name: "obscura",
    targets: [
        system("CSodium", pkgConfig: "libsodium", package: "libsodium-dev"),
        system("COpenSSL", pkgConfig: "libcrypto", package: "libssl-dev"),
        system("CSQLite", pkgConfig: "sqlite3", package: "libsqlite3-dev"),
        system("CTurboJPEG", pkgConfig: "libturbojpeg", package: "libturbojpeg0-dev"),
        system("CSeccomp", pkgConfig: "libseccomp", package: "libseccomp-dev"),
        system("CPNG", pkgConfig: "libpng", package: "libpng-dev"),
        system("CWebP", pkgConfig: "libwebpdemux", package: "libwebp-dev"),
        system("CGIF", pkgConfig: "libgif", package: "libgif-dev"),
        system("CTIFF", pkgConfig: "libtiff-4", package: "libtiff-dev"),
        system("CHEIF", pkgConfig: "libheif", package: "libheif-dev"),
        // Its flags are those of libhwy, which every build would warn of; it needs none.
        system("CJXL", pkgConfig: nil, package: "libjxl-dev"),
        system("CFreeType", pkgConfig: "freetype2", package: "libfreetype-dev"),
        system("CSystemd", pkgConfig: "libsystemd", package: "libsystemd-dev"),
        system("CGLib", pkgConfig: "glib-2.0", package: "libglib2.0-dev"),
        system("CZip", pkgConfig: "libzip", package: "libzip-dev"),
        system("CMicroHTTPD", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
        system("CGnuTLS", pkgConfig: "gnutls", package: "libgnutls28-dev"),
        system("CBrotli", pkgConfig: "libbrotlicommon", package: "libbrotli-dev"),
        system("CQRencode", pkgConfig: "libqrencode", package: "libqrencode-dev"),
        .target(name: "CShims", path: "Sources/System/CShims"),
        system("CJPEG", pkgConfig: "libjpeg", package: "libjpeg62-turbo-dev"),
        .target(name: "CJPEGStream", dependencies: ["CJPEG"], path: "Sources/System/CJPEGStream"),
        layer("LinuxIO", uses: ["CShims"], bindsC: true),
        layer("Sandbox", uses: ["CSeccomp", "CShims"]),
        layer("Encodings"),
        layer("ReceiveProtocol", uses: ["Encodings"]),
        layer("VaultFormat"),
        layer("KernelNames"),
        layer("CatalogueRows", uses: ["LinuxIO"]),
        layer("FileRequests", uses: ["LinuxIO"]),
        layer(
            "HostFiles",
            uses: ["Encodings", "FileRequests", "PhotoImaging", "VaultFormat", "LinuxIO", "CShims"]),
        layer("PhotoRules", uses: ["Encodings", "CatalogueRows", "FileRequests", "PhotoImaging", "LinuxIO"]),
        // Bound at once: binding a function when it is first called saves all registers, keys too, to the stack.
        layer(
            "VaultCrypto", uses: ["CSodium", "COpenSSL", "VaultFormat"],
            linking: [.unsafeFlags(["-Xlinker", "-z", "-Xlinker", "now"])], bindsC: true),
        layer("ClusterIO", uses: ["LinuxIO", "CShims"], bindsC: true),
        layer("VaultStore", uses: ["VaultFormat", "VaultCrypto", "ClusterIO", "LinuxIO"], bindsC: true),
        layer(
            "VaultCatalogue",
            uses: ["CSQLite", "CatalogueRows", "FileRequests", "VaultStore", "VaultFormat", "LinuxIO"],
            bindsC: true),
        layer(
            "PhotoLibrary",
            uses: [
                "Encodings", "VaultCrypto", "PhotoRules", "FileRequests", "KernelNames", "CatalogueRows",
                "VaultCatalogue", "VaultStore",
                "VaultFormat", "PhotoImaging", "LinuxIO",
            ]),
        layer(
            "Recovery",
            uses: [
                "PhotoLibrary", "PhotoRules", "FileRequests", "CatalogueRows", "VaultCatalogue", "VaultStore",
                "VaultFormat", "PhotoImaging", "LinuxIO",
            ]),
        system("CFuse3", pkgConfig: "fuse3", package: "libfuse3-dev"),
        .executableTarget(
            name: "obscura",
            dependencies: [
                "Encodings", "FuseBridge", "Importing", "Receiving", "DesktopTraces", "PhotoImport",
                "PhotoLibrary", "PhotoRules", "Recovery", "FileRequests", "HostFiles", "PhotoImaging",
                "VaultStore", "VaultCrypto", "VaultFormat", "LinuxIO", "CShims",
            ],
            exclude: ["obscura.1", "mount.obscura.8", "obscura.docc"], swiftSettings: settings),
        layer("FuseBridge", uses: ["CFuse3", "FileRequests", "PhotoLibrary", "LinuxIO"], bindsC: true),
        layer(
            "PhotoImport",
            uses: [
                "PhotoLibrary", "PhotoRules", "FileRequests", "HostFiles",
                "CatalogueRows", "VaultCatalogue", "VaultStore", "PhotoImaging", "LinuxIO",
            ]),
        layer(
            "DesktopTraces",
            uses: [
                "PhotoImport", "PhotoLibrary", "PhotoRules", "FileRequests", "HostFiles", "Encodings",
                "PhotoImaging", "LinuxIO", "CShims",
            ]),
        layer(
            "Receiving",
            uses: [
                "ReceiveProtocol", "VaultCrypto", "FileRequests", "HostFiles", "PhotoImaging", "Encodings",
                "LinuxIO", "CQRencode", "CShims",
            ], bindsC: true),
        layer(
            "Importing",
            uses: [
                "PhotoImport", "PhotoLibrary", "PhotoRules", "TakeoutRules", "FileRequests", "HostFiles",
                "PhotoImaging", "LinuxIO",
            ]),
        layer("PhotoImaging", uses: ["Encodings", "LinuxIO", "CBrotli", "CShims"], bindsC: true),
        layer("TakeoutRules", uses: ["PhotoImaging"]),
        .executableTarget(
            name: "obscura-worker",
            dependencies: [
                "PhotoImaging", "CTurboJPEG", "CJPEGStream", "CPNG", "CWebP", "CGIF", "CTIFF", "CHEIF",
                "CJXL", "CFreeType", "Sandbox", "CShims",
            ],
            swiftSettings: settings),
        .executableTarget(
            name: "obscura-receiver",
            dependencies: ["Encodings", "ReceiveProtocol", "Sandbox", "CMicroHTTPD", "CGnuTLS", "CShims"],
            resources: ["page.html", "page.css", "languages.js", "media.js", "page.js"]
                .map { .embedInCode("Page/" + $0) },
            swiftSettings: settings),
        .executableTarget(
            name: "obscura-sleep", dependencies: ["CSystemd", "CShims"], swiftSettings: settings),
        .executableTarget(
            name: "obscura-desktop", dependencies: ["LinuxIO", "CGLib", "CSQLite", "CSystemd", "CShims"],
            swiftSettings: settings),
        .executableTarget(
            name: "obscura-archive", dependencies: ["TakeoutRules", "PhotoImaging", "Sandbox", "CZip"],
            swiftSettings: settings),
        .executableTarget(
            name: "obscura-guard", dependencies: ["CShims"], swiftSettings: settings),
        tests(
            "WorkerTests",
            uses: [
                "PhotoImaging", "LinuxIO", "TestSupport", "CTurboJPEG", "CJPEG",
                "CJPEGStream", "CPNG", "CWebP", "CGIF", "CTIFF", "CHEIF", "CJXL",
            ]),
        tests(
            "CommandTests",
            uses: [
                "obscura", "FuseBridge", "Importing", "Receiving", "DesktopTraces", "PhotoLibrary",
                "Recovery",
                "FileRequests", "HostFiles", "Encodings", "PhotoImaging", "VaultCatalogue", "CatalogueRows",
                "VaultStore", "VaultCrypto", "LinuxIO", "CShims", "TestSupport", "TestFixtures",
            ]),
        tests(
            "MountTests",
            uses: [
                "PhotoLibrary", "Recovery", "VaultStore", "VaultCrypto", "VaultCatalogue", "VaultFormat",
                "LinuxIO", "CShims", "TestSupport", "CTurboJPEG", "CSystemd",
            ]),
        tests("PhotoImagingTests", uses: ["PhotoImaging", "TestFixtures"]),
        tests("TakeoutRulesTests", uses: ["TakeoutRules", "PhotoImaging"]),
        tests("KernelNamesTests", uses: ["KernelNames"]),
        tests(
            "PhotoRulesTests",
            uses: ["PhotoRules", "PhotoImaging", "CatalogueRows", "FileRequests", "LinuxIO"]),
        tests(
            "VaultCatalogueTests",
            uses: [
                "VaultCatalogue", "CatalogueRows", "FileRequests", "VaultStore", "VaultCrypto", "VaultFormat",
                "LinuxIO",
                "TestSupport", "CSQLite",
            ]),
        // Threads for tests that wait: a test target, as the program's static build has no Testing.
        .testTarget(name: "TestThreads", swiftSettings: settings),
        // Vaults, pictures and failures for the tests that need a whole space.
        .target(
            name: "TestSupport", dependencies: ["VaultStore", "VaultCrypto", "ClusterIO", "LinuxIO"],
            path: "Tests/TestSupport",
            swiftSettings: settings),
        // What several tests share that looks inside of modules: a test target, as only builds for tests allow that.
        .testTarget(
            name: "TestFixtures",
            dependencies: [
                "PhotoImaging", "VaultStore", "VaultCrypto", "VaultFormat", "LinuxIO", "TestSupport",
            ],
            swiftSettings: settings),
        // The functions that `scripts/fuzz` feeds, with inputs that are the same every time.
        .testTarget(
            name: "FuzzTests", dependencies: fuzzed, path: "Tests/Fuzz",
            exclude: ["Corpus", "Driver", "metadata.dict"], swiftSettings: settings),
        // The distinguisher of deniability. Its loops over bytes are optimised in tests as well.
        .target(name: "CDistinguisher", path: "Tests/CDistinguisher"),
        .target(
            name: "Distinguisher",
            dependencies: [
                "CDistinguisher", "CShims", "CSQLite", "PhotoLibrary", "FileRequests", "VaultStore",
                "VaultCrypto",
                "VaultFormat", "LinuxIO", "TestSupport",
            ],
            path: "Tests/Distinguisher", swiftSettings: settings + [.unsafeFlags(["-O"])]),
        .executableTarget(
            name: "obscura-distinguisher", dependencies: ["Distinguisher"], path: "Tests/DistinguisherTool",
            swiftSettings: settings),
        tests("DistinguisherTests", uses: ["Distinguisher", "TestSupport"]),
        tests("PhotoLibraryTests", uses: library + ["LibraryFixtures"]),
        // Disks, computers and programs in memory, at random and compared with models.
        tests("LibrarySimulationTests", uses: library + ["LibraryFixtures"], compute: true),
        // Libraries that the tests of both drive: a test target for the same reason as TestFixtures.
        .testTarget(name: "LibraryFixtures", dependencies: library, swiftSettings: settings),
        tests(
            "FuseBridgeTests",
            uses: [
                "FuseBridge", "CFuse3", "PhotoLibrary", "FileRequests", "PhotoImaging",
                "VaultFormat", "LinuxIO", "TestSupport",
            ]),
        tests("LinuxIOTests", uses: ["LinuxIO", "TestSupport", "CShims"]),
        tests("ReceiveProtocolTests", uses: ["ReceiveProtocol", "TestSupport"]),
        tests("VaultFormatTests", uses: ["VaultFormat"]),
        tests("VaultCryptoTests", uses: ["VaultCrypto", "VaultFormat", "TestSupport"]),
        tests(
            "VaultStoreTests",
            uses: [
                "VaultStore", "VaultCrypto", "VaultFormat", "ClusterIO", "LinuxIO", "TestSupport",
                "TestFixtures",
            ],
            compute: true),
    ]
)

// A build for tests.
if Context.environment["OBSCURA_TESTS"] != nil {
    let waitedForSeldom = [
        "obscura", "Importing", "Receiving", "DesktopTraces", "obscura-receiver", "Recovery",
    ]
    for target in package.targets where waitedForSeldom.contains(target.name) {
        target.swiftSettings = unoptimised
    }
}

// The test targets to build, separated by blanks, for quick turns while one of them is worked on; all if unset.
if let chosen = Context.environment["OBSCURA_TEST_TARGETS"]?.split(separator: " ").map(String.init) {
    let shared = ["TestThreads", "TestFixtures", "LibraryFixtures"]
    package.targets.removeAll { $0.type == .test && !(chosen + shared).contains($0.name) }
}

// `scripts/fuzz` builds one program more, with libFuzzer's main, the command as a library, and none of the tests.
if Context.environment["OBSCURA_FUZZ"] != nil {
    let command = package.targets.first { $0.name == "obscura" }
    let fixtures = package.targets.first { $0.name == "TestFixtures" }
    package.targets.removeAll { $0.type == .test || $0.name == "obscura" }
    package.targets += [
        .target(
            name: "obscura", dependencies: command?.dependencies ?? [],
            exclude: (command?.exclude ?? []) + ["main.swift"], swiftSettings: settings),
        .target(
            name: "TestFixtures", dependencies: fixtures?.dependencies ?? [], path: "Tests/TestFixtures",
            swiftSettings: settings),
        .executableTarget(
            name: "obscura-fuzz", dependencies: fuzzed, path: "Tests/Fuzz",
            exclude: ["Corpus", "FuzzTests.swift", "metadata.dict"],
            swiftSettings: settings + [.unsafeFlags(["-parse-as-library"])],
            linkerSettings: [.unsafeFlags(["-sanitize=fuzzer,address", "-use-ld=lld"])]),
    ]
}

// The desktop window. It needs GTK 4, so it is built where it is asked for, and nothing else needs GTK.
if Context.environment["OBSCURA_WINDOW"] != nil {
    package.targets += [
        system("CAdwaita", pkgConfig: "libadwaita-1", package: "libadwaita-1-dev"),
        .executableTarget(
            name: "obscura-window", dependencies: ["CAdwaita", "LinuxIO", "VaultFormat"],
            exclude: ["obscura-window.1", "obscura-window.docc"],
            resources: [.embedInCode("words.txt")], swiftSettings: settings),
    ]
}
