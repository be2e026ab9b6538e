import CAdwaita

/// The row of a vault.
final class VaultRow {
    let row: Object
    var vault: Vault { didSet { if vault != oldValue { update() } } }
    var isBusy = false { didSet { update() } }
    var isRemembered = false { didSet { forget.set("enabled", isRemembered) } }
    private let icon = Object(gtk_image_new())
    private let spinner = Object(gtk_spinner_new()).set("visible", false)
    private let unlock = button(.unlock)
    private let open = button(.openFolder)
    private let lock = button(.lock)
    private let menu: Object
    private let add = action("add")
    private let grow = action("grow")
    private let forget = action("forget").set("enabled", false)
    /// Whether a button had the focus, which none can have while a command runs.
    private var isFocusDue = false

    init(_ vault: Vault, _ window: MainWindow) {
        self.vault = vault
        row = actionRow(vault.name)
        // A command that runs may outlast the row in the window.
        g_object_ref_sink(row.pointer)
        menu = menuButton("view-more-symbolic", Word.moreFor.with(vault.name)).style("flat")
            .set("valign", GTK_ALIGN_CENTER)
        adw_action_row_add_prefix(row.of(), icon.widget)
        for part in [spinner, unlock, open, lock, menu] { adw_action_row_add_suffix(row.of(), part.widget) }
        func on(_ part: Object, _ signal: String, _ command: @escaping (Vault) -> Void) {
            part.on(signal) { [unowned self] in command(self.vault) }
        }
        on(unlock, "clicked", window.unlock)
        on(open, "clicked") { $0.directory.map(window.showFolder) }
        on(lock, "clicked") { window.lock($0) }
        on(add, "activate", window.addSpace)
        on(grow, "activate", window.grow)
        on(forget, "activate", window.forget)
        let group = g_simple_action_group_new()
        for action in [add, grow, forget] { g_action_map_add_action(OpaquePointer(group), action.opaque) }
        gtk_widget_insert_action_group(row.widget, "vault", OpaquePointer(group))
        update()
    }

    deinit { g_object_unref(row.pointer) }

    /// By the button that is right next.
    func takeFocus() { gtk_widget_grab_focus(first.widget) }

    private var first: Object { vault.directory != nil ? open : vault.isLost ? lock : unlock }

    private func update() {
        var lines = [shownPath(vault.path)]
        if vault.isLost { lines.append(Word.lost.text) }
        if let place = vault.directory.map(shownPath) {
            lines.append((vault.isReadOnly ? Word.openReadOnly : .openIn).with(place))
            if !vault.isReadOnly { lines.append(Word.dropHere.text) }
        }
        let subtitle = lines.joined(separator: "\n")
        obscura_describe(row.set("subtitle", subtitle).pointer, subtitle, 0)
        isFocusDue = isFocusDue || gtk_widget_get_focus_child(row.widget) != nil
        icon.set("icon-name", vault.isOpen ? "changes-allow-symbolic" : "changes-prevent-symbolic")
        row.set("activatable-widget", first)
        // Buttons of several rows have the same label: a screen reader says the vault too, and the row's name no more.
        unlock.set("visible", !vault.isOpen).named(Word.unlockTitle.with(vault.name))
        open.set("visible", vault.directory != nil).named(Word.openTitle.with(vault.name))
        lock.set("visible", vault.isOpen).named(Word.lockTitle.with(vault.name))
        for button in [unlock, open, lock, menu] { button.set("sensitive", !isBusy) }
        spinner.set("visible", isBusy).set("spinning", isBusy)
        if isFocusDue, !isBusy {
            takeFocus()
            isFocusDue = false
        }
        // Entries that a vault of one space does not support stay in the menu, with the reason.
        let hasSeveral = vault.spaces > 1
        add.set("enabled", hasSeveral && !vault.isOpen)
        grow.set("enabled", hasSeveral)
        let addWord = vault.grows ? Word.addSpaceOne : vault.isOpen ? .addSpaceOpen : .addSpace
        let entries = menuModel([
            addWord: "vault.add", vault.grows ? .growOne : .grow: "vault.grow", .forget: "vault.forget",
        ])
        menu.set("menu-model", entries)
        g_object_unref(entries.pointer)
    }
}
