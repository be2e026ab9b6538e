import PhotoLibrary
import PhotoRules

/// A mount option: a row with its name, its value, its text, how it is read, and how the daemon is told of it. The
/// parser, the help, the manual and the completions of shells follow from it. A new option is a row of `all`, and its
/// use.
struct MountOption: Sendable {
    let name: String
    /// The form of the value, in the words of an error; nil if the option takes none.
    let form: String?
    /// As help shows it; nil for a word that only undoes another.
    let shown: String?
    /// The text of the manual, in mdoc(7). Nil: the next row's text tells of both.
    let manual: String?
    /// Sets the option; false if the value has another form.
    let set: @Sendable (inout MountOptionParser, String) -> Bool
    /// The word from which the daemon reads an equal setting; nil for the default, and for what is not the daemon's.
    let word: @Sendable (MountOptionParser) -> String?

    /// As in the list of options: with `=` if it takes a value.
    var given: String { form == nil ? name : name + "=" }

    /// An option without a value.
    static func flag(
        _ name: String, isShown: Bool = true, manual: String? = nil,
        word: @escaping @Sendable (MountOptionParser) -> Bool = { _ in false },
        set: @escaping @Sendable (inout MountOptionParser) -> Void
    ) -> MountOption {
        MountOption(
            name: name, form: nil, shown: isShown ? name : nil, manual: manual,
            set: { options, _ in
                set(&options)
                return true
            },
            word: { word($0) ? name : nil })
    }

    /// An option with a value.
    ///
    /// - Parameter word: the value to tell the daemon; nil for the default, and for an option of the command alone.
    static func value(
        _ name: String, _ shown: String, form: String, manual: String? = nil,
        word: @escaping @Sendable (MountOptionParser) -> String?,
        set: @escaping @Sendable (inout MountOptionParser, String) -> Bool
    ) -> MountOption {
        MountOption(
            name: name, form: form, shown: "\(name)=\(shown)", manual: manual, set: set,
            word: { word($0).map { "\(name)=\($0)" } })
    }

    /// An option without a value that sets a property to `sets`; the daemon is told if it is true.
    static func flag(
        _ name: String, _ property: any WritableKeyPath<MountOptionParser, Bool> & Sendable,
        sets: Bool = true, isShown: Bool = true, manual: String? = nil
    ) -> MountOption {
        flag(
            name, isShown: isShown, manual: manual, word: { sets && $0[keyPath: property] },
            set: { $0[keyPath: property] = sets })
    }

    /// An option whose value is any text but the empty one. It is not the daemon's.
    static func text(
        _ name: String, _ shown: String, form: String,
        _ property: any WritableKeyPath<MountOptionParser, String?> & Sendable, manual: String? = nil
    ) -> MountOption {
        value(
            name, shown, form: form, manual: manual, word: { _ in nil },
            set: { options, text in
                options[keyPath: property] = text
                return !text.isEmpty
            })
    }

    /// The number of a user or a group.
    static func identity(
        _ name: String, _ property: any WritableKeyPath<MountOptionParser, UInt32?> & Sendable
    ) -> MountOption {
        value(
            name, "N", form: "a number, as id -u or id -g prints it",
            word: { $0[keyPath: property].map { "\($0)" } },
            set: { options, text in
                let number = parseNumber(text, in: 0...UInt64(UInt32.max - 1)).map { UInt32($0) }
                options[keyPath: property] = number
                return number != nil
            })
    }

    /// A property that is true by the first word and false by the second; true if neither is given.
    static func choice(
        _ name: String, _ yes: String, _ no: String,
        _ property: any WritableKeyPath<MountOptionParser, Bool> & Sendable, manual: String
    ) -> MountOption {
        value(
            name, "\(yes)|\(no)", form: "\(yes) or \(no)", manual: manual,
            word: { $0[keyPath: property] ? nil : no },
            set: { options, text in
                options[keyPath: property] = text == yes
                return [yes, no].contains(text)
            })
    }

    /// The options in --help, one after another.
    static let helpList = all.compactMap(\.shown).joined(separator: ", ")
}
