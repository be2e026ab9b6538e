"""A desktop session of an ordinary user that ends without a trace: a screen that nobody sees, a window manager, a
message bus and an empty home directory, for one file manager at a time."""

import mmap
import os
import shutil
import signal
import subprocess
import tempfile
import time
import zlib

PROGRAMS = {
    "Thunar": ["thunar"], "PCManFM": ["pcmanfm"], "Nemo": ["nemo"], "Caja": ["caja", "--no-desktop"],
    "Files": ["nautilus"], "Dolphin": ["dolphin", "--new-window"],
}
USER, STILL_SECONDS, WAIT_SECONDS = 65534, 3, 900
# Of the looks at a still screen, those at which somebody may be at work.
BUSY_SHARE = 0.1
# Of processor time without anything new to see, after which a program is taken to make pictures that nobody looks at.
UNSEEN_SECONDS = 10


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout


def as_user(*words):
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *words]


class Session:
    def __init__(self, root):
        self.root, self.screen, self.bus, self.manager = root, Screen(root), None, None
        self.home = home = tempfile.mkdtemp(prefix="home-", dir=root)
        os.chown(home, USER, USER)
        # On a desktop ~/.cache is there before a file manager starts. Nemo does not make it, and keeps no picture then.
        for name in (".run", ".cache", ".config", ".config/gtk-3.0"):
            os.mkdir(f"{home}/{name}", 0o700)
            os.chown(f"{home}/{name}", USER, USER)
        with open(home + "/.config/gtk-3.0/settings.ini", "w", encoding="ascii") as settings:
            settings.write("[Settings]\ngtk-cursor-blink=false\n")
        address = f"unix:path={home}/.run/bus"
        self.environment = {
            "HOME": home, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR": home + "/.run", "TMPDIR": home,
            "DISPLAY": ":77", "LC_ALL": "C.UTF-8", "GSK_RENDERER": "cairo", "USER": "nobody",
            "DBUS_SESSION_BUS_ADDRESS": address}
        # It is root's, and would make a ~/.cache of root's, where the user's programs keep no picture.
        self.spawn(["openbox", "--sm-disable"], HOME=root)
        self.screen.wait_until_still()
        self.empty = self.screen.look()
        self.bus = self.spawn(
            as_user("dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=" + address))
        while not os.path.exists(home + "/.run/bus"):
            time.sleep(0.02)

    def spawn(self, words, **variables):
        return subprocess.Popen(
            words, env={**self.environment, **variables}, cwd=self.home, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)

    def open(self, words, folder):
        """Starts a file manager; returns when something is to be seen."""
        begun = time.monotonic()
        self.manager = self.spawn(as_user(*words, folder))
        while self.screen.look() == self.empty and time.monotonic() < begun + 60:
            time.sleep(0.02)

    def key(self, *keys):
        subprocess.run(["xdotool", "key", *keys], env=self.environment, check=True, stderr=subprocess.DEVNULL)

    def close_window(self):
        begun = time.monotonic()
        self.key("alt+F4")
        while self.screen.look() != self.empty and time.monotonic() < begun + 60:
            time.sleep(0.02)

    def end(self):
        for process in (self.manager, self.bus):
            if process:
                process.kill()
                process.wait()
        for process in filter(is_left_over, os.listdir("/proc")):
            os.kill(int(process), signal.SIGKILL)
        self.screen.end()


class Screen:
    def __init__(self, root):
        self.directory = root + "/screen"
        os.makedirs(self.directory)
        self.server = subprocess.Popen(
            ["Xvfb", ":77", "-screen", "0", "1280x900x24", "-nolisten", "tcp", "-noreset", "-fbdir", self.directory],
            stderr=subprocess.DEVNULL)
        path = self.directory + "/Xvfb_screen0"
        while not os.path.exists(path) or not os.path.getsize(path):
            time.sleep(0.1)
        with open(path, "rb") as frame:
            self.frame = mmap.mmap(frame.fileno(), 0, prot=mmap.PROT_READ)

    def look(self):
        return zlib.crc32(self.frame)

    def wait_until_still(self):
        """The moment of the last change, once nothing has changed for a while and nobody was at work: on a busy machine
        a program that waits for its turn shows nothing new either. Nemo, though, starts a thumbnailer for each photo
        of the folder, for minutes: work of which nothing is seen is not waited for. What goes as it came, as Caja's
        window blinks once or never, was no change."""
        latest, changed, end = self.look(), time.monotonic(), time.monotonic() + WAIT_SECONDS
        before = None
        begun, looks, busy, spent = changed, 0, 0, processor_seconds()
        while time.monotonic() < end:
            time.sleep(0.05)
            now = self.look()
            looks, busy = looks + 1, busy + is_user_busy()
            if before and now == before[0]:
                (latest, changed), before = before, None
            elif now != latest:
                before = latest, changed
                latest, changed = now, time.monotonic()
                begun, looks, busy, spent = changed, 0, 0, processor_seconds()
            elif time.monotonic() > begun + STILL_SECONDS:
                if busy <= looks * BUSY_SHARE or processor_seconds() > spent + UNSEEN_SECONDS:
                    break
                begun, looks, busy = time.monotonic(), 0, 0
        return changed

    def end(self):
        self.frame.close()
        self.server.terminate()
        self.server.wait()
        shutil.rmtree(self.directory)


def user_processes():
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.stat("/proc/" + process).st_uid == USER:
                yield process
        except OSError:
            pass


def is_user_busy():
    """Whether a thread of the user's has, or waits for, a processor or the disk."""
    for process in user_processes():
        try:
            for thread in os.listdir(f"/proc/{process}/task"):
                with open(f"/proc/{process}/task/{thread}/stat", encoding="utf-8", errors="replace") as stat:
                    fields = stat.read().rpartition(")")[2].split()
                # The mount's pictures are made in idle time, of which a busy machine has none: they wait for ever.
                if fields[0] in "RD" and int(fields[38]) != os.SCHED_IDLE:
                    return True
        except OSError:
            pass
    return False


def processor_seconds():
    """Of the user's living processes and those they waited for; the mount's daemon is one of them."""
    ticks = 0
    for process in user_processes():
        try:
            with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as stat:
                ticks += sum(map(int, stat.read().rpartition(")")[2].split()[11:15]))
        except OSError:
            pass
    return ticks / os.sysconf("SC_CLK_TCK")


def is_left_over(process):
    """Whether the session left it: a process of the user's that is not the mount's."""
    try:
        int(process)
        with open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as name:
            return os.stat("/proc/" + process).st_uid == USER and not name.read().startswith("obscura")
    except (OSError, ValueError):
        return False
