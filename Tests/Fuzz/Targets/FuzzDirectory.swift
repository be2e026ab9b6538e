import Glibc
import LinuxIO
import TestSupport
import VaultCrypto
import VaultFormat

@testable import VaultStore

/// A vault's directory in the hands of others: the input says which names, sizes, links and other things are put among
/// its files, or in their place. All that commands do with a directory is done: none may die, wait for ever, follow a
/// link, or touch foreign files.
func fuzzDirectory(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes)
    let place = Playground()
    defer { place.remove() }
    let kind = input.number(UInt8.self)
    let base = kind & 1 == 0 ? BaseVault.single : BaseVault.double
    base.copy(to: place.vault)
    if kind & 2 != 0 { base.copy(to: place.copy) }
    var others: [(path: String, type: mode_t)] = []
    var count = 0
    while !input.isEmpty, count < 32 {
        others += change(&input, place)
        count += 1
    }
    // A later change may have removed or moved the file of an earlier one.
    others.removeAll { type(of: $0.path) != $0.type }
    use(place, &input)
    for other in others where type(of: other.path) != other.type {
        // The log of a backup is removed, of any kind.
        precondition(other.path.hasSuffix("/" + CopyLog.name), "\(other.path) is something else")
    }
    precondition(place.isOutsideWhole, "what lies outside was changed")
}

/// A directory in memory with a vault, a copy of it, and something outside.
private struct Playground {
    let root: String
    var vault: String { root + "/V" }
    var copy: String { root + "/C" }
    var outside: String { root + "/outside" }
    private static let text = Array("not of the vault".utf8)

    init() {
        var template = Array("/dev/shm/obscura-fuzz-XXXXXX".utf8CString)
        root = String(cString: mkdtemp(&template))
        writeFile(outside, Self.text, size: UInt64(Self.text.count))
    }

    var isOutsideWhole: Bool {
        guard let descriptor = try? LinuxCalls.shared.open(AT_FDCWD, outside, flags: O_RDONLY, mode: 0) else {
            return false
        }
        defer { close(descriptor) }
        var found = [UInt8](repeating: 0, count: 64)
        let count = (try? LinuxCalls.shared.readFully(descriptor, at: 0, into: &found)) ?? 0
        return Array(found[..<count]) == Self.text
    }

    func remove() { removeTree(root) }
}

private func removeTree(_ path: String) {
    if type(of: path) == S_IFDIR,
        let descriptor = try? LinuxCalls.shared.open(AT_FDCWD, path, flags: O_RDONLY | O_DIRECTORY, mode: 0)
    {
        defer { close(descriptor) }
        if let stream = fdopendir(dup(descriptor)) {
            while let entry = readdir(stream) {
                // Names need not be UTF-8.
                let (name, text) = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) {
                        (Array(UnsafeBufferPointer(start: $0, count: 256)), String(cString: $0))
                    }
                }
                if text == "." || text == ".." { continue }
                if unlinkat(descriptor, name, 0) == 0 { continue }
                removeTree(path + "/" + text)
            }
            closedir(stream)
        }
        rmdir(path)
    } else {
        unlink(path)
    }
}

private func type(of path: String) -> mode_t? {
    var found = stat()
    return lstat(path, &found) == 0 ? found.st_mode & mode_t(S_IFMT) : nil
}

private func writeFile(_ path: String, _ bytes: [UInt8], size: UInt64) {
    let descriptor = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    _ = write(descriptor, bytes, bytes.count)
    _ = ftruncate(descriptor, off_t(clamping: size))
}

/// A vault as it is made, but for random bytes that nobody looks at.
private struct BaseVault: Sendable {
    let files: [(path: String, head: [UInt8], size: UInt64)]
    let spaces: Int

    static let single = BaseVault(spaces: 1)
    static let double = BaseVault(spaces: 2)

    private init(spaces: Int) {
        let place = Playground()
        defer { place.remove() }
        self.spaces = spaces
        do {
            try Vault.create(
                at: place.vault, spaces: spaces, bytesPerSpace: spaces == 1 ? nil : 16 << 20,
                kdf: KDFParameters(memoryBytes: 8 << 20, passes: 1), password: TestVault.password,
                stretcher: NoStretcher(), coverBytes: 0
            ) { _, _ in }
            let vault = try VaultFiles.open(place.vault, calls: LinuxCalls.shared)
            var paths = [VaultFiles.headerName]
            let layout = try Header.read(from: vault, mayRepair: false).layout
            let count = layout.isShared ? 1 : vault.segmentCount(layout)
            paths += (0..<count).map { layout.path(SegmentPlace(space: 0, number: $0)) }
            files = try paths.map { path in
                let descriptor = try LinuxCalls.shared.open(vault.directory, path, flags: O_RDONLY, mode: 0)
                defer { close(descriptor) }
                let size = try LinuxCalls.shared.status(descriptor).size
                var head = [UInt8](repeating: 0, count: Int(min(size, HeaderLayout.fileBytes)))
                _ = try LinuxCalls.shared.readFully(descriptor, at: 0, into: &head)
                return (path, head, size)
            }
        } catch { preconditionFailure("\(error)") }
    }

    func copy(to path: String) {
        mkdir(path, 0o700)
        if spaces == 1 { mkdir(path + "/" + SegmentLayout.directoryName, 0o700) }
        for file in files { writeFile(path + "/" + file.path, file.head, size: file.size) }
    }
}

/// Passwords cost nothing here.
private struct NoStretcher: PasswordStretcher {
    func stretch(
        _ password: SecretBytes, salt: [UInt8], parameters: KDFParameters
    ) throws(VaultError) -> SecretBytes {
        SecretBytes(count: 32)
    }
}

private func chosenPath(_ input: inout Input, _ place: Playground) -> String {
    let directories = ["", "/" + SegmentLayout.directoryName, "/" + SegmentLayout.directoryName]
    let choice = input.number(UInt8.self)
    let root = choice & 0x80 == 0 ? place.vault : place.copy
    let directory = root + directories[Int(choice & 0x0F) % directories.count]
    return directory + "/" + chosenName(&input)
}

private func chosenName(_ input: inout Input) -> String {
    let kind = input.number(UInt8.self)
    switch kind % 8 {
    case 0: return SegmentLayout.name(Int(kind >> 3))
    case 1: return SegmentLayout.name(Int(input.number(UInt16.self)))
    case 2: return SegmentLayout.name(Geometry.segmentsMax - 2 + Int(kind >> 6))
    case 3: return "\(input.number(UInt64.self)).seg"
    case 4:
        return ["9223372036854775807.seg", "18446744073709551616.seg", "-00001.seg", "1.seg"][Int(kind >> 6)]
    case 5:
        return [
            VaultFiles.headerName, CopyLog.name, SegmentLayout.sharedName, SegmentLayout.directoryName,
        ][Int(kind >> 6)]
    case 6: return String(Int(kind >> 3))
    default:
        let bytes = input.take(Int(kind >> 3)).filter { $0 != 0 && $0 != UInt8(ascii: "/") }
        let name = String(decoding: bytes, as: UTF8.self)
        return ["", ".", ".."].contains(name) ? "x" : name
    }
}

private func chosenSize(_ input: inout Input) -> UInt64 {
    let kind = input.number(UInt8.self)
    let sizes: [UInt64] = [
        0, 1, 511, 512, 4096, 128 << 10, 4 << 20, 16 << 20, 1 << 40, 1 << 62, UInt64(Int64.max),
    ]
    let size = sizes[Int(kind & 0x0F) % sizes.count]
    return kind & 0x10 == 0 ? size : min(size, UInt64(Int64.max) - 1) + 1
}

/// Changes the directory. Returns the entries that are no files and must stay unchanged.
private func change(_ input: inout Input, _ place: Playground) -> [(path: String, type: mode_t)] {
    let path = chosenPath(&input, place)
    let kind = input.number(UInt8.self)
    var type = mode_t(S_IFREG)
    switch kind % 10 {
    case 0, 1:
        let bytes = input.take(Int(kind >> 4))
        writeFile(path, bytes, size: chosenSize(&input))
    case 2: if mkdir(path, 0o700) == 0 { type = mode_t(S_IFDIR) }
    case 3:
        let targets = [place.outside, "nowhere", SegmentLayout.name(0), "..", "/dev/zero", path]
        if symlink(targets[Int(kind >> 4) % targets.count], path) == 0 { type = mode_t(S_IFLNK) }
    case 4: if mkfifo(path, 0o600) == 0 { type = mode_t(S_IFIFO) }
    case 5: if mknod(path, mode_t(S_IFSOCK | 0o600), 0) == 0 { type = mode_t(S_IFSOCK) }
    case 6: unlink(path)
    case 7: rename(path, chosenPath(&input, place))
    case 8: link(path, chosenPath(&input, place))
    default: truncate(path, off_t(clamping: chosenSize(&input)))
    }
    return type == mode_t(S_IFREG) ? [] : [(path, type)]
}

/// All that the commands do with a vault's directory.
private func use(_ place: Playground, _ input: inout Input) {
    for path in [place.vault, place.copy] {
        _ = Vault.isVault(path)
        _ = try? Vault.info(path)
        _ = try? Vault.checkFiles(path)
    }
    _ = try? Vault.backup(place.vault, to: place.copy) { _, _ in }
    for isReadOnly in [true, false] { open(place.vault, isReadOnly: isReadOnly) }
    open(place.copy, isReadOnly: false)
    let sizes: [UInt64] = [1, 16 << 20, 20 << 20, 24 << 20, 1 << 50, 1 << 62, UInt64.max]
    try? Vault.grow(place.vault, bytesPerSpace: sizes[Int(input.number(UInt8.self)) % sizes.count]) { _, _ in
    }
    _ = try? Vault.headerImage(place.vault)
    _ = try? Vault.backup(place.vault, to: place.copy) { _, _ in }
}

private func open(_ path: String, isReadOnly: Bool) {
    guard
        let unlocked = try? Vault.unlock(
            path, password: TestVault.password, readOnly: isReadOnly, stretcher: NoStretcher())
    else { return }
    if !isReadOnly { try? unlocked.repairFiles() }
    guard let space = try? unlocked.openSpace(readOnly: isReadOnly) else { return }
    _ = space.sectors.capacity
    if isReadOnly { return }
    let bytes = [UInt8](repeating: 1, count: 300_000)
    let runs = try? bytes.withUnsafeBytes {
        try space.write(role: .content, content: 1, offset: 0, $0, near: nil)
    }
    if let runs { space.adopt(runs) }
    try? space.publish(space.freeze(), durable: true)
    try? space.close()
}
