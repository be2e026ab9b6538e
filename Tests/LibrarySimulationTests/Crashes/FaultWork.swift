import FileRequests
import Glibc
import LibraryFixtures
import LinuxIO
import PhotoLibrary
import TestFixtures
import TestSupport
import VaultStore

/// The steps of `FaultCourse`.
enum FaultWork {
    typealias Step = FaultCourse.Step

    static func chapters(spaces: Int) -> [(name: String, steps: [Step])] {
        [
            ("imports", imports), ("files", files), ("saving", saving), ("albums", albums),
            ("thumbnails", thumbnails), ("trash", trash), ("much", much(spaces: spaces)),
            ("sessions", sessions), ("an end", end),
        ]
    }

    static let opening = [Step("a mount", isDurable: true) { try open($0) }]

    /// Changes that are not known to be durable are made so first: an unmount that fails may lose it.
    static let leaving = [
        durable,
        Step("an unmount", isDurable: true) { if $0.isMounted { try $0.unmount() } },
    ]

    static func open(_ session: FaultSession) throws { if !session.isMounted { try session.mount() } }

    private static let durable = Step("fsync of a directory", isDurable: true) { try $0.makeDurable() }
    private static let soft = Step("a soft commit") { $0.commit(durable: false) }

    private static func day(_ number: Int) -> String { "2024-06-0\(1 + number % 5)" }

    // MARK: Coming in

    private static let imports = each(0..<14) { number in
        let name = "i\(number).jpg"
        let bytes = jpeg(day(number), more: number, size: 2000 + number * 4700)
        let sidecars = number % 5 == 2 ? [("i\(number).xmp", Array("<x/>".utf8))] : []
        return [
            Step("import of \(name)", ["/moments/" + day(number)]) {
                try $0.bring(name, bytes, sidecars: sidecars)
            }, number % 4 == 1 ? durable : soft,
        ]
    }

    private static let sizes = [0, 1, 511, 2000, 40_000, 131_072, 300_000]

    private static let files = all(
        [
            Step("directories", ["/albums"]) {
                for name in ["A", "A/B", "C"] { try $0.made("albums/" + name) }
            }
        ],
        each(sizes.indices) { number in
            [put("albums/f\(number)", noise(sizes[number], seed: number)), number % 3 == 0 ? durable : soft]
        },
        each(0..<8) { number in
            let day = julyDay(number)
            let bytes = jpeg(day, more: 50 + number, size: 1000 + number * 9000)
            return [
                put("albums/C/p\(number).jpg", bytes, and: ["/moments/" + day]),
                number % 4 == 3 ? durable : soft,
            ]
        })

    private static func julyDay(_ number: Int) -> String { "2024-07-0\(1 + number % 3)" }

    private static func put(_ path: String, _ bytes: [UInt8], and touched: [String] = []) -> Step {
        Step("writing \(path)", ["/" + path] + touched) { try $0.put(path, bytes) }
    }

    // MARK: Saving

    private static let saving = all(
        each(0..<8) { number in
            let bytes = noise(3000 + number * 30_000, seed: 20 + number)
            return [replace("albums/f\(2 + number % 4)", by: bytes), number % 2 == 0 ? soft : durable]
        },
        each(0..<6) { number in
            let day = julyDay(number)
            let bytes = jpeg(day, more: 70 + number, size: 5000 + number * 3000)
            return [replace("albums/C/p\(number).jpg", by: bytes, and: ["/moments/" + day]), soft]
        },
        each(0..<5) { number in
            [
                Step("within a file, and fsync", ["/albums/f6"], isDurable: true) { session in
                    let file = try session.open("albums/f6")
                    defer { session.library.release(file) }
                    try session.write(file, noise(50_000, seed: 40 + number), at: UInt64(number * 60_000))
                    try session.library.fsync(file, dataOnly: number % 2 == 0)
                }
            ]
        },
        cut(150_001), cut(70_000), cut(200_000), cut(0),
        each(0..<4) { number in
            [
                Step("an attribute", ["/albums/f\(number)"]) { session in
                    try session.library.setExtendedAttribute(
                        try session.ino("albums/f\(number)"), name: Array("user.note".utf8),
                        value: noise(400, seed: number), policy: .any)
                }, durable,
            ]
        })

    private static func cut(_ size: UInt64) -> [Step] {
        [Step("a size of \(size)", ["/albums/f6"]) { try $0.truncate("albums/f6", size) }, soft]
    }

    private static func replace(_ path: String, by bytes: [UInt8], and touched: [String] = []) -> Step {
        let new = "albums/.new~"
        return Step("a new file over \(path)", ["/" + new, "/" + path] + touched) { session in
            try session.put(new, bytes)
            try session.mv(new, path)
        }
    }

    // MARK: Names

    private static let albums = all(
        each(0..<6) { number in
            let (photo, album) = ("moments/\(day(number))/i\(number).jpg", "albums/A/i\(number).jpg")
            return [
                Step("\(photo) in an album", ["/" + photo, "/" + album]) { try $0.linked(photo, album) },
                number % 3 == 2 ? durable : soft,
            ]
        },
        each(0..<4) { number in
            let bytes = jpeg(day(number), more: number, size: 2000 + number * 4700)
            return [put("albums/A/copy\(number).jpg", bytes), soft]
        },
        rename("albums/A", "albums/D"), rename("albums/C/p6.jpg", "albums/A2"),
        rename("moments/2024-06-05", "moments/2023-01-01"),
        each(0..<3) { number in
            let (from, to) = ("moments/\(day(number))/i\(number).jpg", "moments/2022-02-02/i\(number).jpg")
            let album = "/albums/D/i\(number).jpg"
            return [
                Step("another day", ["/moments", album]) {
                    try $0.made("moments/2022-02-02")
                    try $0.moved(from, to)
                    // Its sidecar follows when somebody looks.
                    _ = try $0.ls("moments/2022-02-02")
                }, soft,
            ]
        },
        rename("albums/D", "albums/A"),
        [
            Step("out of an album", ["/albums/A/i4.jpg", "/moments"]) {
                try $0.removed("albums/A/i4.jpg")
            }, durable,
        ])

    private static func rename(_ from: String, _ to: String) -> [Step] {
        [
            Step("\(from) becomes \(to)", ["/" + from, "/" + to, "/moments"]) { try $0.moved(from, to) },
            durable,
        ]
    }

    // MARK: Pictures

    private static let thumbnails = all(
        each(5..<12) { photo in
            let day = photo % 5 == 4 ? "2023-01-01" : day(photo)
            return [
                Step("a thumbnail of i\(photo)") { session in
                    _ = try session.get("moments/\(day)/.thumbs/i\(photo).jpg")
                    _ = try session.get("moments/\(day)/.thumbs/64/i\(photo).jpg")
                }, soft,
            ]
        },
        [
            Step("piles and sheets") { session in
                for day in ["2024-06-01", "2024-07-01"] {
                    _ = try session.get("moments/\(day)/.thumbs/stack.jpg")
                    _ = try session.get("moments/\(day)/.thumbs/sheet.jpg")
                }
            },
            Step("reading all") { _ = try $0.dump() },
        ])

    // MARK: Trash

    private static let trashed = ".Trash-0/files"

    private static let trash = all(
        [
            Step("a trash", ["/.Trash-0"]) { session in
                for path in [".Trash-0", trashed, ".Trash-0/info"] { try session.made(path, mode: 0o700) }
            }, durable,
        ],
        each(1..<5) { number in
            [
                Step("p\(number) to the trash", ["/albums/C", "/moments", "/.Trash-0"]) {
                    try $0.moved("albums/C/p\(number).jpg", trashed + "/p\(number).jpg")
                }, soft,
            ]
        },
        each(7..<11) { number in
            let day = number % 5 == 4 ? "2023-01-01" : day(number)
            return [
                Step("a photo of \(day) to the trash", ["/moments/" + day, "/.Trash-0"]) {
                    try $0.moved("moments/\(day)/i\(number).jpg", trashed + "/i\(number).jpg")
                }, number % 2 == 0 ? soft : durable,
            ]
        },
        each(7..<9) { number in
            [
                Step("a photo comes back", ["/moments", "/.Trash-0", "/albums/back\(number).jpg"]) {
                    try $0.moved(trashed + "/i\(number).jpg", "albums/back\(number).jpg")
                }, durable,
            ]
        },
        [
            Step("an empty trash", ["/.Trash-0", "/moments"]) { session in
                for name in try session.ls(trashed) { try session.removed(trashed + "/" + name) }
            }, durable, durable,
            Step("overwriting") { session in
                for _ in 0..<3 {
                    session.commit(durable: true)
                    session.library.session.space.eraser.overwrite(most: 1 << 20)
                }
            },
        ])

    // MARK: Much, and often

    private static func much(spaces: Int) -> [Step] {
        all(
            each(0..<6) { number in
                let path = "albums/large\(number % 3)"
                return [
                    put(path, noise(400_000 + number * 100_000, seed: 90 + number)), soft,
                    Step("the end of it", ["/" + path]) { if number < 4 { try $0.removed(path) } },
                    number % 2 == 0 ? durable : soft,
                ]
            },
            spaces == 1 ? [] : [Step("a larger vault") { try grow($0) }],
            each(0..<4) { number in
                [put("albums/later\(number)", noise(200_000, seed: 110 + number)), durable]
            })
    }

    private static func grow(_ session: FaultSession) throws {
        let bytes = UInt64(session.vault.segments + 1) * session.vault.segmentBytes
        try Vault.grow(session.vault.path, bytesPerSpace: bytes, calls: session.calls) { _, _ in }
    }

    private static let sessions = all(
        each(0..<5) { number in
            [
                put("albums/s\(number)", noise(20_000 * number, seed: 130 + number)), soft,
                Step("a kill and a mount") {
                    $0.kill()
                    try open($0)
                },
                put("albums/s\(number)", noise(30_000 * number, seed: 140 + number)), durable,
                Step("an unmount and a mount", isDurable: true) {
                    if $0.isMounted { try $0.unmount() }
                    try open($0)
                },
            ]
        },
        [
            Step("another password", isDurable: true) { session in
                if session.isMounted { try session.unmount() }
                if try !opens("two", session) {
                    try Vault.changePassword(
                        session.vault.path, old: MemoryVault.password("one"),
                        new: MemoryVault.password("two"),
                        calls: session.calls)
                }
                try open(session)
            }
        ])

    private static func opens(_ password: String, _ session: FaultSession) throws -> Bool {
        do throws(VaultError) {
            _ = try Vault.unlock(
                session.vault.path, password: MemoryVault.password(password), readOnly: true,
                calls: session.calls)
            return true
        } catch {
            if error == .noSpaceOpens { return false }
            throw error
        }
    }

    /// Removes most of the remaining files.
    private static let end = all(
        removal("albums/C"), removal("albums/A"), removal("moments/2024-06-01"),
        removal("moments/2024-06-02"), removal("moments/2022-02-02"))

    private static func removal(_ path: String) -> [Step] {
        [
            Step("the end of \(path)", ["/albums", "/moments", "/.Trash-0"]) { session in
                if session.exists(path) { try session.rmrf(path) }
            }, durable,
        ]
    }

    // MARK: Lists

    private static func each(_ numbers: Range<Int>, _ steps: (Int) -> [Step]) -> [Step] {
        numbers.flatMap(steps)
    }

    private static func all(_ parts: [Step]...) -> [Step] { parts.flatMap { $0 } }
}

/// Steps that are done only once.
extension FaultSession {
    fileprivate func made(_ path: String, mode: UInt32 = 0o755) throws {
        if !exists(path) { try mkdir(path, mode: mode) }
    }

    fileprivate func moved(_ from: String, _ to: String) throws { if exists(from) { try mv(from, to) } }

    fileprivate func linked(_ from: String, _ to: String) throws { if !exists(to) { try ln(from, to) } }

    fileprivate func removed(_ path: String) throws { if exists(path) { try rm(path) } }
}
