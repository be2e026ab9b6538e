"""A mount that only reads, beside one that writes: it shows what was published, or an error, and nothing else."""
import errno
import fcntl
import os
import pty
import random
import signal
import subprocess
import termios
import threading
import time

from desk import PASSWORD, VAULT, put, require

REFRESH_SECONDS = 60
# What a read may answer where the other mount is overwriting what it needs.
ALLOWED = [errno.EIO, errno.ESTALE, errno.ENOENT]


# Files that nobody changes.
CONSTANT = {f"c{number}" for number in range(30)}


def content(name, version):
    """The bytes of a version of a file, which tell what they are."""
    choose = random.Random(f"{name} {version}")
    head = f"{name} {version} ".encode()
    return head + choose.randbytes(choose.choice([10, 5_000, 150_000, 700_000]))


class Editor(threading.Thread):
    """Writes new versions of files, and removes some, until it is told to end."""

    def __init__(self, place):
        super().__init__(daemon=True)
        self.place = place
        self.count, self.failure = 0, None
        self.ends = threading.Event()

    def run(self):
        choose = random.Random(1)
        try:
            while not self.ends.is_set():
                name = f"e{choose.randrange(60)}"
                if choose.random() < 0.2:
                    (self.place / "albums" / name).unlink(missing_ok=True)
                elif choose.random() < 0.5:
                    put(self.place / "albums" / name, content(name, self.count))
                else:
                    new = self.place / "albums" / f".{name}.new"
                    put(new, content(name, self.count))
                    os.rename(new, self.place / "albums" / name)
                self.count += 1
        except OSError as error:
            self.failure = error


def read_all(place, found):
    """Reads each file. Counts those that are whole, and errors by their number, in `found`."""
    names = os.listdir(place / "albums")
    require(CONSTANT <= set(names), f"not listed: {CONSTANT - set(names)}")
    for name in names:
        if not name.startswith("e"):
            continue
        try:
            with open(place / "albums" / name, "rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                parts = []
                while part := file.read(100_000):
                    parts.append(part)
        except OSError as error:
            require(error.errno in ALLOWED, f"{name}: {error}")
            found[error.errno] = found.get(error.errno, 0) + 1
            continue
        some = b"".join(parts)
        # A file that was being written anew when the state was published.
        if not some and size == 0:
            continue
        words = some.split(b" ", 2)
        require(len(words) == 3 and words[0].decode() == name, f"{name} has other bytes: {some[:40]}")
        whole = content(name, int(words[1]))
        require(whole.startswith(some), f"{name}, version {int(words[1])}, has other bytes")
        found["whole"] = found.get("whole", 0) + (some == whole)


def renewals(place):
    lines = os.getxattr(place, "user.obscura.status").decode().splitlines()
    return int(next(line.split("=")[1] for line in lines if line.startswith("renewals=")))


def wait_for(path, seconds, text):
    deadline = time.monotonic() + seconds
    while not path.exists():
        require(time.monotonic() < deadline, text)
        time.sleep(0.1)


def take_terminal():
    """Makes the standard output the terminal of a session of its own."""
    os.setsid()
    fcntl.ioctl(1, termios.TIOCSCTTY, 0)


def hangups(desk, options):
    """SIGHUP shows what is new at once. Where there is a terminal it says that this was closed."""
    writer, reader = desk.places
    # Right after a look of its own.
    before = renewals(reader)
    put(writer / "albums/minute", b"minute")
    while renewals(reader) == before:
        desk.progress = time.monotonic()
        time.sleep(0.5)
    for number in range(3):
        put(writer / f"albums/asked{number}", b"asked")
        os.kill(desk.daemon(reader), signal.SIGHUP)
        wait_for(reader / f"albums/asked{number}", 8, "SIGHUP shows nothing new")
    desk.unmount(reader)
    master, slave = pty.openpty()
    program = subprocess.Popen(
        [desk.program, "mount", "-f", VAULT, reader, "--password-stdin", *options], stdin=subprocess.PIPE,
        stdout=slave, stderr=slave, env=desk.cluster.environment, cwd=desk.dir, preexec_fn=take_terminal)
    os.close(slave)
    program.stdin.write(PASSWORD.encode())
    program.stdin.close()
    wait_for(reader / "albums/asked0", 30, "not mounted in the foreground")
    os.close(master)
    program.wait(30)
    require(not os.path.ismount(reader), "mounted after its terminal was closed")
    desk.mount(reader, *options)


def beside(desk, seconds=90):
    """A reader whose user may not write to the cluster, beside a writer."""
    writer, reader = desk.places
    print("cluster: a mount that only reads, beside one that writes")
    keys = desk.cluster.ceph("auth", "get-or-create", "client.reader", "mon", "allow r", "osd", "allow r")
    with open(desk.cluster.dir / "keyring", "a") as keyring:
        keyring.write(keys)
    options = ["-o", "ro,ceph-id=reader"]
    desk.mount(writer, "-o", "share=handover")
    put(writer / "albums/e0", content("e0", 0))
    for name in CONSTANT:
        put(writer / "albums" / name, b"constant")
    began = time.monotonic()
    desk.mount(reader, *options)
    print(f"cluster: mounted beside it in {time.monotonic() - began:.1f} s")
    require((reader / "albums/e0").read_bytes() == content("e0", 0), "what was synced is not shown")
    for change in [lambda: (reader / "albums/x").write_bytes(b"x"), lambda: (reader / "albums/e0").unlink()]:
        try:
            change()
            require(False, "it writes")
        except OSError as error:
            require(error.errno == errno.EROFS, f"a change: {error}")
    put(writer / "albums/fresh", b"fresh")
    deadline = time.monotonic() + REFRESH_SECONDS + 10
    while not (reader / "albums/fresh").exists():
        require(time.monotonic() < deadline, "nothing new is shown")
        time.sleep(0.5)
    hangups(desk, options)
    held = open(reader / "albums/e0", "rb")
    editor = Editor(writer)
    editor.start()
    found, rounds = {}, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        desk.progress = time.monotonic()
        require(editor.failure is None, f"the writer fails: {editor.failure}")
        try:
            read_all(reader, found)
        except OSError as error:
            require(error.errno in ALLOWED, f"a list: {error}")
            found[error.errno] = found.get(error.errno, 0) + 1
        rounds += 1
    old = b""
    try:
        old = held.read()
        require(old == content("e0", int(old.split(b" ", 2)[1])), "an open file shows parts of two states")
    except OSError as error:
        require(error.errno in ALLOWED, f"an open file: {error}")
    held.close()
    print(f"cluster: {editor.count} changes, all read {rounds} times: {found}, {renewals(reader)} newer states")
    require(found.get("whole", 0) > 10 * sum(count for key, count in found.items() if key != "whole"), "mostly errors")
    print("cluster: the reader is stopped, then killed: the writer and the next one do not wait")
    os.kill(desk.daemon(reader), signal.SIGSTOP)
    before = editor.count
    time.sleep(3)
    require(editor.count > before, "the writer waits for a reader")
    editor.ends.set()
    editor.join(60)
    began = time.monotonic()
    require("nothing is damaged" in desk.elsewhere("check", VAULT), "not handed over")
    require(time.monotonic() - began < 20, "a reader holds up the handover")
    desk.kill(reader)
    print("cluster: a reader outlives its writer, and follows the next one")
    desk.mount(reader, *options)
    desk.mount(writer)
    put(writer / "albums/next", b"next")
    deadline = time.monotonic() + REFRESH_SECONDS + 10
    while not (reader / "albums/next").exists():
        require(time.monotonic() < deadline, "the next writer's changes are not shown")
        time.sleep(0.5)
    desk.unmount(writer)
    require((reader / "albums/next").read_bytes() == b"next", "it needs a writer")
    desk.unmount(reader)
    desk.check()
