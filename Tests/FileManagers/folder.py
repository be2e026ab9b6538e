#!/usr/bin/python3 -B
"""What it costs to look at a large folder: each file manager opens it, scrolls to its end and closes it, on a mount and
on plain ext4.

    folder.py OBSCURA PHOTOS DIRECTORY [PROGRAM…]

PHOTOS are the files of the folder; DIRECTORY, of root's, is for a disk image with them and with a vault of them. Each
program has an ordinary user's empty home directory each time, a screen that nobody sees, and a disk of which nothing is
in memory. Prints a table. Seconds end when nothing more changes on the screen.
"""

import json
import os
import shutil
import subprocess
import sys
import time

from session import PROGRAMS, USER, WAIT_SECONDS, Session, as_user, processor_seconds, run

PAGES = 40
MIB = 1 << 20


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
            # Pictures that are made by themselves wait for a quiet machine; those that are read do not.
            run(*as_user("sh", "-c", 'cd "$1/.thumbs" && ls | xargs -P 2 cat >/dev/null 2>&1; true', "-", self.folder))
            print("%d small pictures are kept by the vault" % self.status()["thumbnails"], file=sys.stderr, flush=True)
        self.leave()

    def open_vault(self):
        run(*as_user(self.obscura, "mount", self.disk + "/Vault", self.mount, "--password-stdin"), input="one\n")

    def enter(self):
        run("mount", "-o", "loop", self.image, self.disk)
        if self.obscura:
            self.open_vault()
        self.device = os.path.basename(run("findmnt", "-no", "SOURCE", self.disk).strip())
        self.daemon = next(filter(is_daemon, os.listdir("/proc"))) if self.obscura else None
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
            # What it reads of its files is all decrypted; its requests are small beside that.
            with open(f"/proc/{self.daemon}/io", encoding="ascii") as io:
                counts["decrypted"] = int(io.readline().split()[1])
            counts.update(self.status()["requests"])
        return counts

    def since(self):
        """Bytes from the disk, bytes decrypted, and requests by kind."""
        now = self.counts()
        since = {name: now[name] - self.before.get(name, 0) for name in now}
        return since.pop("disk"), since.pop("decrypted", 0), since


def visit(words, place, root):
    """Opens, scrolls and closes; returns the figures."""
    place.enter()
    session = None
    try:
        session = Session(root)
        processor, begun = processor_seconds(), time.monotonic()
        session.open(words, place.folder)
        figures = {"open": session.screen.wait_until_still() - begun}
        figures["requests opening"] = place.since()[2]
        begun = time.monotonic()
        for _ in range(PAGES):
            session.key("Next")
            time.sleep(0.1)
        session.key("End")
        figures["scroll"] = session.screen.wait_until_still() - begun
        begun = time.monotonic()
        session.close_window()
        figures["close"] = time.monotonic() - begun
        # What thumbnailers still do for a folder that nobody looks at counts as well.
        spent, before = processor_seconds(), None
        while spent != before and time.monotonic() < begun + WAIT_SECONDS:
            time.sleep(2)
            spent, before = processor_seconds(), spent
        figures["processor"] = spent - processor
        figures["disk"], figures["decrypted"], figures["requests"] = place.since()
        figures["kept"] = sum(len(files) for _, _, files in os.walk(session.home + "/.cache/thumbnails"))
    finally:
        if session:
            session.end()
        place.leave()
    return figures


def is_daemon(process):
    try:
        with open(f"/proc/{process}/cmdline", "rb") as words:
            return words.read().startswith(b"obscura\0--daemon\0")
    except OSError:
        return False


def most_frequent(requests):
    """The five kinds of which there were most."""
    kinds = sorted(requests.items(), key=lambda kind: -kind[1])[:5]
    return ", ".join("%s %d" % kind for kind in kinds if kind[1])


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
        print("| | opened | scrolled | closed | processor | read from the disk | decrypted | requests "
              "| of them until it was open | of all, the most frequent | thumbnails kept |\n"
              "|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
        for name in chosen:
            for place in places:
                figures = visit(PROGRAMS[name], place, root)
                requests, opening = figures["requests"], figures["requests opening"]
                print("| %s, %s | %.1f s | %.1f s | %.1f s | %.1f s | %.0f MiB | %.0f MiB | %d | %d | %s | %d |" % (
                    name, place.name, figures["open"], figures["scroll"], figures["close"], figures["processor"],
                    figures["disk"] / MIB, figures["decrypted"] / MIB, sum(requests.values()), sum(opening.values()),
                    most_frequent(requests), figures["kept"]), flush=True)
    finally:
        for place in places:
            for mount in (place.mount, place.disk):
                subprocess.run(["umount", "-l", mount], check=False, capture_output=True)
        shutil.rmtree(root, ignore_errors=True)


main()
