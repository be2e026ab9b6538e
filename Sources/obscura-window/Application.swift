import CAdwaita
import Glibc

/// The program: one process in a session, with one window and, where the desktop has trays, an icon there.
final class Application {
    private static let name = "obscura.Window"
    private let application = Object(adw_application_new(name, G_APPLICATION_HANDLES_OPEN))
    private var window: MainWindow?
    private var tray: Tray?

    func run() -> Int32 {
        // Desktops find the icon of a window by this name, on X11 as on Wayland.
        g_set_prgname(Self.name)
        application.on("startup") { [self] in start() }
        application.on("activate") { [self] in show() }
        let open = Box<(String) -> Void> { [self] path in
            show()
            window?.openVault(at: path)
        }
        obscura_connect_files(
            application.pointer,
            { data, files, count in
                let open = Box<(String) -> Void>.of(data).content
                for number in 0..<Int(count) {
                    guard let path = g_file_get_path(OpaquePointer(files?[number])) else { continue }
                    open(String(cString: path))
                    g_free(path)
                }
            }, open.retained, releaseBox)
        return g_application_run(application.of(), CommandLine.argc, CommandLine.unsafeArgv)
    }

    /// GTK is ready: it is not before.
    private func start() {
        if Language.current == .ar { gtk_widget_set_default_direction(GTK_TEXT_DIR_RTL) }
        g_set_application_name("Obscura")
        addAction("create", "<Control>n") { [self] in self.window?.create() }
        addAction("choose", "<Control>o") { [self] in self.window?.choose() }
        addAction("refresh", "F5") { [self] in self.window?.refresh() }
        addAction("quit", "<Control>q") { [self] in g_application_quit(application.of()) }
        let window = MainWindow(application)
        self.window = window
        tray = Tray(g_application_get_dbus_connection(application.of()), window)
        window.window.onQuestion("close-request") { [self] in
            // With an icon in a tray the way back stays, and so does the way to lock what is open.
            guard tray?.isShown == true, !window.openVaults.isEmpty else {
                g_application_quit(application.of())
                return false
            }
            gtk_widget_hide(window.window.widget)
            return true
        }
    }

    private func show() { if let window { gtk_window_present(window.window.window) } }

    private func addAction(_ name: String, _ key: String, _ body: @escaping () -> Void) {
        g_action_map_add_action(application.opaque, action(name, body).opaque)
        var keys = [strdup(key), nil]
        defer { free(keys[0]) }
        keys.withUnsafeMutableBytes {
            gtk_application_set_accels_for_action(
                application.of(), "app." + name, $0.bindMemory(to: UnsafePointer<CChar>?.self).baseAddress)
        }
    }
}

func action(_ name: String, _ body: @escaping () -> Void) -> Object {
    Object(g_simple_action_new(name, nil)).on("activate", body)
}
