import Glibc
import Importing
import VaultCrypto
import VaultFormat

@testable import FuseBridge
@testable import LinuxIO
@testable import PhotoLibrary
@testable import Recovery
@testable import VaultStore
@testable import obscura

/// Numbers from outside, wherever they enter: in every option and operand that takes one, in a mount's answers, and
/// in the host's answers about itself and files. Each goes all the way up to the first use of a vault.
func fuzzNumbers(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    fuzzHost(&input)
    fuzzProgress(&input)
    while !input.isEmpty {
        let place = Int(input.number(UInt8.self))
        let text = numberText(&input)
        fuzzArgument(place, text)
        fuzzAnswer(text)
    }
}

/// A number as somebody may write it: most of them near where something overflows.
private func numberText(_ input: inout Input) -> String {
    let kind = input.number(UInt8.self)
    let edges: [UInt64] = [0, 1, 8, 64, 0o777, 36_500, 1 << 31, 1 << 32, 1 << 40, 1 << 53, 1 << 62, 1 << 63]
    let units = ["", "", "K", "M", "G", "T", "s", "m", "h", "d", "k", "t", "P", "%", ".5", "e9"]
    let unit = units[Int(kind >> 4)]
    switch kind & 3 {
    case 0: return String(input.number(UInt64.self)) + unit
    case 1:
        let edge = edges[Int(input.number(UInt8.self)) % edges.count]
        return String(edge &+ UInt64(truncatingIfNeeded: Int8(bitPattern: input.number()))) + unit
    case 2: return String(edges[Int(input.number(UInt8.self)) % edges.count], radix: 8) + unit
    default: return String(decoding: input.take(Int(kind >> 2 & 31)).filter { $0 != 0 }, as: UTF8.self) + unit
    }
}

/// Every place of a command line that takes a number.
private func fuzzArgument(_ place: Int, _ text: String) {
    let options = ["--spaces", "--size", "--kdf-memory", "--kdf-passes", "--password-fd"]
    let words = ["idle", "trash", "versions", "uid", "gid", "umask", "thumbs", "subtype", "suspend"]
    switch place % 3 {
    case 0:
        let option = options[place / 3 % options.count]
        let command = place & 0x80 == 0 ? ["create", "V"] : ["mount", "V", "D", "--create"]
        run(command + (place & 0x40 == 0 ? ["\(option)=\(text)"] : [option, text]))
    case 1: run(["grow", "V", text])
    default: run(["mount", "V", "D", "-o", "\(words[place / 3 % words.count])=\(text)"])
    }
}

private func run(_ words: [String]) {
    do throws(Failure) {
        guard case .run(let arguments) = try parseArguments(words) else { return }
        _ = try PasswordSource(arguments)
        switch arguments.command {
        case .create: check(try CreateSettings(arguments))
        case .grow: check(size: try size(arguments.operands[1], "SIZE"))
        default:
            if arguments.has(.create) { check(try CreateSettings(arguments)) }
            var options = MountOptionParser()
            for list in arguments.all(.mountOptions) { try options.apply(list) }
            check(options)
        }
    } catch {
        precondition(error.status == .usage && !error.line.contains("\n"), error.line)
    }
}

private func check(_ settings: CreateSettings) {
    precondition((1...Geometry.spacesMax).contains(settings.spaces))
    precondition(KDFLimits.memoryBytes.contains(settings.kdf.memoryBytes))
    precondition(KDFLimits.passes.contains(settings.kdf.passes))
    if let size = settings.bytesPerSpace { check(size: size) }
}

/// Of any size there is a vault, or a line that says why not.
private func check(size: UInt64) {
    precondition(size > 0 && size <= Quantity.max.value)
    let segment = Geometry.segmentBytes(forSpace: size)
    precondition(Geometry.isPlausible(segmentBytes: segment))
    for segmentBytes in [Geometry.segmentBytesMin, segment] {
        if let count = try? Vault.segmentCount(size, of: segmentBytes) {
            precondition(count > 0 && count <= Geometry.segmentsMax)
            let bytes = UInt64(count * Geometry.spacesMax) * segmentBytes
            precondition(bytes >= size)
        }
    }
    _ = (sizeText(size), proposalText(size))
}

private func check(_ options: MountOptionParser) {
    let mount = options.mountOptions
    _ = options.libraryOptions(workerPath: nil)
    precondition(options.trashDays <= durationDaysMax && options.umask ?? 0 <= 0o777)
    var clock = IdleClock(seconds: mount.idleSeconds)
    precondition((clock.checkMilliseconds ?? 250) >= 250)
    _ = clock.isOver(uses: 1, open: 0, now: 0)
    precondition(!clock.isOver(uses: 1, open: 0, now: 1) || mount.idleSeconds == 0)
    _ = clock.isOver(uses: 1, open: 0, now: .max)
    // The daemon is told the options that were given.
    var again = MountOptionParser()
    try? again.apply(options.daemonList)
    precondition(again.daemonList == options.daemonList)
}

/// The answer of a mount that may not be ours.
private func fuzzAnswer(_ text: String) {
    let keys = [
        "total", "free", "available", "photos", "trashed", "thumbnails", "versions", "version_bytes",
        "unsaved",
        "bytes",
    ]
    let lines = statusText("D", Dictionary(keys.map { ($0, text) }, uniquingKeysWith: { $1 }))
    precondition(lines.split(separator: "\n").count == 6)
    precondition(answeredNumber(text) <= Quantity.max.value)
    if let cursor = CheckCursor(text) { precondition(CheckCursor(cursor.description) == cursor) }
    _ = SegmentListing([text, text + ".seg", "000000.seg"])
    if let number = SegmentLayout.number(text + ".seg") {
        precondition(
            (0..<Geometry.segmentsMax).contains(number) && SegmentLayout.name(number) == text + ".seg")
    }
}

/// Possible answers of statvfs(3) and stat(2).
private func fuzzHost(_ input: inout Input) {
    var status = statvfs()
    status.f_frsize = input.number()
    status.f_blocks = input.number()
    status.f_bavail = input.number()
    let host = HostStatus(status, typeMagic: 0)
    precondition(host.totalBytes <= Quantity.max.value && host.availableBytes <= Quantity.max.value)
    _ = Geometry.segmentBytes(forSpace: max(host.totalBytes, Geometry.spaceBytesUsual))
    var file = stat()
    file.st_size = input.number()
    file.st_blocks = input.number()
    file.st_mtim = timespec(tv_sec: input.number(), tv_nsec: input.number())
    let found = FileStatus(file)
    precondition(found.size <= Quantity.max.value && found.modified.nanoseconds < 1_000_000_000)
    _ = found.modified.timespec
    let (a, b) = (Quantity(input.number(UInt64.self)), Quantity(input.number(Int64.self)))
    precondition(a + b >= a && a - b <= a && (b.value == 0 || a * b >= a))
}

private func fuzzProgress(_ input: inout Input) {
    let (done, total, seconds) = (
        input.number(UInt64.self), input.number(UInt64.self), input.number(UInt32.self)
    )
    precondition(secondsLeft(Double(seconds), done: done, of: total) > 0)
    var state = TransferState(photosMax: Int(input.number(UInt32.self)), bytesMax: total)
    state.bytes = done
    state.photos = Int(input.number(UInt32.self))
    precondition((0...1000).contains(state.share))
    let width = Int(input.number(UInt16.self))
    precondition(state.line("Importing", seconds: Double(seconds), width: width).count <= max(width, 0))
    precondition(!sizeText(sizeSum(done, total)).isEmpty)
}
