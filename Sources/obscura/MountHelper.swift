import CShims
import Glibc
import LinuxIO

/// Names under which mount(8) runs this program.
let mountHelperNames: Set<String> = ["mount.obscura", "mount.fuse.obscura"]

private let helperSynopsis = "mount.obscura SPEC DIR [-sfnv] [-N ns] [-t type] [-o options]"

/// The command line that mount(8) passes to its helpers.
struct HelperArguments: Equatable {
    var operands: [String] = []
    var optionLists: [String] = []
    var isSloppy = false
    /// Do everything except mounting.
    var isFake = false
    /// A file below /proc, or a process ID.
    var namespace: String?

    init(_ words: [String]) throws(Failure) {
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                operands += rest
                break
            }
            guard word.hasPrefix("-"), word != "-" else {
                operands.append(word)
                continue
            }
            var letters = word.dropFirst()
            while let letter = letters.popFirst() {
                switch letter {
                case "s": isSloppy = true
                case "f": isFake = true
                case "n", "v": break
                case "o", "t", "N":
                    guard let value = letters.isEmpty ? rest.popFirst() : String(letters) else {
                        throw Failure(.usage, "-\(letter)", "needs a value: \(helperSynopsis)")
                    }
                    letters = ""
                    if letter == "o" { optionLists.append(value) }
                    if letter == "N" { namespace = value }
                default:
                    throw Failure(.usage, "-\(letter)", "unknown option: \(helperSynopsis)")
                }
            }
        }
        guard operands.count == 2, !operands.contains("") else {
            throw Failure(.usage, "mount.obscura", "two words are needed: \(helperSynopsis)")
        }
    }
}

func runMountHelper(_ words: [String]) throws(Failure) {
    // mount(8) is set-user-ID for the `user` lines of fstab; any privileges left from that are given up.
    guard setgid(getgid()) == 0, setuid(getuid()) == 0 else {
        throw Failure("mount.obscura", "giving up privileges", .last)
    }
    let arguments = try HelperArguments(words)
    var options = MountOptionParser()
    for list in arguments.optionLists { try options.apply(list, sloppy: arguments.isSloppy) }
    // mount(8) passes rw to its helpers unless ro was given.
    options.mustWrite = false
    if let namespace = arguments.namespace { try enterMountNamespace(namespace) }
    if arguments.isFake { return }
    let (vault, directory) = (arguments.operands[0], arguments.operands[1])
    let source =
        options.passwordSource ?? systemPasswordAgent(vault)
        ?? .terminal(hint: PasswordSource.mountHelperHint)
    try mount(
        MountRequest(
            vault: vault, directory: directory, words: options, source: source,
            keyFiles: options.keyFiles()))
}

/// systemd's way to ask the user at the machine; nil unless this is root without a terminal, under systemd.
private func systemPasswordAgent(_ vault: String) -> PasswordSource? {
    guard Terminal() == nil, geteuid() == 0, access("/run/systemd/system", F_OK) == 0 else { return nil }
    let program = "/usr/bin/systemd-ask-password"
    guard access(program, X_OK) == 0 else { return nil }
    let words = [program, "--id=obscura:\(vault)", "--timeout=90", "Password for \(vault):"]
    return .program(words, option: "systemd-ask-password")
}

private func enterMountNamespace(_ name: String) throws(Failure) {
    let path = name.hasPrefix("/") ? name : "/proc/\(name)/ns/mnt"
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    if descriptor < 0 { throw Failure("-N \(name)", "opening the namespace", .last) }
    defer { close(descriptor) }
    guard obscura_enter_mount_namespace(descriptor) == 0 else {
        throw Failure("-N \(name)", "entering the namespace", .last)
    }
}
