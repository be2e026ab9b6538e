import CAdwaita
import Glibc

/// The window: a row for each vault, with its buttons and its menu.
final class MainWindow {
    let window: Object
    private let group = preferencesGroup()
    private let stack = Object(gtk_stack_new())
    private let toasts = Object(adw_toast_overlay_new())
    private var rows: [String: VaultRow] = [:]
    /// Chosen while the program runs, and those that the user asked to remember.
    private var chosen: [String] = []
    private var remembered = RememberedVaults.load()
    /// Called when something was opened or locked.
    var changed: () -> Void = {}
    private var isRefreshing = false
    private var isStale = false
    /// A vault that was made, and gets the focus when its row is there: what comes next is to unlock it.
    private var wanted: String?
    /// Whether no row was shown yet: the first one gets the focus.
    private var isNew = true

    init(_ application: Object) {
        window = Object(adw_application_window_new(application.of()))
        window.set("title", "Obscura").set("default-width", 560).set("default-height", 480)
            .set("icon-name", "obscura")
        let header = Object(adw_header_bar_new())
        let create = button(Word.createMenu.text) { [self] in self.create() }
        adw_header_bar_pack_start(header.opaque, create.widget)
        let entries = g_menu_new()
        for (word, action) in [
            (Word.chooseMenu, "app.choose"), (.refresh, "app.refresh"), (.quit, "app.quit"),
        ] {
            g_menu_append(entries, word.text, action)
        }
        let menu = Object(gtk_menu_button_new()).set("icon-name", "open-menu-symbolic")
            .set("menu-model", Object(entries)).set("tooltip-text", Word.menu.text).named(Word.menu.text)
        menu.set("primary", true)
        adw_header_bar_pack_end(header.opaque, menu.widget)

        let clamp = Object(adw_clamp_new()).set("child", group.margins(24))
        let scrolled = Object(gtk_scrolled_window_new()).set("child", clamp)
        gtk_stack_add_named(stack.opaque, scrolled.widget, "vaults")
        let empty = Object(adw_status_page_new()).set("icon-name", "folder-pictures-symbolic")
            .set("title", Word.noVault.text).set("description", Word.noVaultText.text)
        let buttons = Object(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12)).set(
            "halign", GTK_ALIGN_CENTER)
        buttons.append(
            button(Word.createMenu.text) { [self] in self.create() }.style("pill", "suggested-action"),
            button(Word.chooseMenu.text) { [self] in choose() }.style("pill"))
        empty.set("child", buttons)
        gtk_stack_add_named(stack.opaque, empty.widget, "empty")
        toasts.set("child", stack.set("vexpand", true))
        adw_application_window_set_content(window.of(), verticalBox().append(header, toasts).widget)
        watchMounts()
        refresh()
    }

    var openVaults: [Vault] { rows.values.map(\.vault).filter(\.isOpen) }

    // MARK: Rows

    /// Looks for vaults, and for what is mounted, anew. Several calls at once are one.
    func refresh() {
        if isRefreshing {
            isStale = true
            return
        }
        isRefreshing = true
        VaultSearch.start(remembered + chosen) { [self] found in
            _ = Command(["status", "--json"]) { [self] end in
                update(found + Vault.paths(inStatus: end.output), end.output)
                isRefreshing = false
                if isStale {
                    isStale = false
                    refresh()
                }
            }
        }
    }

    private func update(_ found: [String], _ status: String) {
        let paths = Set(found.map(resolvedPath))
        // A search that began before a vault was chosen does not know it.
        for (path, row) in rows where !paths.contains(path) && !isStale {
            row.remove(from: group)
            rows[path] = nil
        }
        for path in paths.sorted() {
            let row = rows[path] ?? makeRow(path)
            row.vault.apply(status: status)
        }
        gtk_stack_set_visible_child_name(stack.opaque, rows.isEmpty ? "empty" : "vaults")
        if let path = wanted ?? (isNew ? paths.min() : nil), let row = rows[path] {
            row.takeFocus()
            wanted = nil
        }
        isNew = false
        changed()
    }

    private func makeRow(_ path: String) -> VaultRow {
        let row = VaultRow(Vault(path), self, isRemembered: remembered.contains(path))
        rows[path] = row
        group.add(row.row)
        askInfo(path)
        return row
    }

    private func askInfo(_ path: String) {
        _ = Command(["info", path, "--json"]) { [self] in rows[path]?.vault.apply(info: $0.output) }
    }

    /// The kernel tells when a mount comes or goes, whoever mounts.
    private func watchMounts() {
        let table = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
        guard table >= 0 else { return }
        let changed: () -> Void = { [self] in soon(after: 300) { self.refresh() } }
        g_unix_fd_add_full(
            G_PRIORITY_DEFAULT, table, GIOCondition(G_IO_ERR.rawValue | G_IO_PRI.rawValue),
            { _, _, data in
                Box<() -> Void>.of(data).content()
                return 1
            }, Box(changed).retained, releaseBox)
    }

    // MARK: Commands

    func create() {
        CreateForm(window) { [self] path, end in
            chosen.append(path)
            wanted = resolvedPath(path)
            refresh()
            say(Word.created.with(shownPath(path)), end)
        }.show()
    }

    func choose() {
        FolderForm(window, Word.chooseTitle.text, asksToRemember: true) { [self] path, isRemembered in
            openVault(at: path, isRemembered: isRemembered)
        }.show()
    }

    /// A vault, or the file in it that makes it one, that was chosen or opened in a file manager.
    func openVault(at path: String, isRemembered: Bool = false) {
        let suffix = "/" + VaultSearch.header
        let path = resolvedPath(path.hasSuffix(suffix) ? String(path.dropLast(suffix.count)) : path)
        guard access(path + suffix, F_OK) == 0 else {
            return alert(window, Word.failed.text, Word.notVault.with(shownPath(path)))
        }
        chosen.append(path)
        // A path is a line of the file.
        if isRemembered, !remembered.contains(path), !path.contains("\n") {
            remembered.append(path)
            RememberedVaults.save(remembered)
        }
        _ = Command(["status", "--json"]) { [self] end in
            let row = rows[path] ?? makeRow(path)
            refresh()
            row.vault.apply(status: end.output)
            row.setRemembered(remembered.contains(path))
            gtk_stack_set_visible_child_name(stack.opaque, "vaults")
            if let directory = row.vault.directory { showFolder(directory) } else { unlock(row.vault) }
        }
    }

    func unlock(_ vault: Vault) {
        UnlockForm(window, vault) { [self] directory, end in
            refresh()
            say(nil, end)
            showFolder(directory)
        }.show()
    }

    func lock(_ vault: Vault, cuttingOff: Bool = false) {
        guard let row = rows[vault.path], !row.isBusy else { return }
        row.isBusy = true
        let place = vault.directory ?? vault.path
        _ = Command(["unmount", place] + (cuttingOff ? ["--end"] : [])) { [self] end in
            row.isBusy = false
            refresh()
            if end.status == 0 { return say(Word.lockedNow.with(vault.name), end) }
            gtk_window_present(window.window)
            // Changes that cannot be written are lost if it ends: the message says what to do.
            guard !cuttingOff, !end.message.contains("--discard") else {
                return alert(window, Word.failed.text, end.message)
            }
            alert(
                window, Word.stillInUse.text, end.message + "\n\n" + Word.endText.text,
                choice: Word.endAnyway.text
            ) {
                [self] in lock(vault, cuttingOff: true)
            }
        }
    }

    func addSpace(_ vault: Vault) {
        AddSpaceForm(window, vault) { [self] in say(Word.spaceAdded.text, $0) }.show()
    }

    func grow(_ vault: Vault) {
        GrowForm(window, vault) { [self] in
            askInfo(vault.path)
            say(Word.grown.with(vault.name), $0)
        }.show()
    }

    func forget(_ vault: Vault) {
        remembered.removeAll { $0 == vault.path }
        chosen.removeAll { $0 == vault.path }
        RememberedVaults.save(remembered)
        rows[vault.path]?.setRemembered(false)
        refresh()
    }

    /// Asks the file manager of the desktop, else the program for folders.
    func showFolder(_ directory: String) {
        guard let uri = g_filename_to_uri(directory, nil, nil) else { return }
        let address = String(cString: uri)
        g_free(uri)
        let fallBack: () -> Void = { g_app_info_launch_default_for_uri(address, nil, nil) }
        guard let bus = g_application_get_default().flatMap(g_application_get_dbus_connection) else {
            return fallBack()
        }
        let name = "org.freedesktop.FileManager1"
        // A URI has neither quotation marks nor backslashes.
        withVariant("([\"\(address)\"], '')") {
            g_dbus_connection_call(
                bus, name, "/org/freedesktop/FileManager1", name, "ShowFolders", $0, nil,
                // However long it takes: asking another way after some seconds would show the folder twice.
                G_DBUS_CALL_FLAGS_NONE, G_MAXINT, nil,
                { bus, result, data in
                    let fallBack = Box<() -> Void>.last(data)
                    let answer = g_dbus_connection_call_finish(OpaquePointer(bus), result, nil)
                    if let answer { g_variant_unref(answer) } else { fallBack() }
                }, Box(fallBack).retained)
        }
    }

    /// Says that a command succeeded, and shows its warnings: lines that begin with a path.
    private func say(_ text: String?, _ end: CommandEnd) {
        if let text {
            let escaped = g_markup_escape_text(text, -1)
            adw_toast_overlay_add_toast(toasts.opaque, adw_toast_new(escaped))
            g_free(escaped)
        }
        // An unmount that takes a moment says that it waits: that is over.
        let warnings = end.lines.filter {
            $0.hasPrefix("/") && !$0.contains(": waiting until ") && !$0.contains("; waiting until ")
        }
        if !warnings.isEmpty { alert(window, "Obscura", warnings.joined(separator: "\n")) }
    }
}

/// The row of a vault.
final class VaultRow {
    let row: Object
    var vault: Vault { didSet { if vault != oldValue { update() } } }
    var isBusy = false { didSet { update() } }
    private let icon = Object(gtk_image_new())
    private let unlock: Object
    private let open: Object
    private let lock: Object
    private let menu: Object
    private let add = action("add") {}
    private let grow = action("grow") {}
    private let forget = action("forget") {}
    private let spinner = Object(gtk_spinner_new()).set("visible", false)
    /// Whether a button had the focus, which none can have while a command runs.
    private var isFocusDue = false

    init(_ vault: Vault, _ window: MainWindow, isRemembered: Bool) {
        self.vault = vault
        row = actionRow(vault.name)
        unlock = button(Word.unlock.text) {}
        open = button(Word.openFolder.text) {}
        lock = button(Word.lock.text) {}
        // A command that runs may outlast the row in the window.
        g_object_ref_sink(row.pointer)
        menu = Object(gtk_menu_button_new()).set("icon-name", "view-more-symbolic").style("flat")
            .set("valign", GTK_ALIGN_CENTER)
            .set("tooltip-text", Word.moreFor.with(vault.name)).named(Word.moreFor.with(vault.name))
        adw_action_row_add_prefix(row.of(), icon.widget)
        for part in [spinner, unlock, open, lock, menu] { adw_action_row_add_suffix(row.of(), part.widget) }
        unlock.on("clicked") { [unowned self, unowned window] in window.unlock(self.vault) }
        open.on("clicked") { [unowned self, unowned window] in self.vault.directory.map(window.showFolder) }
        lock.on("clicked") { [unowned self, unowned window] in window.lock(self.vault) }
        add.on("activate") { [unowned self, unowned window] in window.addSpace(self.vault) }
        grow.on("activate") { [unowned self, unowned window] in window.grow(self.vault) }
        forget.on("activate") { [unowned self, unowned window] in window.forget(self.vault) }
        let group = g_simple_action_group_new()
        for action in [add, grow, forget] { g_action_map_add_action(OpaquePointer(group), action.opaque) }
        gtk_widget_insert_action_group(row.widget, "vault", OpaquePointer(group))
        setRemembered(isRemembered)
        update()
    }

    deinit { g_object_unref(row.pointer) }

    func setRemembered(_ isRemembered: Bool) { forget.set("enabled", isRemembered) }

    /// By the button that is right next.
    func takeFocus() { gtk_widget_grab_focus(first.widget) }

    func remove(from group: Object) { adw_preferences_group_remove(group.of(), row.widget) }

    private var first: Object { vault.directory != nil ? open : vault.isLost ? lock : unlock }

    private func update() {
        var lines = [shownPath(vault.path)]
        if vault.isLost { lines.append(Word.lost.text) }
        if let place = vault.directory.map(shownPath) {
            lines.append((vault.isReadOnly ? Word.openReadOnly : Word.openIn).with(place))
            if !vault.isReadOnly { lines.append(Word.dropHere.text) }
        }
        let subtitle = lines.joined(separator: "\n")
        obscura_describe(row.set("subtitle", subtitle).pointer, subtitle, 0)
        isFocusDue = isFocusDue || gtk_widget_get_focus_child(row.widget) != nil
        icon.set("icon-name", vault.isOpen ? "changes-allow-symbolic" : "changes-prevent-symbolic")
        unlock.set("visible", !vault.isOpen)
        open.set("visible", vault.directory != nil)
        lock.set("visible", vault.isOpen)
        for button in [unlock, open, lock, menu] { button.enable(!isBusy) }
        spinner.set("visible", isBusy).set("spinning", isBusy)
        row.set("activatable-widget", first)
        // Buttons of several rows have the same label: a screen reader says the vault too.
        for (button, name) in [(unlock, Word.unlockTitle), (open, .openTitle), (lock, .lockTitle)] {
            button.named(name.with(vault.name))
        }
        if isFocusDue, !isBusy {
            takeFocus()
            isFocusDue = false
        }
        // Entries that a vault of one space does not support stay in the menu, with the reason.
        let hasSeveral = vault.spaces > 1
        add.set("enabled", hasSeveral && !vault.isOpen)
        grow.set("enabled", hasSeveral)
        let section = g_menu_new()
        let addWord = vault.grows ? Word.addSpaceOne : vault.isOpen ? Word.addSpaceOpen : Word.addSpace
        g_menu_append(section, addWord.text, "vault.add")
        g_menu_append(section, (vault.grows ? Word.growOne : Word.grow).text, "vault.grow")
        g_menu_append(section, Word.forget.text, "vault.forget")
        menu.set("menu-model", Object(section))
        g_object_unref(UnsafeMutableRawPointer(section))
    }
}
