import Glibc
import LinuxIO
import VaultCrypto

/// Maximum size of a key file in bytes. A photo may be one.
let keyFileBytesMax = 16 << 20

/// The contents of the key files of a command line. Each password of the command is combined with one, or with none.
struct KeyFiles {
    /// The value of --new-key-file that stands for no file.
    static let noneWord = "none"

    /// In the order given. Only `space add` uses more than the last.
    private(set) var given: [KeyFile] = []
    /// The key file that a new password is combined with.
    private(set) var forNew: KeyFile?

    /// No key files.
    init() {}

    /// One key file for all passwords; none if `path` is nil.
    ///
    /// - Parameter option: the word that error messages name.
    init(_ path: String?, option: String) throws(Failure) {
        guard let path else { return }
        given = [try readKeyFile(path, option: option)]
        forNew = given.last
    }

    /// Reads --key-file and --new-key-file.
    init(_ arguments: Arguments) throws(Failure) {
        let paths = arguments.all(.keyFile)
        for path in arguments.command == .spaceAdd ? paths : paths.suffix(1) {
            given.append(try readKeyFile(path, option: Option.keyFile.spelling))
        }
        guard let path = arguments[.newKeyFile] else {
            guard given.count < 2 else {
                throw Failure(
                    .usage, Option.keyFile.spelling,
                    "given several times: name the key file of the new password with --new-key-file")
            }
            forNew = given.last
            return
        }
        if path != Self.noneWord { forNew = try readKeyFile(path, option: Option.newKeyFile.spelling) }
    }

    /// The input for stretching a password that is in use.
    func combined(_ password: SecretBytes) -> SecretBytes {
        given.last.map { $0.combined(with: password) } ?? password
    }

    /// The input for stretching a new password.
    func combinedNew(_ password: SecretBytes) -> SecretBytes {
        forNew.map { $0.combined(with: password) } ?? password
    }
}

/// Reads a key file. Any file will do, even one that others may read: it protects by being one of many, or by being
/// kept elsewhere.
private func readKeyFile(_ path: String, option: String) throws(Failure) -> KeyFile {
    let what = "\(option) \(path)"
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { throw Failure(what, "opening the key file", .last) }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw Failure(what, "looking at the key file", .last) }
    if status.st_mode & S_IFMT == S_IFDIR { throw Failure(what, "opening the key file", Errno(EISDIR)) }
    // A pipe has no size: its length is known at its end.
    let countMax = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : keyFileBytesMax
    guard countMax <= keyFileBytesMax, let content = readToEnd(descriptor, countMax: countMax + 1) else {
        throw Failure(
            .usage, what, "larger than \(sizeText(UInt64(keyFileBytesMax))): choose a smaller file")
    }
    if content.count == 0 { throw Failure(.usage, what, "the key file is empty: choose another file") }
    return KeyFile(content)
}
