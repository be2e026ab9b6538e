"""A virtual machine with a desktop, seen and used from outside: its keyboard, its screen, and its power button. What is
true inside is asked of the guest agent, which changes nothing there."""

import base64
import json
import os
import socket
import subprocess
import sys
import time
import zlib

# An emulated machine beside other work is slow: a wait ends only what hangs.
WAIT_SECONDS, STILL_SECONDS = 1800, 4
KEYS = {" ": "spc", "-": "minus", ".": "dot", "/": "slash", "~": "shift-grave_accent", ",": "comma", "_": "shift-minus"}


# Of the machine's user.
LOGIN = "tree"
FIRST, SECOND, ALBUMS = "green apple pie", "blue river stone", ("Lofoten2026", "Proposal2026")
SIZE = "160 MiB"
VARIABLES = ["HOME=/home/u", "DISPLAY=:0", "XAUTHORITY=/home/u/.Xauthority", "PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8"]


class Channel:
    """Commands and their answers, a JSON object a line, by a socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        wait(lambda: self.connect(path), path)
        self.lines = self.socket.makefile("r", encoding="utf-8")

    def connect(self, path):
        try:
            self.socket.connect(path)
            return True
        except OSError:
            return False

    def call(self, command, **arguments):
        words = {"execute": command}
        if arguments:
            words["arguments"] = arguments
        self.socket.sendall(json.dumps(words).encode() + b"\n")
        for line in self.lines:
            answer = json.loads(line)
            if "error" in answer:
                raise OSError(answer["error"]["desc"])
            if "return" in answer:
                return answer["return"]
        raise EOFError("the machine has ended")


class Machine:
    """It runs as long as this object lives."""

    def __init__(self, work, words):
        self.work, self.frame = work, work + "/frame.ppm"
        self.process = subprocess.Popen([
            *words, "-m", "2560", "-smp", "2", "-device", "virtio-vga,xres=1280,yres=800", "-device",
            "virtio-keyboard-pci", "-qmp", "unix:%s/qmp,server=on,wait=off" % work, "-device", "virtio-serial",
            "-chardev", "socket,path=%s/agent,server=on,wait=off,id=agent" % work, "-device",
            "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"], stdin=subprocess.DEVNULL)
        self.attach()

    def attach(self):
        self.monitor, self.agent = Channel(self.work + "/qmp"), Channel(self.work + "/agent")
        self.monitor.call("qmp_capabilities")

    def key(self, *keys):
        """Presses keys, one after the other: "ctrl-a" is one."""
        for key in keys:
            codes = [{"type": "qcode", "data": code} for code in key.split("-")]
            self.monitor.call("send-key", keys=codes, **{"hold-time": 40})
            time.sleep(0.2)

    def type(self, text):
        for letter in text:
            self.key("shift-" + letter.lower() if letter.isupper() else KEYS.get(letter, letter))

    def look(self, path=None):
        """A number for what is on the screen; with a path, its picture too."""
        if path:
            self.monitor.call("screendump", filename=path, format="png")
        self.monitor.call("screendump", filename=self.frame)
        with open(self.frame, "rb") as frame:
            return zlib.crc32(frame.read())

    def is_drawn(self):
        """Whether more than text is on the screen."""
        self.look()
        with open(self.frame, "rb") as frame:
            return len(set(frame.read())) == 256

    def wait_until_still(self, seconds=STILL_SECONDS):
        latest, changed, end = self.look(), time.monotonic(), time.monotonic() + WAIT_SECONDS
        while time.monotonic() < min(changed + seconds, end):
            time.sleep(0.3)
            now = self.look()
            if now != latest:
                latest, changed = now, time.monotonic()

    def key_until_shown(self, key):
        """Presses a key that changes the screen."""
        before = self.look()
        self.key(key)
        wait(lambda: self.look() != before, "what %s shows" % key)
        self.wait_until_still()

    def ask(self, command):
        """The output of a command of the guest's shell, as the user; None while there is no agent."""
        words = ["--reuid=1000", "--regid=1000", "--clear-groups", "/bin/sh", "-c", "cd; " + command]
        try:
            process = self.agent.call(
                "guest-exec", path="/usr/bin/setpriv", arg=words, env=VARIABLES, **{"capture-output": True})["pid"]
        except OSError:
            return None
        while True:
            answer = self.agent.call("guest-exec-status", pid=process)
            if answer["exited"]:
                return base64.b64decode(answer.get("out-data", "")).decode(errors="replace").strip()
            time.sleep(0.5)

    def title(self):
        """Of the window that has the keys."""
        return self.ask("window=$(xprop -root _NET_ACTIVE_WINDOW | sed 's/.*# \\(0x[0-9a-f]*\\).*/\\1/');"
                        " xprop -id $window _NET_WM_NAME 2>/dev/null | sed -n 's/.* = \"\\(.*\\)\"$/\\1/p'")

    def wait_for(self, title):
        wait(lambda: self.title() == title, "the window " + title)
        self.wait_until_still()


class Trial:
    """What somebody does who has never seen a terminal."""

    def __init__(self, machine, pictures):
        self.machine, self.pictures, self.failed, self.count = machine, pictures, 0, 0

    def say(self, what, good, found=""):
        self.failed += not good
        print("machine: %s: %s%s" % ("ok" if good else "FAILED", what, "" if good else ": %s" % found), flush=True)

    def picture(self, name):
        self.count += 1
        self.machine.look("%s/%02d-%s.png" % (self.pictures, self.count, name))

    def mounted(self):
        return self.machine.ask("findmnt -rn -t fuse.obscura -o TARGET")

    def listing(self):
        """What the user sees of the albums and days."""
        return self.machine.ask("find Photos/albums Photos/moments -type f -printf '%P\\n' | sort").split("\n")

    # Steps

    def install(self):
        """By the field for commands, and the desktop's question for the password of somebody who may install."""
        machine = self.machine
        wait(machine.is_drawn, "the desktop")
        machine.wait_until_still(20)
        self.picture("desktop")
        packages = machine.ask("ls Downloads/*.deb").split("\n")
        machine.key("alt-f2")
        machine.wait_for("Application Finder")
        machine.type("pkexec apt-get -y install")
        for package in packages:
            machine.type(" /home/u/" + package)
        machine.wait_until_still()
        machine.key("ret")
        machine.wait_for("Authenticate")
        machine.type(LOGIN)
        machine.wait_until_still()
        self.picture("install")
        machine.key("ret")
        installed = "dpkg-query -W -f '${Status}\n' obscura obscura-desktop 2>/dev/null | grep -c ' installed$'"
        wait(lambda: machine.ask(installed) == "2" and machine.ask("pgrep -x apt-get") == "", "the packages")
        self.say("the packages are installed by a user", True)
        machine.wait_until_still(8)

    def start(self):
        machine = self.machine
        machine.key_until_shown("alt-f1")
        self.picture("menu")
        machine.key_until_shown("esc")
        machine.key("alt-f3")
        machine.wait_for("Application Finder")
        machine.type("obscura")
        machine.wait_until_still()
        self.picture("finder")
        machine.key("ret")
        machine.wait_for("Obscura")
        self.picture("empty")

    def create(self):
        """The button that has the focus makes a vault; then the one that unlocks it has the focus."""
        machine = self.machine
        machine.key("ret")
        machine.wait_for("Create a Vault")
        machine.key("tab", "tab", "tab", "spc")
        machine.wait_until_still()
        machine.key("tab")
        machine.type(SIZE)
        machine.key("tab")
        machine.type(FIRST)
        machine.key("tab")
        machine.type(FIRST)
        machine.wait_until_still()
        self.picture("create")
        machine.key("ret")
        machine.wait_for("Obscura")
        self.picture("created")
        info = machine.ask("obscura info --json Vault")
        self.say("a vault of two spaces of a fixed size is made", '"spaces":2' in info.replace(" ", ""), info)

    def add_space(self):
        machine = self.machine
        # From the button that unlocks to the menu beside it.
        machine.key("tab")
        machine.key_until_shown("ret")
        machine.key("ret")
        machine.wait_for("Add a Space to Vault")
        for password, keys in ((SECOND, ["tab"]), (SECOND, ["tab"]), (FIRST, [])):
            machine.type(password)
            machine.key(*keys)
        machine.wait_until_still()
        self.picture("add-space")
        machine.key("ret")
        machine.wait_for("Obscura")
        # From the menu back.
        machine.key("shift-tab")

    def unlock(self, password, name):
        """Enter on the vault's row; the password; the file manager shows its photos."""
        machine = self.machine
        machine.key("ret")
        machine.wait_for("Unlock Vault")
        machine.type(password)
        machine.wait_until_still()
        machine.key("ret")
        machine.wait_for("Photos - Thunar")
        machine.wait_until_still(10)
        self.picture(name)
        self.say("its photos are in ~/Photos", self.mounted() == "/home/u/Photos", self.mounted())
        windows = machine.ask("xwininfo -root -tree | grep -c 'Photos - Thunar'")
        self.say("one window shows them", windows == "1", windows)

    def drop(self, folder, album):
        """Makes an album, copies the photos of a folder of ~/Pictures there, and comes back to the window."""
        machine = self.machine
        machine.type("alb")
        machine.key("ret")
        machine.wait_for("albums - Thunar")
        machine.key("ctrl-shift-n")
        machine.wait_for("Create New Folder")
        machine.type(album)
        machine.key("ret")
        machine.wait_for("albums - Thunar")
        machine.type(album[:3].lower())
        machine.key("ret")
        machine.wait_for(album + " - Thunar")
        machine.key_until_shown("ctrl-n")
        machine.wait_until_still(8)
        machine.key("alt-home")
        machine.wait_for("u - Thunar")
        for name in ("Pictures", folder):
            machine.type(name[:3].lower())
            machine.key("ret")
            machine.wait_for(name + " - Thunar")
        machine.key("ctrl-a", "ctrl-c")
        machine.wait_until_still()
        machine.key("alt-f4")
        machine.wait_for(album + " - Thunar")
        machine.key("ctrl-v")
        wanted = sorted(machine.ask("ls Pictures/" + folder).split("\n"))

        def found():
            names = [path.split("/") for path in self.listing()]
            return sorted(path[-1] for path in names if path[0] == album), sorted(
                path[-1] for path in names if path[0][:2] == "20")

        wait(lambda: found() == (wanted, wanted), "the photos in the album and on their days")
        machine.wait_until_still(10)
        self.picture("dropped-" + album)
        self.say("%d photos are in the album and on their days, whole" % len(wanted), machine.ask(
            "diff -r Pictures/%s Photos/albums/%s && echo same" % (folder, album)) == "same", self.listing())
        machine.key("alt-f4")
        machine.wait_for("Obscura")

    def show(self, password, album, others):
        """Unlocks, and sees that one album is there and the other is not."""
        machine = self.machine
        self.unlock(password, "again-" + album)
        albums = machine.ask("ls Photos/albums")
        self.say("this password shows %s, and not %s" % (album, others), albums == album, albums)
        machine.key("alt-f4")
        machine.wait_for("Obscura")

    def lock(self, name):
        """The button beside the one that shows the photos."""
        machine = self.machine
        machine.key("tab", "ret")
        wait(lambda: self.mounted() == "", "the end of the mount")
        machine.wait_for("Obscura")
        self.picture(name)
        self.say("it is locked, and ~/Photos is empty and closed", machine.ask(
            "ls -A Photos; stat -c %a Photos; pgrep -f '^obscura --daemon'") == "500", self.mounted())

    def end(self):
        """The power button; then the disk is searched from outside."""
        self.machine.key("ctrl-q")
        self.machine.wait_until_still(10)
        self.machine.monitor.call("system_powerdown")
        self.machine.process.wait(WAIT_SECONDS)

    def traces(self):
        """Of photos, albums, days, passwords: outside the vault, in files of the disk."""
        disk, place = self.machine.work + "/disk", self.machine.work + "/mounted"
        os.makedirs(place)
        run("mount", "-o", "ro,loop", disk, place)
        try:
            search = ["grep", "-rlaFs", "--devices=skip"]
            for word in [FIRST, SECOND, *ALBUMS, "Photos/albums", "Photos/moments"]:
                search += ["-e", word]
            found = [path.removeprefix(place) for path in run(*search, place).split("\n") if path]
            # The program's own texts name the directories.
            own = ("/usr/lib/obscura/", "/usr/share/", "/home/u/Vault/")
            found = [path for path in found if not path.startswith(own)]
            self.say("no file outside the vault has an album's name, a path in it, or a password", not found, found)
            home = place + "/home/u/"
            thumbnails = run("find", home + ".cache/thumbnails", "-type", "f").split()
            uris = [line for path in thumbnails for line in run("strings", path).split("\n") if "file://" in line]
            folders = {line[line.index("file://"):].rsplit("/", 1)[0] for line in uris}
            print("machine: %d thumbnails, of %s" % (len(thumbnails), sorted(folders)))
            lists = run("sh", "-c", "cd '%s' && find . -name '*.xbel' -o -name '*.xml' -o -name '.xsession*'" % home)
            print("machine: lists: %s" % ", ".join(sorted(lists.split())))
        finally:
            run("umount", place)
        counts = count(disk, [FIRST, SECOND, *ALBUMS])
        self.say("no block of the whole disk has a password", not counts[FIRST] + counts[SECOND], counts)
        # Removed files are not overwritten.
        print("machine: blocks of the disk, free ones too, that have an album's name: %s" % counts)


def count(path, words):
    """How often each of the words is in a large file."""
    counts, before = dict.fromkeys(words, 0), b""
    with open(path, "rb") as file:
        while chunk := file.read(1 << 24):
            for word in words:
                found = before[1 - len(word):] + chunk
                counts[word] += found.count(word.encode()) if found.strip(b"\0") else 0
            before = chunk
    return counts


def run(*words):
    return subprocess.run(words, check=False, text=True, errors="replace", capture_output=True).stdout


def wait(condition, what, seconds=None):
    end = time.monotonic() + (seconds or WAIT_SECONDS)
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.5)
    raise AssertionError("waited in vain for " + what)


def main():
    work, pictures, *words = sys.argv[1:]
    machine = Machine(work, words)
    trial = Trial(machine, pictures)
    try:
        trial.install()
        trial.start()
        trial.create()
        trial.add_space()
        trial.unlock(FIRST, "unlocked")
        trial.drop("Holiday", ALBUMS[0])
        trial.lock("locked")
        trial.unlock(SECOND, "second")
        trial.say("the second space is empty", trial.listing() == [""], trial.listing())
        trial.drop("Present", ALBUMS[1])
        trial.lock("locked")
        for password, album, other in ((FIRST, *ALBUMS), (SECOND, *reversed(ALBUMS))):
            trial.show(password, album, other)
            trial.lock("locked")
        trial.end()
        trial.traces()
    except AssertionError as error:
        trial.say(str(error), False, "the window is %s" % machine.title())
        trial.picture("failed")
    finally:
        machine.process.kill()
        machine.process.wait()
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
