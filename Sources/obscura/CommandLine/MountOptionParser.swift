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
    /// Unmount when another computer asks for the vault.
    var handsOver = false
    /// Mount on a directory that has files.
    var allowsNonEmpty = false
    var subtype = standardSubtype
    /// Shown as the mount's source, unless there is another `subtype` as well.
    var fsname: String?
    var passfile: String?
    var askpass: String?
    var keyfile: String?
    var clusterConfiguration: String?
    var clusterUser: String?

    static let standardSubtype = "obscura"

    /// Parses one comma-separated list. In a value, `\,` is a comma and `\\` a backslash.
    ///
    /// - Parameter sloppy: ignore unknown words, as mount(8)'s -s requests.
    mutating func apply(_ list: String, sloppy: Bool = false) throws(Failure) {
        for word in splitOptionList(list) where !word.isEmpty {
            if isIgnoredMountOption(word) { continue }
            let name = String(word.prefix { $0 != "=" })
            let value = name == word ? nil : String(word.dropFirst(name.count + 1))
            guard
                let option = MountOption.all.first(where: {
                    $0.name == name && ($0.form == nil) == (value == nil)
                })
            else {
                if sloppy { continue }
                throw Self.unknown(name, value)
            }
            var changed = self
            guard option.set(&changed, value ?? "") else {
                throw Failure(.usage, "-o \(word)", "must be \(option.form ?? "")")
            }
            self = changed
        }
    }

    private static func unknown(_ name: String, _ value: String?) -> Failure {
        if let known = MountOption.all.first(where: { $0.name == name }) {
            return known.form == nil
                ? Failure(.usage, "-o \(name)", "takes no value")
                : Failure(.usage, "-o \(name)", "needs a value: \(name)=...")
        }
        if name == "remount" {
            return Failure(.usage, "-o remount", "cannot be done: unmount, then mount with the other options")
        }
        let given = value == nil ? name : name + "="
        let nearest = nearestWord(to: given, among: MountOption.all.map(\.given)) ?? "ro"
        return Failure(.usage, "-o \(name)", "unknown mount option: the nearest is \(nearest)")
    }

    /// The list from which the daemon parses an equal value, without the password's source.
    var daemonList: String {
        let words = MountOption.all.compactMap { $0.word(self) }
        // Never empty: an empty word would be overlooked on the command line.
        return words.isEmpty ? "defaults" : words.joined(separator: ",")
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
        // This program finds its mounts by one of the two.
        if let fsname, subtype == Self.standardSubtype { options.fsname = fsname }
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

/// A value as `splitOptionList` reads it.
func escapedOptionValue(_ value: String) -> String {
    String(value.flatMap { $0 == "," || $0 == "\\" ? ["\\", $0] : [$0] })
}

extension LibraryOptions {
    /// The options for a library whose files belong to the user of this process.
    static var forThisUser: LibraryOptions {
        LibraryOptions(owner: (geteuid(), getegid()), mountedByRoot: geteuid() == 0)
    }
}
