import FuseBridge
import Glibc
import PhotoLibrary
import PhotoRules

/// The parsed mount options of `-o`.
struct MountOptionParser: Equatable {
    var readOnly = false
    /// `rw` was given explicitly: a vault that cannot be written is not mounted.
    var mustWrite = false
    var allowOther = false
    var noExec = false
    /// Device nodes and set-user-ID bits work only if root asks for them explicitly.
    var allowDev = false
    var allowSuid = false
    var uid: UInt32?
    var gid: UInt32?
    var umask: UInt32?
    var idleSeconds: Int?
    /// Unmount when the machine is about to sleep.
    var endsBeforeSleep = true
    var thumbnails = ThumbnailOption.on
    var trashDays = 30
    var versions = VersionPolicy.standard
    /// The root has `views`.
    var hasViews = false
    /// Remove the traces that desktop programs keep of the mount outside of it.
    var sweeps = true
    /// Take the space over from another mount that has claimed it.
    var takesOver = false
    /// Mount on a directory that has files.
    var allowsNonEmpty = false
    var subtype = "obscura"
    var passfile: String?
    var askpass: String?
    var keyfile: String?

    /// The words in --help.
    static let helpList =
        "ro, rw, allow_other, uid=, gid=, umask=,\nidle=10m, suspend=unmount|keep, passfile=, askpass=, keyfile=,\n"
        + "thumbs=on|listed|off, trash=30, versions=30|off|forever, views, sweep=on|off,\ntakeover, nonempty, "
        + "noexec, subtype="

    /// The words that have an effect here. Those that end in `=` take a value.
    static let known = [
        "ro", "rw", "allow_other", "uid=", "gid=", "umask=", "idle=", "suspend=", "passfile=", "askpass=",
        "keyfile=", "thumbs=", "trash=", "versions=", "views", "sweep=", "takeover", "nonempty", "subtype=",
        "exec", "noexec", "dev", "nodev", "suid", "nosuid",
    ]

    /// Words that mount(8), fstab and systemd pass along and that have no effect here.
    private static let ignored: Set<String> = [
        "_netdev", "async", "atime", "auto", "default_permissions", "defaults", "diratime", "dirsync",
        "group",
        "iversion", "lazytime", "loud", "mand", "noatime", "noauto", "nodiratime", "nofail", "noiversion",
        "nolazytime", "nomand", "norelatime", "nostrictatime", "nouser", "owner", "relatime", "silent",
        "strictatime", "sync", "user", "users",
    ]

    private static let ignoredPrefixes = ["x-", "X-", "comment=", "user=", "helper=", "uhelper="]

    /// Parses one comma-separated list. In a value, `\,` is a comma and `\\` a backslash.
    ///
    /// - Parameter sloppy: ignore unknown words, as mount(8)'s -s requests.
    mutating func apply(_ list: String, sloppy: Bool = false) throws(Failure) {
        for word in splitOptionList(list) where !word.isEmpty {
            if Self.ignored.contains(word) || Self.ignoredPrefixes.contains(where: { word.hasPrefix($0) }) {
                continue
            }
            let name = String(word.prefix { $0 != "=" })
            let value = name == word ? nil : String(word.dropFirst(name.count + 1))
            guard try value.map({ v throws(Failure) in try set(name, v) }) ?? set(name) else {
                if sloppy { continue }
                throw Self.unknown(name, value)
            }
        }
    }

    private mutating func set(_ name: String) -> Bool {
        switch name {
        case "ro": (readOnly, mustWrite) = (true, false)
        case "rw": (readOnly, mustWrite) = (false, true)
        case "allow_other": allowOther = true
        case "exec": noExec = false
        case "noexec": noExec = true
        case "dev": allowDev = true
        case "nodev": allowDev = false
        case "suid": allowSuid = true
        case "nosuid": allowSuid = false
        case "views": hasViews = true
        case "takeover": takesOver = true
        case "nonempty": allowsNonEmpty = true
        default: return false
        }
        return true
    }

    private mutating func set(_ name: String, _ value: String) throws(Failure) -> Bool {
        func bad(_ form: String) -> Failure { Failure(.usage, "-o \(name)=\(value)", "must be \(form)") }
        switch name {
        case "uid", "gid":
            guard let id = parseNumber(value, in: 0...UInt64(UInt32.max - 1)) else {
                throw bad("a number, as id -u or id -g prints it")
            }
            if name == "uid" { uid = UInt32(id) } else { gid = UInt32(id) }
        case "umask":
            guard let bits = parseNumber(value, in: 0...0o777, radix: 8) else {
                throw bad("an octal number up to 777")
            }
            umask = UInt32(bits)
        case "idle":
            guard let seconds = parseDuration(value) else {
                throw bad("a time, such as 90s, 10m, 2h or 1d, up to \(durationDaysMax)d")
            }
            idleSeconds = Int(seconds)
        case "suspend":
            guard ["unmount", "keep"].contains(value) else { throw bad("unmount or keep") }
            endsBeforeSleep = value == "unmount"
        case "thumbs":
            guard let option = ThumbnailOption(rawValue: value) else { throw bad("on, listed or off") }
            thumbnails = option
        case "trash":
            guard let days = parseNumber(value, in: 0...durationDaysMax) else {
                throw bad("a number of days up to \(durationDaysMax)")
            }
            trashDays = Int(days)
        case "versions":
            let days = parseNumber(value, in: 1...durationDaysMax)
            guard let policy = VersionPolicy(value, days: days.map { Int($0) }) else {
                throw bad("a number of days up to \(durationDaysMax), off or forever")
            }
            versions = policy
        case "sweep":
            guard ["on", "off"].contains(value) else { throw bad("on or off") }
            sweeps = value == "on"
        case "subtype":
            guard !value.isEmpty, value.utf8.allSatisfy(isSubtypeByte) else {
                throw bad("a word of letters, digits, '.', '_' and '-'")
            }
            subtype = value
        case "passfile", "keyfile":
            guard !value.isEmpty else { throw bad("a file") }
            if name == "passfile" { passfile = value } else { keyfile = value }
        case "askpass":
            guard !value.isEmpty else { throw bad("a shell command") }
            askpass = value
        default: return false
        }
        return true
    }

    private static func unknown(_ name: String, _ value: String?) -> Failure {
        let given = value == nil ? name : name + "="
        if known.contains(given + "=") {
            return Failure(.usage, "-o \(name)", "needs a value: \(name)=...")
        }
        if known.contains(name) { return Failure(.usage, "-o \(name)", "takes no value") }
        if name == "remount" {
            return Failure(.usage, "-o remount", "cannot be done: unmount, then mount with the other options")
        }
        let nearest = nearestWord(to: given, among: known) ?? "ro"
        return Failure(.usage, "-o \(name)", "unknown mount option: the nearest is \(nearest)")
    }

    /// The list from which the daemon parses an equal value, without the password's source.
    var daemonList: String {
        // Never empty: an empty word would be overlooked on the command line.
        var words = [readOnly ? "ro" : mustWrite ? "rw" : "defaults"]
        if allowOther { words.append("allow_other") }
        if noExec { words.append("noexec") }
        if allowDev { words.append("dev") }
        if allowSuid { words.append("suid") }
        if let uid { words.append("uid=\(uid)") }
        if let gid { words.append("gid=\(gid)") }
        if let umask { words.append("umask=" + String(umask, radix: 8)) }
        if let idleSeconds { words.append("idle=\(idleSeconds)") }
        if !endsBeforeSleep { words.append("suspend=keep") }
        if thumbnails != .on { words.append("thumbs=" + thumbnails.rawValue) }
        if trashDays != Self().trashDays { words.append("trash=\(trashDays)") }
        if versions != Self().versions { words.append("versions=" + versions.text) }
        if hasViews { words.append("views") }
        if !sweeps { words.append("sweep=off") }
        if takesOver { words.append("takeover") }
        if allowsNonEmpty { words.append("nonempty") }
        if subtype != Self().subtype { words.append("subtype=" + subtype) }
        return words.joined(separator: ",")
    }

    /// The options for FuseBridge. Device nodes and set-user-ID bits are for root only.
    var mountOptions: MountOptions {
        let byRoot = geteuid() == 0
        var options = MountOptions()
        options.readOnly = readOnly
        options.allowOther = allowOther
        options.noExec = noExec
        options.allowsNonEmpty = allowsNonEmpty
        options.allowDev = allowDev && byRoot
        options.allowSuid = allowSuid && byRoot
        options.subtype = subtype
        options.idleSeconds = idleSeconds
        return options
    }

    /// The options for PhotoLibrary: the mounting user is the one this process runs as.
    ///
    /// - Parameter workerPath: the executable that makes thumbnails.
    func libraryOptions(workerPath: String?) -> LibraryOptions {
        var options = LibraryOptions.forThisUser
        options.readOnly = readOnly
        options.allowsReadOnly = !mustWrite
        options.uid = uid
        options.gid = gid
        options.umask = umask
        options.thumbnails = thumbnails
        options.trashDays = trashDays
        options.versions = versions
        options.views = hasViews
        options.keepsTrash = true
        options.workerPath = workerPath
        return options
    }
}

extension VersionPolicy {
    fileprivate init?(_ word: String, days: Int?) {
        switch (word, days) {
        case ("off", _): self = .off
        case ("forever", _): self = .forever
        case (_, let days?): self = .days(days)
        default: return nil
        }
    }

    fileprivate var text: String {
        switch self {
        case .off: "off"
        case .forever: "forever"
        case .days(let days): "\(days)"
        }
    }
}

/// Splits at commas that no backslash precedes.
func splitOptionList(_ list: String) -> [String] {
    var words = [""]
    var escaped = false
    for character in list {
        if escaped {
            if character != ",", character != "\\" { words[words.count - 1].append("\\") }
            words[words.count - 1].append(character)
            escaped = false
        } else if character == "\\" {
            escaped = true
        } else if character == "," {
            words.append("")
        } else {
            words[words.count - 1].append(character)
        }
    }
    if escaped { words[words.count - 1].append("\\") }
    return words
}

private func isSubtypeByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "-"):
        true
    default: false
    }
}

extension LibraryOptions {
    /// The options for a library whose files belong to the user of this process.
    static var forThisUser: LibraryOptions {
        LibraryOptions(owner: (geteuid(), getegid()), mountedByRoot: geteuid() == 0)
    }
}
