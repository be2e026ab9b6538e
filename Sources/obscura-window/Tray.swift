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
    /// Values of properties in the text format of GVariant.
    private static let itemProperties = [
        "Category": "'ApplicationStatus'", "Id": "'Obscura'", "Title": "'Obscura'", "Status": "'Active'",
        "IconName": "'obscura'", "ItemIsMenu": "false", "Menu": "objectpath '\(menu.path)'",
    ]
    private static let menuProperties = [
        "Version": "uint32 3", "TextDirection": Language.current == .ar ? "'rtl'" : "'ltr'",
    ]
    /// Types of a method's arguments, and of its result.
    private typealias Methods = [String: (String, String)]

    /// Whether a tray is there.
    private(set) var isShown = false
    private let bus: OpaquePointer?
    private let window: MainWindow
    /// Of the menu's content.
    private var revision = 1

    init(_ bus: OpaquePointer?, _ window: MainWindow) {
        (self.bus, self.window) = (bus, window)
        guard let bus else { return }
        export(Self.item.path, Self.item.name, Self.itemProperties, ["Activate": ("i i", "")])
        let methods: Methods = [
            "GetLayout": ("i i as", "u (ia{sv}av)"), "GetGroupProperties": ("ai as", "a(ia{sv})"),
            "Event": ("i s v u", ""), "AboutToShow": ("i", "b"),
        ]
        export(
            Self.menu.path, Self.menu.name, Self.menuProperties, methods,
            "<signal name='LayoutUpdated'><arg type='u'/><arg type='i'/></signal>")
        g_bus_watch_name_on_connection(
            bus, Self.watcher, G_BUS_NAME_WATCHER_FLAGS_NONE,
            { _, _, _, data in Box<Tray>.of(data).content.register() },
            { _, _, data in Box<Tray>.of(data).content.isShown = false }, Box(self).retained, releaseBox)
        window.changed = { [unowned self] in announce() }
    }

    private func register() {
        guard let name = g_dbus_connection_get_unique_name(bus) else { return }
        isShown = true
        withVariant("('\(String(cString: name))',)") {
            g_dbus_connection_call(
                bus, Self.watcher, "/StatusNotifierWatcher", Self.watcher, "RegisterStatusNotifierItem",
                $0, nil, G_DBUS_CALL_FLAGS_NONE, -1, nil, nil, nil)
        }
    }

    /// The menu has changed.
    private func announce() {
        revision += 1
        withVariant("(uint32 \(revision), 0)") {
            g_dbus_connection_emit_signal(bus, nil, Self.menu.path, Self.menu.name, "LayoutUpdated", $0, nil)
        }
    }

    private func choose(_ entry: Int32?) {
        switch entry {
        case Self.openEntry: window.show()
        case Self.lockEntry: for vault in window.openVaults { window.lock(vault) }
        default: break
        }
    }

    /// The properties of an entry: `a{sv}`.
    private func entry(_ number: Int32) -> String {
        guard number != 0 else { return "{'children-display': <'submenu'>}" }
        let label = (number == Self.openEntry ? Word.trayOpen : .trayLock).text.replacing("'", with: "\\'")
        let isEnabled = number == Self.openEntry || !window.openVaults.isEmpty
        return "{'label': <'\(label)'>, 'enabled': <\(isEnabled)>, 'visible': <true>}"
    }

    private func answer(_ method: String, _ parameters: OpaquePointer) -> String {
        let entries = [Self.openEntry, Self.lockEntry]
        func asked() -> Int32? { Int32(parameter(0, of: parameters)) }
        switch method {
        case "Activate": choose(Self.openEntry)
        case "GetLayout":
            let children = entries.map { "<(\($0), \(entry($0)), @av [])>" }.joined(separator: ", ")
            let layout = asked() == 0 ? "(0, \(entry(0)), [\(children)])" : "(0, {}, @av [])"
            return "(uint32 \(revision), \(layout))"
        case "GetGroupProperties":
            let properties = ([0] + entries).map { "(\($0), \(entry($0)))" }
            return "([\(properties.joined(separator: ", "))],)"
        case "Event": if parameter(1, of: parameters) == "'clicked'" { choose(asked()) }
        case "AboutToShow": return "(true,)"
        default: break
        }
        return "()"
    }

    /// A parameter in the text format of GVariant.
    private func parameter(_ place: gsize, of tuple: OpaquePointer) -> String {
        guard let child = g_variant_get_child_value(tuple, place) else { return "" }
        defer { g_variant_unref(child) }
        return taking(g_variant_print(child, 0)) ?? ""
    }

    /// - Parameter more: of the description.
    private func export(
        _ path: String, _ name: String, _ properties: [String: String], _ methods: Methods,
        _ more: String = ""
    ) {
        var description = "<node><interface name='\(name)'>" + more
        for (name, value) in properties {
            withVariant(value) {
                let type = $0.map { String(cString: g_variant_get_type_string($0)) } ?? "s"
                description += "<property name='\(name)' type='\(type)' access='read'/>"
            }
        }
        for (name, types) in methods {
            description += "<method name='\(name)'>"
            for (direction, types) in [("in", types.0), ("out", types.1)] {
                for type in types.split(separator: " ") {
                    description += "<arg type='\(type)' direction='\(direction)'/>"
                }
            }
            description += "</method>"
        }
        let node = g_dbus_node_info_new_for_xml(description + "</interface></node>", nil)
        let table = UnsafeMutablePointer<GDBusInterfaceVTable>.allocate(capacity: 1)
        table.initialize(to: GDBusInterfaceVTable())
        table.pointee.method_call = { _, _, _, _, method, parameters, call, data in
            guard let method, let parameters else { return }
            let answer = Box<Tray>.of(data).content.answer(String(cString: method), parameters)
            withVariant(answer) { g_dbus_method_invocation_return_value(call, $0) }
        }
        table.pointee.get_property = { _, _, _, _, name, _, _ in
            let name = name.map { String(cString: $0) } ?? ""
            return g_variant_parse(
                nil, Tray.itemProperties[name] ?? Tray.menuProperties[name] ?? "''", nil, nil, nil)
        }
        // The table and the description live as long as the program.
        g_dbus_connection_register_object(
            bus, path, node?.pointee.interfaces[0], table, Box(self).retained, releaseBox, nil)
    }
}
