"""A program, a cluster to try it on, and what the tests do with both."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import ceph
import evidence

VAULT = "ceph:photos/family"
PASSWORD = "a password for tests\n"
NO_PASSWORD = {"unmount", "info", "status", "header", "grow", "backup"}


class Failed(Exception):
    pass


def require(holds, text):
    if not holds:
        raise Failed(text)


def put(path, content):
    """Writes a file and syncs it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Desk:
    """A cluster, a program, and two places to mount at."""

    SECONDS = 120

    def __init__(self, program, **cluster):
        self.program = os.path.abspath(program)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="obscura-cluster-"))
        self.cluster = ceph.Cluster(self.dir / "ceph", **cluster)
        self.places = [self.dir / "A", self.dir / "B"]
        for place in self.places:
            place.mkdir()
        (self.dir / "files").mkdir()
        self.progress = time.monotonic()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        """Ends the test if a request to a mount hangs: nothing else would."""
        while time.monotonic() - self.progress < 3 * self.SECONDS:
            time.sleep(1)
        print(evidence.of(self), flush=True)
        print("cluster: a request hangs", flush=True)
        self.end()
        os._exit(1)

    def end(self):
        for place in self.places:
            self.kill(place)
        self.cluster.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def run(self, what, words, password):
        """Runs a command. One that takes too long leaves evidence. Returns its status, output and errors."""
        self.progress = time.monotonic()
        command = subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self.cluster.environment,
            cwd=self.dir,
            text=True,
        )
        try:
            text, _ = command.communicate(password, timeout=self.SECONDS)
        except subprocess.TimeoutExpired:
            print(evidence.of(self), flush=True)
            command.kill()
            raise Failed(f"{what}: no answer in {self.SECONDS} s") from None
        self.progress = time.monotonic()
        return command.returncode, text

    def obscura(self, *words, status=0, password=PASSWORD):
        """Runs a command; requires its exit status. Returns its output and errors."""
        asks = words[0] not in NO_PASSWORD or "--check" in words
        what = " ".join(map(str, words))
        code, text = self.run(what, [self.program, *words, *(["--password-stdin"] if asks else [])], password)
        require(code == status, f"{what}: {code}, not {status}: {text}")
        return text

    def elsewhere(self, *words, status=0, password=PASSWORD):
        """Runs a command that sees no process of this computer, as on another one."""
        what = f"elsewhere: {' '.join(map(str, words))}"
        code, text = self.run(
            what,
            ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c"]
            # This namespace's copies of the mounts would keep them.
            + [f"umount -l {self.places[0]} {self.places[1]} 2>/dev/null; exec \"$@\"", "sh"]
            + [self.program, *words, "--password-stdin"],
            password,
        )
        require(code == status, f"{what}: {code}, not {status}: {text}")
        return text

    def mount(self, place, *words, status=0, vault=VAULT, password=PASSWORD):
        return self.obscura("mount", vault, place, *words, status=status, password=password)

    def unmount(self, place, *words, status=0):
        return self.obscura("unmount", place, *words, status=status)

    def check(self, vault=VAULT, password=PASSWORD, status=0):
        text = self.obscura("check", vault, password=password, status=status)
        require(status != 0 or "nothing is damaged" in text, f"damaged: {text}")
        return text

    def same(self, vault, wanted, password=PASSWORD):
        """Requires that an export of a vault has these files in `albums`."""
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        self.obscura("export", vault, "out", "--quiet", password=password)
        for name, some in wanted.items():
            require((self.dir / "out/albums" / name).read_bytes() == some, f"{vault}: {name} is not as exported")

    def daemon(self, place):
        """The process that serves a mount; nil if there is none."""
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"--daemon" in words and os.fsencode(place) in words:
                return int(entry.name)
        return None

    def stop(self, place):
        """Stops the process that serves a mount, and returns it."""
        pid = self.daemon(place)
        os.kill(pid, signal.SIGSTOP)
        return pid

    @staticmethod
    def go_on(pid):
        os.kill(pid, signal.SIGCONT)

    def require_shut_out(self, pid, place, what):
        """Lets a stopped process go on while another one has the vault: nothing of its mount may come through."""
        self.go_on(pid)
        try:
            put(place / "albums/late", b"late")
        except OSError:
            return
        raise Failed(f"{what}: two mounts write")

    def kill(self, place):
        pid = self.daemon(place)
        if pid:
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["umount", "-l", place], capture_output=True)
        while self.daemon(place):
            time.sleep(0.05)
