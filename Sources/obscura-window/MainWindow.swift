import CAdwaita
import Glibc

/// The window: a row for each vault, with its buttons and its menu.
final class MainWindow {
    let window: Object
    /// Called when something was opened or locked.
    var changed: () -> Void = {}
    private let group = preferencesGroup()
    private let stack = Object(gtk_stack_new()).set("vexpand", true)
    private let toasts = Object(adw_toast_overlay_new())
    private var rows: [String: VaultRow] = [:]
    /// Chosen while the program runs.
    private var chosen: [String] = []
    private var remembered = RememberedVaults.load() { didSet { RememberedVaults.save(remembered) } }
    private var isRefreshing = false
    private var isStale = false
    /// A vault that gets the focus when its row is there: what comes next is to unlock it.
    private var wanted: String?

    init(_ application: Object) {
        window = Object(adw_application_window_new(application.of())).set("title", "Obscura")
            .set("default-width", 560).set("default-height", 480).set("icon-name", "obscura")
        let entries = menuModel([.chooseMenu: "app.choose", .refresh: "app.refresh", .quit: "app.quit"])
        let menu = menuButton("open-menu-symbolic", Word.menu.text).set("primary", true)
            .set("menu-model", entries)
        let header = headerBar(start: button(.createMenu, create), end: menu)

        let clamp = Object(adw_clamp_new()).set("child", group.margins(24))
        let vaults = Object(gtk_scrolled_window_new()).set("child", clamp)
        let buttons = Object(gtk_box_new(GTK_ORIENTATION_HORIZONTAL, 12)).set("halign", GTK_ALIGN_CENTER)
            .append(
                button(.createMenu, create).style("pill", "suggested-action"),
                button(.chooseMenu, choose).style("pill"))
        let empty = Object(adw_status_page_new()).set("icon-name", "folder-pictures-symbolic")
            .set("title", Word.noVault.text).set("description", Word.noVaultText.text).set("child", buttons)
        gtk_stack_add_named(stack.opaque, vaults.widget, "vaults")
        gtk_stack_add_named(stack.opaque, empty.widget, "empty")
        window.set("content", verticalBox().append(header, toasts.set("child", stack)))
        // The kernel tells when a mount comes or goes, whoever mounts.
        Object(g_unix_mount_monitor_get()).on("mounts-changed") { [self] in soon(after: 300, refresh) }
        refresh()
    }

    func show() { gtk_window_present(window.window) }

    var openVaults: [Vault] { rows.values.map(\.vault).filter(\.isOpen) }

    /// Looks for vaults, and for what is mounted, anew. Several calls at once are one.
    func refresh() {
        isStale = isRefreshing
        guard !isRefreshing else { return }
        isRefreshing = true
        VaultSearch.start(remembered + chosen) { [self] found in
            _ = Command(["status", "--json"]) { [self] end in
                update(found + Vault.paths(inStatus: end.output), end.output)
                isRefreshing = false
                if isStale { refresh() }
            }
        }
    }

    private func update(_ found: [String], _ status: String) {
        let paths = Set(found.map(resolvedPath))
        // A search that began before a vault was chosen does not know it.
        for (path, row) in rows where !paths.contains(path) && !isStale {
            adw_preferences_group_remove(group.of(), row.row.widget)
            rows[path] = nil
        }
        if rows.isEmpty { wanted = wanted ?? paths.min() }
        for path in paths.sorted() { row(of: path).vault.apply(status: status) }
        gtk_stack_set_visible_child_name(stack.opaque, rows.isEmpty ? "empty" : "vaults")
        if let row = wanted.flatMap({ rows[$0] }) {
            row.takeFocus()
            wanted = nil
        }
        changed()
    }

    /// Of a vault that has none yet a new one.
    private func row(of path: String) -> VaultRow {
        if let row = rows[path] { return row }
        let row = VaultRow(Vault(path), self)
        row.isRemembered = remembered.contains(path)
        rows[path] = row
        group.add(row.row)
        askInfo(path)
        return row
    }

    func askInfo(_ path: String) {
        _ = Command(["info", path, "--json"]) { [self] in rows[path]?.vault.apply(info: $0.output) }
    }

    func choose() {
        chooseFolder(window, .chooseTitle, asksToRemember: true) { [self] path, isRemembered in
            openVault(at: path, isRemembered: isRemembered)
        }
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
        }
        _ = Command(["status", "--json"]) { [self] end in
            let row = row(of: path)
            refresh()
            row.vault.apply(status: end.output)
            row.isRemembered = remembered.contains(path)
            gtk_stack_set_visible_child_name(stack.opaque, "vaults")
            if let directory = row.vault.directory { showFolder(directory) } else { unlock(row.vault) }
        }
    }

    /// Shows a vault that was made just now.
    func show(created path: String, _ end: CommandEnd) {
        chosen.append(path)
        wanted = resolvedPath(path)
        refresh()
        say(Word.created.with(shownPath(path)), end)
    }

    func lock(_ vault: Vault, cuttingOff: Bool = false) {
        guard let row = rows[vault.path], !row.isBusy else { return }
        row.isBusy = true
        let place = vault.directory ?? vault.path
        _ = Command(["unmount", place] + (cuttingOff ? ["--end"] : [])) { [self] end in
            row.isBusy = false
            refresh()
            if end.status == 0 { return say(Word.lockedNow.with(vault.name), end) }
            show()
            // Changes that cannot be written are lost if it ends: the message says what to do.
            guard !cuttingOff, !end.message.contains("--discard") else {
                return alert(window, Word.failed.text, end.message)
            }
            let text = end.message + "\n\n" + Word.endText.text
            alert(window, Word.stillInUse.text, text, choice: .endAnyway) { [self] in
                lock(vault, cuttingOff: true)
            }
        }
    }

    func forget(_ vault: Vault) {
        remembered.removeAll { $0 == vault.path }
        chosen.removeAll { $0 == vault.path }
        rows[vault.path]?.isRemembered = false
        refresh()
    }

    /// Asks the file manager of the desktop, else the program for folders.
    func showFolder(_ directory: String) {
        guard let uri = taking(g_filename_to_uri(directory, nil, nil)) else { return }
        let fallBack: () -> Void = { g_app_info_launch_default_for_uri(uri, nil, nil) }
        guard let bus = g_application_get_default().flatMap(g_application_get_dbus_connection) else {
            return fallBack()
        }
        let name = "org.freedesktop.FileManager1"
        // A URI has neither quotation marks nor backslashes.
        withVariant("([\"\(uri)\"], '')") {
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
    func say(_ text: String?, _ end: CommandEnd) {
        if let text = text.flatMap({ taking(g_markup_escape_text($0, -1)) }) {
            adw_toast_overlay_add_toast(toasts.opaque, adw_toast_new(text))
        }
        // An unmount that takes a moment says that it waits: that is over.
        let warnings = end.lines.filter { $0.hasPrefix("/") && !$0.contains(#/[:;] waiting until /#) }
        if !warnings.isEmpty { alert(window, "Obscura", warnings.joined(separator: "\n")) }
    }
}
