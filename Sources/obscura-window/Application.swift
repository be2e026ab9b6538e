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
        application.on("activate") { [self] in window?.show() }
        typealias Files = UnsafeMutablePointer<OpaquePointer?>
        let open: @convention(c) (UnsafeMutableRawPointer?, Files?, Int32) -> Void = { data, files, count in
            let window = Box<Application>.of(data).content.window
            window?.show()
            for number in 0..<Int(count) {
                if let path = taking(g_file_get_path(files?[number])) { window?.openVault(at: path) }
            }
        }
        application.connect("open", unsafeBitCast(open, to: GCallback.self), Box(self).retained)
        return g_application_run(application.of(), CommandLine.argc, CommandLine.unsafeArgv)
    }

    /// GTK is ready: it is not before.
    private func start() {
        if Language.current == .ar { gtk_widget_set_default_direction(GTK_TEXT_DIR_RTL) }
        g_set_application_name("Obscura")
        let window = MainWindow(application)
        self.window = window
        tray = Tray(g_application_get_dbus_connection(application.of()), window)
        let quit = { [self] in g_application_quit(application.of()) }
        addAction("create", "<Control>n", window.create)
        addAction("choose", "<Control>o", window.choose)
        addAction("refresh", "F5", window.refresh)
        addAction("quit", "<Control>q", quit)
        window.window.onClose { [self] in
            // With an icon in a tray the way back stays, and so does the way to lock what is open.
            let mustStay = tray?.isShown == true && !window.openVaults.isEmpty
            if mustStay { gtk_widget_hide(window.window.widget) } else { quit() }
            return mustStay
        }
    }

    private func addAction(_ name: String, _ key: String, _ body: @escaping () -> Void) {
        g_action_map_add_action(application.opaque, action(name).on("activate", body).opaque)
        withTexts([key]) { gtk_application_set_accels_for_action(application.of(), "app." + name, $0) }
    }
}
