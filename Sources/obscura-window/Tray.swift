import CAdwaita
import Glibc

/// An icon in the tray of a desktop that has one: a StatusNotifierItem with a menu by com.canonical.dbusmenu.
///
/// The menu has two entries: *Open* shows the window, *Lock* locks all that is open.
final class Tray {
    private static let watcher = "org.kde.StatusNotifierWatcher"
    private static let item = (path: "/StatusNotifierItem", name: "org.kde.StatusNotifierItem")
    private static let menu = (path: "/MenuBar", name: "com.canonical.dbusmenu")
    private static let (openEntry, lockEntry): (Int32, Int32) = (1, 2)

    /// Whether a tray is there.
    private(set) var isShown = false
    private let bus: OpaquePointer?
    private let window: MainWindow
    /// Of the menu's content.
    private var revision = 1

    init(_ bus: OpaquePointer?, _ window: MainWindow) {
        (self.bus, self.window) = (bus, window)
        guard let bus else { return }
        export(bus, Self.item.path, Self.itemInterface)
        export(bus, Self.menu.path, Self.menuInterface)
        g_bus_watch_name_on_connection(
            bus, Self.watcher, G_BUS_NAME_WATCHER_FLAGS_NONE,
            { _, _, _, data in Box<Tray>.of(data).content.register() },
            { _, _, data in Box<Tray>.of(data).content.isShown = false }, Box(self).retained, releaseBox)
        window.changed = { [unowned self] in announce() }
    }

    private func register() {
        guard let bus, let name = g_dbus_connection_get_unique_name(bus) else { return }
        isShown = true
        call(bus, "RegisterStatusNotifierItem", "('\(String(cString: name))',)")
    }

    private func call(_ bus: OpaquePointer, _ method: String, _ parameters: String) {
        withVariant(parameters) {
            g_dbus_connection_call(
                bus, Self.watcher, "/StatusNotifierWatcher", Self.watcher, method, $0, nil,
                G_DBUS_CALL_FLAGS_NONE, -1, nil, nil, nil)
        }
    }

    /// The menu has changed.
    private func announce() {
        revision += 1
        withVariant("(uint32 \(revision), 0)") {
            g_dbus_connection_emit_signal(bus, nil, Self.menu.path, Self.menu.name, "LayoutUpdated", $0, nil)
        }
    }

    private func choose(_ entry: Int32) {
        switch entry {
        case Self.openEntry: gtk_window_present(window.window.window)
        case Self.lockEntry: for vault in window.openVaults { window.lock(vault) }
        default: break
        }
    }

    // MARK: Properties and methods

    /// Values in the text format of GVariant.
    private func property(_ name: String) -> String? {
        switch name {
        case "Category": "'ApplicationStatus'"
        case "Id", "Title": "'Obscura'"
        case "Status": "'Active'"
        case "IconName": "'obscura'"
        case "ItemIsMenu": "false"
        case "Menu": "objectpath '\(Self.menu.path)'"
        case "Version": "uint32 3"
        case "TextDirection": Language.current == .ar ? "'rtl'" : "'ltr'"
        default: nil
        }
    }

    /// The properties of an entry: `a{sv}`.
    private func entry(_ number: Int32) -> String {
        guard number != 0 else { return "{'children-display': <'submenu'>}" }
        let label = number == Self.openEntry ? Word.trayOpen : Word.trayLock
        let quoted = label.text.split(separator: "'", omittingEmptySubsequences: false).joined(
            separator: "\\'")
        let isEnabled = number == Self.openEntry || !window.openVaults.isEmpty
        return "{'label': <'\(quoted)'>, 'enabled': <\(isEnabled)>, 'visible': <true>}"
    }

    /// Nil: no such method.
    private func answer(_ method: String, _ parameters: OpaquePointer) -> String? {
        switch method {
        case "Activate":
            choose(Self.openEntry)
            return "()"
        case "GetLayout":
            let children = [Self.openEntry, Self.lockEntry].map { "<(\($0), \(entry($0)), @av [])>" }
            let isRoot = integer(parameters) == 0
            let layout =
                isRoot ? "(0, \(entry(0)), [\(children.joined(separator: ", "))])" : "(0, {}, @av [])"
            return "(uint32 \(revision), \(layout))"
        case "GetGroupProperties":
            let entries = [0, Self.openEntry, Self.lockEntry].map { "(\($0), \(entry($0)))" }
            return "([\(entries.joined(separator: ", "))],)"
        case "Event":
            if text(parameters, 1) == "clicked" { choose(integer(parameters)) }
            return "()"
        case "AboutToShow": return "(true,)"
        default: return nil
        }
    }

    /// The first child, a number.
    private func integer(_ tuple: OpaquePointer) -> Int32 {
        guard let child = g_variant_get_child_value(tuple, 0) else { return -1 }
        defer { g_variant_unref(child) }
        return g_variant_get_int32(child)
    }

    private func text(_ tuple: OpaquePointer, _ place: gsize) -> String {
        guard let child = g_variant_get_child_value(tuple, place) else { return "" }
        defer { g_variant_unref(child) }
        return String(cString: g_variant_get_string(child, nil))
    }

    // MARK: Export

    private func export(_ bus: OpaquePointer, _ path: String, _ interface: String) {
        guard let node = g_dbus_node_info_new_for_xml("<node>\(interface)</node>", nil) else { return }
        let table = UnsafeMutablePointer<GDBusInterfaceVTable>.allocate(capacity: 1)
        table.initialize(to: GDBusInterfaceVTable())
        table.pointee.method_call = { _, _, _, _, method, parameters, call, data in
            guard let method, let parameters else { return }
            let answer = Box<Tray>.of(data).content.answer(String(cString: method), parameters)
            withVariant(answer ?? "()") { g_dbus_method_invocation_return_value(call, $0) }
        }
        table.pointee.get_property = { _, _, _, _, name, _, data in
            let value = name.flatMap { Box<Tray>.of(data).content.property(String(cString: $0)) }
            return obscura_variant(value ?? "''")
        }
        // The table and the description live as long as the program.
        g_dbus_connection_register_object(
            bus, path, node.pointee.interfaces[0], table, Box(self).retained, releaseBox, nil)
    }

    private static func interface(
        _ name: String, _ properties: [String: String], _ methods: [String: (String, String)],
        _ more: String = ""
    ) -> String {
        func arguments(_ types: String, _ direction: String) -> String {
            types.split(separator: " ").map { "<arg type='\($0)' direction='\(direction)'/>" }.joined()
        }
        return "<interface name='\(name)'>"
            + properties.map { "<property name='\($0)' type='\($1)' access='read'/>" }.joined()
            + methods.map {
                "<method name='\($0)'>\(arguments($1.0, "in"))\(arguments($1.1, "out"))</method>"
            }.joined()
            + more + "</interface>"
    }

    private static let itemInterface = interface(
        item.name,
        [
            "Category": "s", "Id": "s", "Title": "s", "Status": "s", "IconName": "s", "ItemIsMenu": "b",
            "Menu": "o",
        ], ["Activate": ("i i", "")])

    private static let menuInterface = interface(
        menu.name, ["Version": "u", "TextDirection": "s"],
        [
            "GetLayout": ("i i as", "u (ia{sv}av)"), "GetGroupProperties": ("ai as", "a(ia{sv})"),
            "Event": ("i s v u", ""), "AboutToShow": ("i", "b"),
        ], "<signal name='LayoutUpdated'><arg type='u'/><arg type='i'/></signal>")
}
