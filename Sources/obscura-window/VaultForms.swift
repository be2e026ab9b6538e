import CAdwaita
import Glibc
import LinuxIO

/// Opens a vault with a password.
final class UnlockForm: Form {
    private let vault: Vault
    private var directory = freeMountPoint()
    private let unlocked: (String, CommandEnd) -> Void
    private lazy var password = passwordField(Word.password)

    /// - Parameter unlocked: gets the directory.
    init(_ parent: Object, _ vault: Vault, _ unlocked: @escaping (String, CommandEnd) -> Void) {
        (self.vault, self.unlocked) = (vault, unlocked)
        super.init(parent, title: Word.unlockTitle.with(vault.name), accept: Word.unlockButton.text)
        let place = folderRow(Word.photosPlace, directory) { [self] in directory = $0 }
        append(preferencesGroup()).add(password.row, place)
        gtk_widget_grab_focus(password.widget)
    }

    override func submit() {
        guard isFilled(password) else { return complain(Word.typePassword.text, at: password) }
        // `--create` makes the directory, closed to programs while the vault is locked; the vault is there.
        run(
            ["mount", "--create", vault.path, directory], secrets: [password], doing: Word.unlocking.text,
            failed: { [self] end in
                guard end.status == CommandEnd.wrongPassword else { return false }
                complain(Word.wrongPassword.text, at: password)
                return true
            },
            done: { [self] in unlocked(directory, $0) })
    }
}

/// Where the next vault is mounted: `~/Photos`, or a name beside it if that is in use.
private func freeMountPoint() -> String {
    let mounts = mountTable()
    let base = String(cString: g_get_home_dir()) + "/Photos"
    return ([base] + (2...99).map { "\(base) \($0)" }).first { path in
        !mounts.contains { $0.directory == path } && isFree(path)
    } ?? base
}

/// Whether nothing has this name, or an empty directory.
private func isFree(_ path: String) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0 else { return errno == ENOENT }
    guard status.st_mode & S_IFMT == S_IFDIR, let directory = g_dir_open(path, 0, nil) else { return false }
    defer { g_dir_close(directory) }
    return g_dir_read_name(directory) == nil
}

/// Makes a vault of one of two kinds.
final class CreateForm: Form {
    private var parentDirectory = String(cString: g_get_home_dir())
    private let created: (String, CommandEnd) -> Void
    private lazy var name = textField(Word.name, "")
    private let note = paragraph("")
    private lazy var size = sizeField(proposal(), note: note, spaces: 2) { [self] in parentDirectory }
    private lazy var password = passwordField(Word.newPassword)
    private lazy var again = passwordField(Word.passwordAgain)
    private let growing = Object(gtk_check_button_new())
    private let fixed = Object(gtk_check_button_new())

    /// - Parameter created: gets the vault.
    init(_ parent: Object, _ created: @escaping (String, CommandEnd) -> Void) {
        self.created = created
        super.init(parent, title: Word.createTitle.text, accept: Word.createButton.text, height: 740)
        let folder = folderRow(Word.folder, parentDirectory) { [self] in parentDirectory = $0 }
        append(preferencesGroup()).add(name.row, folder)
        // Neither is chosen for the user.
        gtk_check_button_set_group(fixed.of(), growing.of())
        append(preferencesGroup(Word.kind.text)).add(
            kindRow(growing, Word.kindGrowing, Word.kindGrowingText),
            kindRow(fixed, Word.kindFixed, Word.kindFixedText), size.row, note)
        append(preferencesGroup(Word.password.text, Word.forgotten.text)).add(password.row, again.row)
        name.replaceText(freeName())
        for part in [size.row, note] { part.set("visible", false) }
        fixed.on("toggled") { [self] in
            for part in [size.row, note] { part.set("visible", fixed.flag("active")) }
        }
        gtk_widget_grab_focus(name.widget)
    }

    private func kindRow(_ check: Object, _ title: Word, _ text: Word) -> Object {
        let kind = actionRow(title.text, text.text).set("focusable", false).set("subtitle-lines", 0)
            .set("title-lines", 0)
        adw_action_row_add_prefix(kind.of(), check.widget)
        kind.set("activatable-widget", check)
        obscura_describe(check.named(title.text).pointer, text.text, 0)
        return kind
    }

    private func freeName() -> String {
        (["Vault"] + (2...99).map { "Vault \($0)" }).first { access("\(parentDirectory)/\($0)", F_OK) != 0 }
            ?? "Vault"
    }

    /// An eighth of the free disk for the whole vault, as obscura(1) proposes.
    private func proposal() -> String {
        let bytes = (freeBytes(parentDirectory) ?? 0) / 16
        return bytes >= 2 << 30 ? "\(bytes >> 30) GiB" : "\(max(64, bytes >> 20)) MiB"
    }

    override func submit() {
        let isFixed = fixed.flag("active")
        guard !name.text.isEmpty, !name.text.contains("/") else {
            return complain(Word.nameWrong.text, at: name)
        }
        guard isFixed || growing.flag("active") else { return complain(Word.kindMissing.text) }
        let bytes = parseSize(size.text)
        guard bytes != nil || !isFixed else { return complain(Word.sizeWrong.text, at: size) }
        guard isTypedTwice(password, again) else { return }
        let vault = parentDirectory + "/" + name.text
        let kind = isFixed ? ["--spaces", "2", "--size", sizeWord(bytes ?? 0)] : ["--spaces", "1"]
        run(
            ["create", vault] + kind, secrets: [password], doing: Word.creating.text,
            measure: isFixed ? spacesMeasure(vault, total: (bytes ?? 0) * 2, Word.filling) : nil,
            done: { [self] in created(vault, $0) })
    }
}

/// How far the file of all spaces is, by its size.
private func spacesMeasure(_ vault: String, from begun: UInt64 = 0, total: UInt64, _ word: Word) -> () -> (
    Double, String
)? {
    {
        var status = stat()
        guard stat(vault + "/spaces", &status) == 0, total > begun else { return nil }
        let bytes = min(total, max(begun, UInt64(status.st_size)))
        return (Double(bytes - begun) / Double(total - begun), word.with(sizeText(bytes), sizeText(total)))
    }
}

/// Gives an unused space a password.
final class AddSpaceForm: Form {
    private let vault: Vault
    private let added: (CommandEnd) -> Void
    private lazy var password = passwordField(Word.newPassword)
    private lazy var again = passwordField(Word.passwordAgain)
    private let kept = preferencesGroup(Word.keep.text, Word.keepText.text)
    private var keptFields: [Object] = []

    init(_ parent: Object, _ vault: Vault, _ added: @escaping (CommandEnd) -> Void) {
        (self.vault, self.added) = (vault, added)
        super.init(
            parent, title: Word.addSpaceTitle.with(vault.name), accept: Word.addButton.text, height: 560)
        append(paragraph(Word.addSpaceText.text))
        append(preferencesGroup()).add(password.row, again.row)
        let more = button(Word.anotherPassword.text) { [self] in gtk_widget_grab_focus(addKept().widget) }
        append(kept)
        addKept()
        append(more.set("halign", GTK_ALIGN_START))
        gtk_widget_grab_focus(password.widget)
    }

    @discardableResult private func addKept() -> Object {
        let field = passwordField(Word.keptPassword)
        keptFields.append(field)
        kept.add(field.row)
        return field
    }

    override func submit() {
        guard isTypedTwice(password, again) else { return }
        let given = keptFields.filter { isFilled($0) }
        if !given.isEmpty { return add(keeping: given) }
        alert(window, Word.keepNone.text, Word.keepNoneText.text, choice: Word.overwrite.text) { [self] in
            add(keeping: [])
        }
    }

    private func add(keeping given: [Object]) {
        run(
            ["space", "add", vault.path], secrets: [password] + given, doing: Word.unlocking.text,
            failed: { [self] end in
                guard end.status == CommandEnd.wrongPassword else { return false }
                complain(Word.keptWrong.text, at: given.first)
                return true
            }, done: added)
    }
}

/// Enlarges all spaces.
final class GrowForm: Form {
    private let vault: Vault
    private let grown: (CommandEnd) -> Void
    private let note = paragraph("")
    private lazy var size = sizeField(
        sizeText(vault.bytesPerSpace * 2), note: note, spaces: vault.spaces
    ) { [self] in vault.path }

    init(_ parent: Object, _ vault: Vault, _ grown: @escaping (CommandEnd) -> Void) {
        (self.vault, self.grown) = (vault, grown)
        super.init(parent, title: Word.growTitle.with(vault.name), accept: Word.growButton.text)
        append(paragraph(Word.growText.text))
        append(preferencesGroup()).add(size.row, note)
        gtk_widget_grab_focus(size.widget)
    }

    override func submit() {
        guard let bytes = parseSize(size.text), bytes > vault.bytesPerSpace else {
            return complain(Word.sizeSmall.with(sizeText(vault.bytesPerSpace)), at: size)
        }
        run(
            ["grow", vault.path, sizeWord(bytes)], doing: Word.growing.text,
            measure: spacesMeasure(
                vault.path, from: vault.bytesPerSpace * UInt64(vault.spaces),
                total: bytes * UInt64(vault.spaces), Word.filling),
            done: grown)
    }
}
