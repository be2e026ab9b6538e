#!/usr/bin/python3 -B
"""What it costs to look at a large folder: each file manager opens it, scrolls to its end and closes it, on a mount and
on plain ext4.

    folder.py OBSCURA PHOTOS DIRECTORY [PROGRAM…]

PHOTOS are the files of the folder; DIRECTORY, of root's, is for a disk image with them and with a vault of them. Each
program has an ordinary user's empty home directory each time, a screen that nobody sees, and a disk of which nothing is
in memory. Prints a table. Seconds end when nothing more changes on the screen.
"""

import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zlib

PROGRAMS = {
    "Thunar": ["thunar"], "PCManFM": ["pcmanfm"], "Nemo": ["nemo"], "Caja": ["caja", "--no-desktop"],
    "Files": ["nautilus"], "Dolphin": ["dolphin", "--new-window"],
}
USER, STILL_SECONDS, WAIT_SECONDS, PAGES = 65534, 3, 900, 40
# Of the looks at a still screen, those at which somebody may be at work.
BUSY_SHARE = 0.1
# Of processor time without anything new to see, after which a program is taken to make pictures that nobody looks at.
UNSEEN_SECONDS = 10
MIB = 1 << 20


def run(*words, **more):
    return subprocess.run(words, check=True, text=True, capture_output=True, **more).stdout


def as_user(*words):
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *words]


class Place:
    """A folder of the photos on a disk of its own, which is mounted anew for each program."""

    def __init__(self, name, root, obscura=None):
        self.name, self.image, self.disk, self.obscura = name, f"{root}/{name}.img", f"{root}/{name}", obscura
        self.mount = root + "/mount" if obscura else self.disk
        self.folder = self.mount + ("/albums/All" if obscura else "/All")

    def make(self, photos):
        os.makedirs(self.disk)
        os.makedirs(self.mount, exist_ok=True)
        os.chown(self.mount, USER, USER)
        size = sum(entry.stat().st_size for entry in os.scandir(photos))
        with open(self.image, "wb") as image:
            image.truncate(size * 3 // 2 + (2 << 30))
        run("mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", self.image)
        run("mount", "-o", "loop", self.image, self.disk)
        os.chown(self.disk, USER, USER)
        if self.obscura:
            run(*as_user(self.obscura, "create", "--spaces", "1", self.disk + "/Vault", "--password-stdin"),
                input="one\none\n")
            self.open_vault()
        run(*as_user("rsync", "-a", photos + "/", self.folder + "/"))
        if self.obscura:
            # All small pictures that are made by themselves; on a busy machine the first takes its time.
            counts = []
            while len(counts) < 6 or len(set(counts[-3:])) > 1:
                time.sleep(20)
                counts.append(self.status()["thumbnails"])
        self.leave()

    def open_vault(self):
        run(*as_user(self.obscura, "mount", self.disk + "/Vault", self.mount, "--password-stdin"), input="one\n")

    def enter(self):
        run("mount", "-o", "loop", self.image, self.disk)
        if self.obscura:
            self.open_vault()
        self.device = os.path.basename(run("findmnt", "-no", "SOURCE", self.disk).strip())
        self.before = self.counts()

    def leave(self):
        if self.obscura:
            run(*as_user(self.obscura, "unmount", self.mount))
        for _ in range(100):
            if subprocess.run(["umount", self.disk], capture_output=True).returncode == 0:
                return
            time.sleep(0.1)
        run("umount", self.disk)

    def status(self):
        return json.loads(run(*as_user(self.obscura, "status", "--json", self.mount)))

    def counts(self):
        with open(f"/sys/block/{self.device}/stat", encoding="ascii") as stat:
            counts = {"disk": int(stat.read().split()[2]) * 512}
        if self.obscura:
            counts.update(self.status()["requests"])
        return counts

    def since(self):
        now = self.counts()
        since = {name: now[name] - self.before.get(name, 0) for name in now}
        return since.pop("disk"), since


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
        of the folder, for minutes: work of which nothing is seen is not waited for."""
        latest, changed, end = self.look(), time.monotonic(), time.monotonic() + WAIT_SECONDS
        begun, looks, busy, spent = changed, 0, 0, processor_seconds()
        while time.monotonic() < end:
            time.sleep(0.05)
            now = self.look()
            looks, busy = looks + 1, busy + is_user_busy()
            if now != latest:
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
                    if stat.read().rpartition(")")[2].split()[0] in "RD":
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


def visit(words, place, root):
    """Opens, scrolls and closes; returns the figures."""
    home = tempfile.mkdtemp(prefix="home-", dir=root)
    os.chown(home, USER, USER)
    for directory in (home + "/.run", home + "/.config", home + "/.config/gtk-3.0"):
        os.mkdir(directory, 0o700)
        os.chown(directory, USER, USER)
    with open(home + "/.config/gtk-3.0/settings.ini", "w", encoding="ascii") as settings:
        settings.write("[Settings]\ngtk-cursor-blink=false\n")
    environment = {"HOME": home, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "XDG_RUNTIME_DIR": home + "/.run",
                   "TMPDIR": home, "DISPLAY": ":77", "LC_ALL": "C.UTF-8", "GSK_RENDERER": "cairo", "USER": "nobody"}

    def key(*keys):
        subprocess.run(["xdotool", "key", *keys], env=environment, check=True, stderr=subprocess.DEVNULL)

    screen = Screen(root)
    place.enter()
    session = manager = None
    try:
        # It is root's, and would make a ~/.cache of root's, where the user's programs keep no picture.
        subprocess.Popen(
            ["openbox", "--sm-disable"], env={**environment, "HOME": root}, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        screen.wait_until_still()
        empty, processor = screen.look(), processor_seconds()
        address = "unix:path=" + home + "/.run/bus"
        session = subprocess.Popen(
            as_user("dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=" + address), env=environment,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        environment["DBUS_SESSION_BUS_ADDRESS"] = address
        while not os.path.exists(home + "/.run/bus"):
            time.sleep(0.02)
        begun = time.monotonic()
        manager = subprocess.Popen(
            as_user(*words, place.folder), env=environment, cwd=home, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        while screen.look() == empty and time.monotonic() < begun + 60:
            time.sleep(0.02)
        figures = {"open": screen.wait_until_still() - begun}
        begun = time.monotonic()
        for _ in range(PAGES):
            key("Next")
            time.sleep(0.1)
        key("End")
        figures["scroll"] = screen.wait_until_still() - begun
        begun = time.monotonic()
        key("alt+F4")
        while screen.look() != empty and time.monotonic() < begun + 60:
            time.sleep(0.02)
        figures["close"] = time.monotonic() - begun
        # What thumbnailers still do for a folder that nobody looks at counts as well.
        spent, before = processor_seconds(), None
        while spent != before and time.monotonic() < begun + WAIT_SECONDS:
            time.sleep(2)
            spent, before = processor_seconds(), spent
        figures["processor"] = spent - processor
        figures["disk"], figures["requests"] = place.since()
        figures["kept"] = sum(len(files) for _, _, files in os.walk(home + "/.cache/thumbnails"))
    finally:
        for process in (manager, session):
            if process:
                process.kill()
                process.wait()
        for process in filter(is_left_over, os.listdir("/proc")):
            os.kill(int(process), signal.SIGKILL)
        screen.end()
        place.leave()
    return figures


def is_left_over(process):
    """Whether the session left it: a process of the user's that is not the mount's."""
    try:
        int(process)
        with open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as name:
            return os.stat("/proc/" + process).st_uid == USER and not name.read().startswith("obscura")
    except (OSError, ValueError):
        return False


def main():
    obscura, photos, root = map(os.path.realpath, sys.argv[1:4])
    chosen = sys.argv[4:] or list(PROGRAMS)
    root += "/folder"
    os.makedirs(root)
    os.chmod(root, 0o711)
    places = [Place("ext4", root), Place("vault", root, obscura)]
    try:
        for place in places:
            place.make(photos)
        print("| | opened | scrolled | closed | processor | read from the disk | requests | of them reads "
              "| thumbnails kept |\n|---|---|---|---|---|---|---|---|---|", flush=True)
        for name in chosen:
            for place in places:
                figures = visit(PROGRAMS[name], place, root)
                requests = figures["requests"]
                print("| %s, %s | %.1f s | %.1f s | %.1f s | %.1f s | %.0f MiB | %s | %s | %d |" % (
                    name, place.name, figures["open"], figures["scroll"], figures["close"], figures["processor"],
                    figures["disk"] / MIB, sum(requests.values()) or "", requests.get("read", ""), figures["kept"]),
                    flush=True)
    finally:
        for place in places:
            for mount in (place.mount, place.disk):
                subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        shutil.rmtree(root, ignore_errors=True)


main()
