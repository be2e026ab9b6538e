#!/usr/bin/env python3
"""The desktop window, by its keys alone, read as a screen reader does: vaults of both kinds are made, unlocked, locked,
grown, given a space, chosen, remembered and forgotten, in six languages.

    window.py PROGRAMS [PICTURES [STEP…]]

PROGRAMS is a directory with obscura, obscura-worker and obscura-window; in PICTURES, unless it is -, a picture of each
step is left. Run by scripts/window --test. Exit 1 if anything was not as it should be.
"""

import json
import os
import signal
import stat
import subprocess
import sys
import time
import traceback

from desktop import Desktop, stop, wait

ALBUM, HIDDEN = "correct horse", "battery staple"


class Trial:
    def __init__(self, desktop, pictures):
        self.desktop, self.pictures, self.failed, self.count = desktop, pictures, 0, 0
        self.vault, self.photos = desktop.home + "/Vault", desktop.home + "/Photos"

    def say(self, what, good, found=""):
        self.failed += not good
        print("%s %s %s" % ("ok " if good else "BAD", what, "" if good else found), flush=True)

    def picture(self, name):
        if self.pictures:
            path = "%s/window-%s.png" % (self.pictures, name)
            self.desktop.picture(path)
            subprocess.run(["convert", path, "-trim", "+repage", "-strip", path], check=True)
            subprocess.run(["pngquant", "--force", "--ext", ".png", "--speed", "1", "32", path], check=True)

    def mounts(self):
        with open("/proc/self/mountinfo", encoding="utf-8") as table:
            return [line.split()[4] for line in table if " fuse.obscura " in line and self.desktop.home in line]

    def fill(self, field, text):
        self.desktop.go(field)
        self.desktop.key("ctrl+a", "Delete")
        self.desktop.type(text)

    def choose_in_menu(self, vault, entry):
        self.desktop.press("More for " + vault)
        self.desktop.wait(entry)
        for _ in range(6):
            thing = self.desktop.focused()
            if thing is not None and thing.name == entry:
                return self.desktop.key("Return")
            self.desktop.key("Down")
            time.sleep(0.2)
        raise AssertionError("no key leads to " + entry)

    # Steps

    def create(self):
        desktop = self.desktop
        self.picture("empty")
        desktop.press("Create…")
        desktop.wait("Create a Vault", "dialog")
        checked = [thing.name for thing in desktop.all() if desktop.has(thing, "CHECKED")]
        self.say("no kind is chosen before the user does", checked == [], checked)
        self.fill_passwords()
        desktop.wait("Choose one of the two kinds.")
        focused = desktop.focused()
        self.say("a screen reader says so", focused is not None and focused.name.startswith("Choose one"), focused)
        self.say("a kind must be chosen", not os.path.exists(self.vault))
        desktop.press("Fixed size, with room for a second password")
        self.fill("Size for each password", "4 GiB")
        desktop.wait_like("4 GiB: room for at least 1,000 photos of 4 MB. The vault takes 8 GiB at once;")
        self.picture("create")
        self.fill("Size for each password", "64 MiB")
        self.fill("The same again", "other")
        desktop.key("Return")
        desktop.wait("The two passwords differ. Type the same one twice.")
        self.fill("The same again", ALBUM)
        desktop.press("Create")
        desktop.wait("Unlock Vault")
        info = json.loads(desktop.obscura("info", self.vault, "--json"))
        focused = desktop.focused()
        self.say("Enter unlocks it next", focused is not None and focused.name == "Unlock Vault", focused)
        self.say("a vault of two spaces is made", (info["spaces"], info["bytes_per_space"]) == (2, 64 << 20), info)

    def begin_creating(self, name):
        self.desktop.key("ctrl+n")
        self.desktop.wait("Create a Vault", "dialog")
        self.fill("Name", name)

    def fill_passwords(self):
        self.fill("New password", ALBUM)
        self.fill("The same again", ALBUM)
        self.desktop.key("Return")

    def cancel(self):
        """While the vault is filled the dialog says how far that is, and can give up."""
        desktop = self.desktop
        self.begin_creating("Large")
        desktop.press("Fixed size, with room for a second password")
        self.fill("Size for each password", "1 GiB")
        self.fill_passwords()
        wait(lambda: os.path.exists(desktop.home + "/Large/spaces"), "the filling")
        self.picture("filling")
        desktop.key("Escape")
        desktop.wait_gone("Create a Vault", "dialog")
        self.say("nothing is left of a vault that was given up", not os.path.exists(desktop.home + "/Large"))

    def unlock(self, password, name="Vault"):
        self.desktop.press("Unlock " + name, "push button")
        self.desktop.wait("Unlock " + name, "dialog")
        self.desktop.go("Password", "password text")
        self.desktop.type(password)
        self.desktop.key("Return")

    def wrong_then_right(self):
        desktop = self.desktop
        self.unlock("wrong")
        desktop.wait("Nothing opens with this password. Check it and try again.")
        focused = desktop.focused()
        self.say("the field has the focus again", focused is not None and focused.getRoleName() == "password text")
        said = focused.description
        self.say("a screen reader says what is wrong with it", "Nothing opens" in said, said)
        self.picture("wrong")
        self.say("nothing is mounted", self.mounts() == [], self.mounts())
        # The wrong password is selected: typing replaces it.
        desktop.type(ALBUM)
        desktop.key("Return")
        desktop.wait("Lock Vault", "push button")
        self.say("the right one mounts in ~/Photos", self.mounts() == [self.photos], self.mounts())
        wait(lambda: desktop.shown, "the file manager")
        self.say("the file manager shows it", desktop.shown == ["file://" + self.photos], desktop.shown)
        os.mkdir(self.photos + "/albums/Alps")
        self.picture("open")

    def lock(self):
        desktop = self.desktop
        desktop.press("Lock Vault", "push button")
        desktop.wait("Unlock Vault", "push button")
        focused = desktop.focused()
        self.say("Enter unlocks it again", focused is not None and focused.name == "Unlock Vault", focused)
        self.say("it is locked", self.mounts() == [], self.mounts())
        mode = stat.S_IMODE(os.stat(self.photos).st_mode)
        self.say("no program can leave photos there in clear", mode == 0o500, oct(mode))

    def lock_slowly(self):
        """The program says that it waits for a mount that is slow: that is no warning once it has ended."""
        desktop = self.desktop
        self.unlock(ALBUM)
        desktop.wait("Lock Vault", "push button")
        daemon = subprocess.run(["pgrep", "-f", "obscura --daemon .* " + self.photos], capture_output=True, check=True)
        process = int(daemon.stdout)
        os.kill(process, signal.SIGSTOP)
        desktop.press("Lock Vault", "push button")
        # Longer than it waits before it says so.
        time.sleep(6)
        os.kill(process, signal.SIGCONT)
        desktop.wait("Unlock Vault", "push button")
        time.sleep(1)
        words = [thing.name for thing in desktop.all() if "waiting" in thing.name]
        self.say("nothing is said of a wait that is over", words == [], words)

    def lock_in_use(self):
        desktop = self.desktop
        self.unlock(ALBUM)
        desktop.wait("Lock Vault", "push button")
        user = desktop.start("sleep", "1000", cwd=self.photos + "/albums")
        desktop.press("Lock Vault", "push button")
        desktop.wait("Still in Use")
        self.picture("in-use")
        desktop.key("Escape")
        desktop.wait_gone("Still in Use")
        self.say("it stays open if so wished", self.mounts() == [self.photos], self.mounts())
        desktop.press("Lock Vault", "push button")
        desktop.wait("Still in Use")
        desktop.press("End Anyway", "push button")
        desktop.wait("Unlock Vault", "push button")
        self.say("it is ended all the same if so wished", self.mounts() == [], self.mounts())
        stop(user)

    def add_space(self):
        desktop = self.desktop
        self.choose_in_menu("Vault", "Add Space…")
        desktop.wait("Add a Space to Vault", "dialog")
        self.fill("New password", HIDDEN)
        self.fill("The same again", HIDDEN)
        desktop.press("Add")
        desktop.wait("Keep No Space?")
        desktop.key("Escape")
        desktop.wait_gone("Keep No Space?")
        self.fill("Password to keep", "mistyped")
        desktop.press("Add")
        desktop.wait("One of the passwords to keep opens nothing. Check each of them.")
        self.fill("Password to keep", ALBUM)
        self.picture("add-space")
        desktop.press("Add")
        desktop.wait_gone("Add a Space to Vault")
        desktop.wait("Unlock Vault", "push button")
        for password, albums in ((HIDDEN, []), (ALBUM, ["Alps"])):
            self.unlock(password)
            desktop.wait("Lock Vault", "push button")
            found = os.listdir(self.photos + "/albums")
            self.say("each password opens its own space", found == albums, found)
            # What was said before is gone by then.
            time.sleep(6)
            words = {thing.name for thing in desktop.all()}
            self.words = getattr(self, "words", words)
            self.say("the window shows the same for both", self.words == words, self.words ^ words)
            desktop.press("Lock Vault", "push button")
            desktop.wait("Unlock Vault", "push button")

    def grow(self):
        desktop = self.desktop
        self.choose_in_menu("Vault", "Grow…")
        desktop.wait("Grow Vault", "dialog")
        self.fill("Size for each password", "32 MiB")
        desktop.key("Return")
        desktop.wait_like("Write a size above 64 MiB")
        self.fill("Size for each password", "99999999999999999999 TiB")
        desktop.wait_like("1 EiB: room for")
        self.fill("Size for each password", "96 MiB")
        self.picture("grow")
        desktop.key("Return")
        desktop.wait_gone("Grow Vault")
        info = json.loads(desktop.obscura("info", self.vault, "--json"))
        self.say("every space has grown", info["bytes_per_space"] == 96 << 20, info)

    def create_growing(self):
        desktop = self.desktop
        self.begin_creating("Family & Friends")
        desktop.press("One password, grows with its photos")
        self.fill_passwords()
        desktop.wait("Unlock Family & Friends", "push button")
        info = json.loads(desktop.obscura("info", desktop.home + "/Family & Friends", "--json"))
        self.say("a vault that grows is made", info["grows"], info)
        desktop.press("More for Family & Friends")
        reason = desktop.wait("Add Space (this vault is for one password)")
        self.say("no space can be added to it, and why", not desktop.has(reason, "SENSITIVE"))
        self.picture("one-space")
        desktop.key("Escape")

    def double_click(self):
        desktop = self.desktop
        second = desktop.window(self.vault + "/obscura.vault")
        desktop.wait("Unlock Vault", "dialog")
        self.say("a second program hands over to the first", second.wait(20) == 0)
        desktop.key("Escape")
        desktop.wait_gone("Unlock Vault", "dialog")
        desktop.window(desktop.home + "/.config")
        desktop.wait("There is no vault in ~/.config.")
        desktop.key("Escape")
        desktop.wait_gone("There is no vault in ~/.config.")

    def tray(self):
        desktop = self.desktop
        item = wait(lambda: desktop.items, "the icon in the tray")[0]
        menu = ("/MenuBar", "com.canonical.dbusmenu")

        def entries():
            layout = desktop.call(item, *menu, "GetLayout", "(iias)", 0, -1, [])[1]
            return [(entry[1]["label"], entry[1]["enabled"]) for entry in layout[2]]

        self.say("the tray has two entries", entries() == [("Open", True), ("Lock", False)], entries())
        self.unlock(ALBUM)
        desktop.wait("Lock Vault", "push button")
        self.say("what is open can be locked from there", entries()[1] == ("Lock", True), entries())
        desktop.key("alt+F4")
        wait(lambda: not desktop.is_seen(), "the window to be gone")
        self.say("the photos stay open without the window", self.mounts() == [self.photos], self.mounts())
        from gi.repository import GLib
        desktop.call(item, *menu, "Event", "(isvu)", 2, "clicked", GLib.Variant("i", 0), 0)
        wait(lambda: not self.mounts(), "the lock by the tray")
        self.say("the tray locks", True)
        desktop.call(item, "/StatusNotifierItem", "org.kde.StatusNotifierItem", "Activate", "(ii)", 0, 0)
        wait(desktop.is_seen, "the window")
        desktop.wait("Unlock Vault", "push button")

    def remember(self):
        desktop = self.desktop
        place = desktop.home + "/.hidden/Elsewhere"
        os.makedirs(desktop.home + "/.hidden")
        desktop.obscura("create", place, "--spaces", "1", "--kdf-memory", "8M", passwords=[ALBUM])
        file = desktop.home + "/.config/obscura-window/vaults"
        for is_remembered in (False, True):
            desktop.key("ctrl+o")
            desktop.wait("Choose a Vault")
            time.sleep(1)
            desktop.type(place)
            time.sleep(1)
            if is_remembered:
                desktop.key("alt+r")
                self.picture("choose")
            desktop.key("Return")
            desktop.wait("Unlock Elsewhere", "dialog")
            desktop.key("Escape")
            desktop.wait_gone("Unlock Elsewhere", "dialog")
            self.say("it is remembered if asked, and only then", os.path.exists(file) == is_remembered)
        mode = stat.S_IMODE(os.stat(file).st_mode)
        self.say("for this user alone", mode == 0o600, oct(mode))
        self.restart()
        desktop.wait("Unlock Elsewhere", "push button")
        focused = wait(desktop.focused, "the focus")
        self.say("at the start the first vault has the focus", focused.name == "Unlock Elsewhere", focused)
        self.choose_in_menu("Elsewhere", "Forget")
        desktop.wait_gone("Unlock Elsewhere", "push button")
        with open(file, encoding="utf-8") as remembered:
            self.say("and forgotten", "Elsewhere" not in remembered.read())

    def begin(self, *words, language=None):
        self.program = self.desktop.window(*words, language=language)
        wait(self.desktop.is_seen, "the window")
        # Keys are lost until the window has the focus.
        time.sleep(2)

    def restart(self, language=None):
        self.desktop.key("ctrl+q")
        self.program.wait(20)
        self.begin(language=language)

    def languages(self):
        desktop = self.desktop
        titles = {"en": "Create a Vault", "de": "Tresor erstellen", "fr": "Créer un coffre", "es": "Crear una bóveda",
                  "it": "Crea una cassaforte", "ar": "إنشاء خزنة"}
        for code, title in titles.items():
            self.restart("%s_XX.UTF-8" % code)
            desktop.key("ctrl+n")
            desktop.wait(title, "dialog")
            if code != "en":
                self.picture("create-" + code)
            self.say("the window speaks " + code, True)
            desktop.key("Escape")
            desktop.wait_gone(title, "dialog")
        self.restart()

    def wayland(self):
        """The same on Wayland, in a compositor that is a window itself."""
        desktop = self.desktop
        desktop.key("ctrl+q")
        self.program.wait(20)
        compositor = desktop.start(
            "weston", "--backend=x11-backend.so", "--width=800", "--height=640", "--socket=nested", "--use-pixman")
        wait(lambda: os.path.exists(desktop.home + "/.run/nested"), "a compositor")
        os.environ.update(WAYLAND_DISPLAY="nested", GDK_BACKEND="wayland")
        self.program = desktop.window(self.vault)
        desktop.wait("Unlock Vault", "dialog")
        self.picture("wayland")
        desktop.go("Password", "password text")
        desktop.type(ALBUM)
        desktop.key("Return")
        desktop.wait("Lock Vault", "push button")
        desktop.press("Lock Vault", "push button")
        desktop.wait("Unlock Vault", "push button")
        self.say("it unlocks and locks on Wayland", self.mounts() == [], self.mounts())
        stop(self.program)
        stop(compositor)

    def traces(self):
        """What is left in the home directory, and where passwords are."""
        desktop = self.desktop
        files, leaks = set(), []
        for top, _, names in os.walk(desktop.home):
            for name in names:
                path = os.path.join(top, name)
                with open(path, "rb") if stat.S_ISREG(os.lstat(path).st_mode) else open(os.devnull, "rb") as content:
                    bytes_ = content.read(1 << 20)
                leaks += [path for word in (ALBUM, HIDDEN) if word.encode() in bytes_]
                files.add(os.path.relpath(path, desktop.home).split("/")[0] + "/" + name)
        # GTK's settings of its own dialogs, and caches of fonts.
        known = ("Vault/", "Family & Friends/", ".hidden/", ".run/", ".cache/", ".config/user")
        found = sorted(name for name in files if not name.startswith(known))
        self.say("one file is written, of what was to be remembered", found == [".config/vaults"], found)
        self.say("no password is in any file", leaks == [], leaks)


STEPS = (Trial.create, Trial.cancel, Trial.wrong_then_right, Trial.lock, Trial.lock_slowly, Trial.lock_in_use,
         Trial.add_space, Trial.grow, Trial.create_growing, Trial.double_click, Trial.tray, Trial.remember,
         Trial.languages, Trial.wayland, Trial.traces)


def main():
    desktop = Desktop(os.path.abspath(sys.argv[1]))
    pictures = (sys.argv + ["-", "-"])[2]
    trial = Trial(desktop, None if pictures == "-" else os.path.abspath(pictures))
    try:
        trial.begin()
        for step in STEPS:
            if sys.argv[3:] and step.__name__ not in sys.argv[3:]:
                continue
            print("-- " + step.__name__, flush=True)
            step(trial)
    except Exception:
        trial.failed += 1
        traceback.print_exc()
        desktop.picture("/tmp/obscura-window-failed.png")
        print(desktop.tree(), file=sys.stderr)
    finally:
        for place in trial.mounts():
            subprocess.run([desktop.programs + "/obscura", "unmount", place, "--end"], check=False)
        desktop.end()
    print("window: %s" % ("all good" if not trial.failed else "%d failed" % trial.failed))
    return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
