import CAdwaita
import Glibc
import LinuxIO

/// The forms of vaults.
extension MainWindow {
    /// Opens a vault with a password.
    func unlock(_ vault: Vault) {
        let form = Form(window, Word.unlockTitle.with(vault.name), accept: .unlockButton)
        var directory = freeMountPoint()
        let password = form.passwordField(.password)
        let place = form.folderRow(.photosPlace, directory) { directory = $0 }
        form.append(preferencesGroup()).add(password.row, place)
        form.submit = { [self] in
            guard form.isFilled(password) else { return }
            // `--create` makes the directory, closed to programs while the vault is locked; the vault is there.
            form.run(
                ["mount", "--create", vault.path, directory], secrets: [password], doing: .unlocking,
                wrongPassword: (.wrongPassword, at: password)
            ) { [self] end in
                refresh()
                say(nil, end)
                showFolder(directory)
            }
        }
        form.show(focus: password)
    }

    /// Makes a vault of one of two kinds.
    func create() {
        let form = Form(window, Word.createTitle.text, accept: .createButton, height: 740)
        var parent = String(cString: g_get_home_dir())
        let name = form.textField(.name, firstName("Vault") { access(parent + "/" + $0, F_OK) != 0 })
        let folder = form.folderRow(.folder, parent) { parent = $0 }
        form.append(preferencesGroup()).add(name.row, folder)
        // Neither is chosen for the user.
        let (growing, fixed) = (Object(gtk_check_button_new()), Object(gtk_check_button_new()))
        gtk_check_button_set_group(fixed.of(), growing.of())
        let (size, note) = form.sizeField(proposedSize(on: parent), spaces: 2) { parent }
        form.append(preferencesGroup(.kind)).add(
            kindRow(growing, .kindGrowing, .kindGrowingText), kindRow(fixed, .kindFixed, .kindFixedText),
            size.row, note)
        let showSize = { for part in [size.row, note] { part.set("visible", fixed.isTicked) } }
        fixed.on("toggled", showSize)
        showSize()
        let (password, again) = (form.passwordField(.newPassword), form.passwordField(.passwordAgain))
        form.append(preferencesGroup(.password, .forgotten)).add(password.row, again.row)
        form.submit = { [self] in
            guard !name.isEmpty, !name.text.contains("/") else {
                return form.complain(Word.nameWrong.text, at: name)
            }
            let isFixed = fixed.isTicked
            guard isFixed || growing.isTicked else { return form.complain(Word.kindMissing.text) }
            let bytes = parseSize(size.text) ?? 0
            guard bytes > 0 || !isFixed else { return form.complain(Word.sizeWrong.text, at: size) }
            guard form.isTypedTwice(password, again) else { return }
            let vault = parent + "/" + name.text
            let kind = isFixed ? ["--spaces", "2", "--size", sizeWord(bytes)] : ["--spaces", "1"]
            form.run(
                ["create", vault] + kind, secrets: [password], doing: .creating,
                measure: isFixed ? spacesMeasure(vault, total: bytes * 2) : nil
            ) { [self] in show(created: vault, $0) }
        }
        form.show(focus: name)
    }

    /// Gives an unused space a password.
    func addSpace(_ vault: Vault) {
        let form = Form(window, Word.addSpaceTitle.with(vault.name), accept: .addButton, height: 560)
        let (password, again) = (form.passwordField(.newPassword), form.passwordField(.passwordAgain))
        form.append(paragraph(Word.addSpaceText.text))
        form.append(preferencesGroup()).add(password.row, again.row)
        let kept = form.append(preferencesGroup(.keep, .keepText))
        var fields: [Object] = []
        func addKept() {
            fields.append(form.passwordField(.keptPassword))
            kept.add(fields[fields.count - 1].row)
        }
        addKept()
        let more = button(.anotherPassword) {
            addKept()
            gtk_widget_grab_focus(fields[fields.count - 1].widget)
        }
        form.append(more.set("halign", GTK_ALIGN_START))
        func add(keeping given: [Object]) {
            form.run(
                ["space", "add", vault.path], secrets: [password] + given, doing: .unlocking,
                wrongPassword: (.keptWrong, at: given.first)
            ) { [self] in say(Word.spaceAdded.text, $0) }
        }
        form.submit = {
            guard form.isTypedTwice(password, again) else { return }
            let given = fields.filter { !$0.isEmpty }
            if !given.isEmpty { return add(keeping: given) }
            alert(form.window, Word.keepNone.text, Word.keepNoneText.text, choice: .overwrite) {
                add(keeping: [])
            }
        }
        form.show(focus: password)
    }

    /// Enlarges all spaces.
    func grow(_ vault: Vault) {
        let form = Form(window, Word.growTitle.with(vault.name), accept: .growButton)
        let (before, spaces) = (vault.bytesPerSpace, UInt64(vault.spaces))
        let (size, note) = form.sizeField(sizeText(before * 2), spaces: vault.spaces) { vault.path }
        form.append(paragraph(Word.growText.text))
        form.append(preferencesGroup()).add(size.row, note)
        form.submit = { [self] in
            guard let bytes = parseSize(size.text), bytes > before else {
                return form.complain(Word.sizeSmall.with(sizeText(before)), at: size)
            }
            form.run(
                ["grow", vault.path, sizeWord(bytes)], doing: .growing,
                measure: spacesMeasure(vault.path, from: before * spaces, total: bytes * spaces)
            ) { [self] in
                askInfo(vault.path)
                say(Word.grown.with(vault.name), $0)
            }
        }
        form.show(focus: size)
    }
}

private func kindRow(_ check: Object, _ title: Word, _ text: Word) -> Object {
    obscura_describe(check.pointer, text.text, 0)
    return controlRow(check, title, text.text, atStart: true).set("title-lines", 0).set("subtitle-lines", 0)
}

/// Where the next vault is mounted: `~/Photos`, or a name beside it if that is in use.
private func freeMountPoint() -> String {
    let mounts = mountTable()
    return firstName(String(cString: g_get_home_dir()) + "/Photos") { path in
        !mounts.contains { $0.directory == path } && isFree(path)
    }
}

/// The name, or the first of "NAME 2" to "NAME 99", for which that is true; the name if there is none.
private func firstName(_ name: String, where isUsable: (String) -> Bool) -> String {
    ([name] + (2...99).map { "\(name) \($0)" }).first(where: isUsable) ?? name
}

/// Whether nothing has this name, or an empty directory.
private func isFree(_ path: String) -> Bool {
    var status = stat()
    guard lstat(path, &status) == 0 else { return errno == ENOENT }
    guard status.st_mode & S_IFMT == S_IFDIR, let directory = g_dir_open(path, 0, nil) else { return false }
    defer { g_dir_close(directory) }
    return g_dir_read_name(directory) == nil
}

/// Half of an eighth of the free disk, as obscura(1) proposes for each of two spaces.
private func proposedSize(on disk: String) -> String {
    let bytes = (freeBytes(disk) ?? 0) / 16
    return bytes >= 2 << 30 ? "\(bytes >> 30) GiB" : "\(max(64, bytes >> 20)) MiB"
}

/// How far the file of all spaces is, by its size.
private func spacesMeasure(
    _ vault: String, from begun: UInt64 = 0, total: UInt64
) -> () -> (Double, String)? {
    {
        var status = stat()
        guard stat(vault + "/spaces", &status) == 0, total > begun else { return nil }
        let bytes = min(total, max(begun, UInt64(status.st_size)))
        return (
            Double(bytes - begun) / Double(total - begun), Word.filling.with(sizeText(bytes), sizeText(total))
        )
    }
}
