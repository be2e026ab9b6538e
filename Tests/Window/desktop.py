"""A desktop for obscura-window that nobody sees: an X server, a message bus, a window manager, and stand-ins of a file
manager and a tray, which note how they are asked. The window is driven by its keys alone, and read as a screen reader
does, by AT-SPI."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time

WAIT_SECONDS = 60

FILE_MANAGER = """<node><interface name='org.freedesktop.FileManager1'><method name='ShowFolders'>
<arg type='as' direction='in'/><arg type='s' direction='in'/></method></interface></node>"""
WATCHER = """<node><interface name='org.kde.StatusNotifierWatcher'><method name='RegisterStatusNotifierItem'>
<arg type='s' direction='in'/></method><property name='IsStatusNotifierHostRegistered' type='b' access='read'/>
</interface></node>"""


class Desktop:
    def __init__(self, programs, size="1000x860"):
        self.programs, self.processes = programs, []
        # Pictures show another home directory than that of a test.
        self.home = os.environ.get("OBSCURA_WINDOW_HOME") or tempfile.mkdtemp(prefix="obscura-window-")
        self.shown, self.items = [], []
        # Variables of the user must not reach a window of another home directory.
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        os.environ.clear()
        os.environ.update(
            kept, HOME=self.home, XDG_RUNTIME_DIR=self.home + "/.run", XDG_CONFIG_HOME=self.home + "/.config",
            XDG_DATA_HOME=self.home + "/.local/share", XDG_CACHE_HOME=self.home + "/.cache", LC_ALL="C.UTF-8",
            GSK_RENDERER="cairo", NO_AT_BRIDGE="0", GTK_THEME="", GIO_USE_VFS="local", USER="u")
        del os.environ["GTK_THEME"]
        os.makedirs(self.home + "/.run", mode=0o700)
        read, write = os.pipe()
        self.start("Xvfb", "-displayfd", str(write), "-screen", "0", size + "x24", "-nolisten", "tcp", "-noreset",
                   pass_fds=[write])
        os.close(write)
        with os.fdopen(read) as answer:
            os.environ["DISPLAY"] = ":" + answer.readline().strip()
        address = "unix:path=" + self.home + "/.run/bus"
        self.start("dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=" + address)
        os.environ["DBUS_SESSION_BUS_ADDRESS"] = address
        wait(lambda: os.path.exists(self.home + "/.run/bus"), "a message bus")
        self.start("openbox", "--sm-disable")
        self.start("picom", "--backend", "xrender")
        subprocess.run(["xsetroot", "-solid", "#3a5a78"], check=False)
        threading.Thread(target=self.serve, daemon=True).start()
        wait(lambda: self.items is not None and self.is_serving, "the stand-ins of a file manager and a tray")
        import pyatspi
        self.atspi = pyatspi

    is_serving = False

    def start(self, *words, **options):
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        self.processes.append(process)
        return process

    def serve(self):
        """Notes what a file manager is asked to show, and which icons come into the tray."""
        from gi.repository import Gio, GLib
        context = GLib.MainContext()
        context.push_thread_default()
        bus = Gio.DBusConnection.new_for_address_sync(
            os.environ["DBUS_SESSION_BUS_ADDRESS"],
            Gio.DBusConnectionFlags.AUTHENTICATION_CLIENT | Gio.DBusConnectionFlags.MESSAGE_BUS_CONNECTION, None, None)

        def called(_bus, _sender, _path, _interface, method, parameters, invocation):
            if method == "ShowFolders":
                self.shown += parameters[0]
            else:
                self.items.append(parameters[0])
            invocation.return_value(None)

        for name, path, interface in (
                ("org.freedesktop.FileManager1", "/org/freedesktop/FileManager1", FILE_MANAGER),
                ("org.kde.StatusNotifierWatcher", "/StatusNotifierWatcher", WATCHER)):
            node = Gio.DBusNodeInfo.new_for_xml(interface)
            bus.register_object(path, node.interfaces[0], called, lambda *_: GLib.Variant("b", True), None)
            bus.call_sync("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "RequestName",
                          GLib.Variant("(su)", (name, 0)), None, 0, -1, None)
        self.bus = Gio.bus_get_sync(Gio.BusType.SESSION)
        # The bus ends before this process.
        self.bus.set_exit_on_close(False)
        self.is_serving = True
        GLib.MainLoop.new(context, False).run()

    def call(self, item, path, interface, method, signature=None, *values):
        """Calls a method of an icon in the tray."""
        from gi.repository import GLib
        parameters = GLib.Variant(signature, values) if signature else None
        return self.bus.call_sync(item, path, interface, method, parameters, None, 0, 20000, None).unpack()

    def end(self):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.home, ignore_errors=True)

    # Programs

    def obscura(self, *words, passwords=(), check=True):
        """Runs the program as a user of the terminal would; returns its output."""
        words = [self.programs + "/obscura", *words] + (["--password-stdin"] if passwords else [])
        done = subprocess.run(words, input="".join(p + "\n" for p in passwords), capture_output=True, text=True)
        if check and done.returncode:
            raise AssertionError("%s: %s" % (words[1:], done.stderr))
        return done.stdout

    def window(self, *words, language=None):
        environment = dict(os.environ, **({"LC_ALL": language} if language else {}))
        return self.start(self.programs + "/obscura-window", *words, env=environment)

    # The tree of a screen reader

    def applications(self):
        found = [a for a in self.atspi.Registry.getDesktop(0) if a is not None and a.name == "obscura.Window"]
        for application in found:
            # Nothing waits for the events that would renew what is cached.
            application.set_cache_mask(0)
            application.clear_cache()
        return found

    def all(self):
        """Everything of the window that can be seen, dialogs too."""
        def below(thing):
            for number in range(thing.childCount):
                child = thing.getChildAtIndex(number)
                if child is None or not self.has(child, "VISIBLE"):
                    continue
                yield child
                yield from below(child)
        for application in self.applications():
            yield from below(application)

    def has(self, thing, state):
        return thing.getState().contains(getattr(self.atspi, "STATE_" + state))

    def is_named(self, thing, name, role=None):
        # GTK 4.8 says the label of a message's buttons twice.
        return thing.name in (name, name + " " + name) and role in (None, thing.getRoleName())

    def find(self, name, role=None):
        """The thing of this name, or None."""
        try:
            for thing in self.all():
                if self.is_named(thing, name, role):
                    return thing
        except Exception:  # The tree changes while it is read.
            pass
        return None

    def wait(self, name, role=None):
        return wait(lambda: self.find(name, role), name)

    def wait_like(self, beginning):
        def found():
            try:
                return any(thing.name.startswith(beginning) for thing in self.all())
            except Exception:  # The tree changes while it is read.
                return False
        return wait(found, beginning)

    def is_seen(self):
        """Whether a window of the program is on the screen."""
        found = subprocess.run(["xdotool", "search", "--onlyvisible", "--name", "."], capture_output=True, check=False)
        return bool(found.stdout.strip()) and any(
            self.has(thing, "SHOWING") for a in self.applications() for thing in a)

    def wait_gone(self, name, role=None):
        wait(lambda: self.find(name, role) is None, "the end of " + name)

    def tree(self):
        return "\n".join("%s | %s" % (thing.getRoleName(), thing.name) for thing in self.all())

    def focused(self):
        try:
            found = [thing for thing in self.all() if self.has(thing, "FOCUSED")]
        except Exception:  # The tree changes while it is read.
            return None
        return found[-1] if found else None

    # Keys

    def key(self, *keys):
        for key in keys:
            subprocess.run(["xdotool", "key", "--clearmodifiers", key], check=True)
            time.sleep(0.05)

    def type(self, text):
        subprocess.run(["xdotool", "type", "--clearmodifiers", "--delay", "20", text], check=True)

    def go(self, name, role=None):
        """Moves the focus by Tab until it is on the thing of this name."""
        self.wait(name)
        seen = []
        for _ in range(40):
            thing = self.focused()
            if thing is not None and self.is_named(thing, name, role):
                return thing
            seen.append(thing.name if thing is not None else None)
            self.key("Tab")
            time.sleep(0.1)
        raise AssertionError("no key leads to %s, only to %s" % (name, seen))

    def press(self, name, role=None):
        self.go(name, role)
        self.key("space")

    def picture(self, path):
        """The whole screen, a pause after the last animation."""
        time.sleep(0.7)
        subprocess.run(["import", "-window", "root", path], check=True)


def wait(condition, what, seconds=WAIT_SECONDS):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("waited in vain for " + what)


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(20)
