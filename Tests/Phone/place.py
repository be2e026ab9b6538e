"""A vault, its mount and `obscura receive` in a temporary directory, for trials with browsers and other clients."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time


def find_program():
    """The program under test: OBSCURA, or that of the optimised build of the tests."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    return os.environ.get("OBSCURA") or root + "/.build/tests/release/obscura"


class Place:
    """`with Place() as place:`; everything is removed at the end."""

    def __init__(self, create=(), mount=(), receive=(), album="Phone"):
        self.program = find_program()
        self.directory = tempfile.mkdtemp(prefix="phone-", dir=os.environ.get("PHONE_DIR", "/var/tmp"))
        self.vault, self.mounted = self.directory + "/vault", self.directory + "/photos"
        self.album = self.mounted + "/albums/" + album
        self.password = self.directory + "/password"
        with open(self.password, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write("a password for trials\n")
        os.mkdir(self.mounted)
        self.mount_options = list(mount)
        self.receive_options = ["--album", album, *receive]
        self.receiver = None
        words = list(create) or ["--spaces", "1", "--kdf-memory", "8M", "--kdf-passes", "1"]
        self.obscura("create", self.vault, *words)
        self.mount()

    def obscura(self, *words):
        subprocess.run(
            [self.program, *words, "--password-file", self.password], check=True, stdout=subprocess.DEVNULL)

    def mount(self):
        self.obscura("mount", self.vault, self.mounted, *self.mount_options)

    def unmount(self):
        subprocess.run([self.program, "unmount", self.mounted], check=True)

    def daemon(self):
        """The process that serves the mount."""
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                with open("/proc/%s/cmdline" % name, "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"--daemon" in words[1:2] and self.vault.encode() in words:
                return int(name)
        raise RuntimeError("the mount's process is not there")

    def start(self, listen="127.0.0.1:0"):
        """Starts the receiver and waits for its code."""
        self.receiver = subprocess.Popen(
            [self.program, "receive", self.mounted, "--listen", listen, *self.receive_options],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=open(self.directory + "/errors", "ab"), text=True)
        self.lines = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.wait_for("Receiving into")
        self.read_code()
        for line in self.lines:
            if line.startswith("WebDAV"):
                self.dav_password = line.split()[-1]

    def _read(self):
        for line in self.receiver.stdout:
            self.lines.append(line.rstrip("\n"))

    def wait_for(self, text, since=0):
        for _ in range(600):
            if any(text in line for line in self.lines[since:]):
                return
            if self.receiver.poll() is not None:
                raise RuntimeError("the receiver ended: " + open(self.directory + "/errors").read())
            time.sleep(0.05)
        raise RuntimeError("the receiver does not say: " + text)

    def read_code(self):
        links = [re.search(r"https://\S+#\S+", line) for line in self.lines]
        self.link = [link.group(0) for link in links if link][-1]
        self.address, self.code = self.link.split("#")
        self.port = int(self.address.rstrip("/").rsplit(":", 1)[1])

    def new_code(self):
        since = len(self.lines)
        self.receiver.stdin.write("n\n")
        self.receiver.stdin.flush()
        self.wait_for("https://", since)
        self.read_code()

    def processes(self):
        """The receiver and its server."""
        with open("/proc/%d/task/%d/children" % (self.receiver.pid, self.receiver.pid)) as file:
            return [self.receiver.pid] + [int(child) for child in file.read().split()]

    def memory(self, field="RssAnon"):
        """KiB of each process of `processes`."""
        result = []
        for process in self.processes():
            with open("/proc/%d/status" % process) as file:
                result.append(int(re.search(field + r":\s+(\d+)", file.read()).group(1)))
        return result

    def seconds(self):
        """Processor seconds of each of `processes`, and of the mount's process."""
        ticks = os.sysconf("SC_CLK_TCK")
        result = []
        for process in self.processes() + [self.daemon()]:
            with open("/proc/%d/stat" % process) as file:
                fields = file.read().rsplit(")", 1)[1].split()
            result.append((int(fields[11]) + int(fields[12])) / ticks)
        return result

    def stop(self, how=signal.SIGINT):
        """Ends the receiver; its last words."""
        if self.receiver and self.receiver.poll() is None:
            self.receiver.send_signal(how)
            self.receiver.wait(60)
        self.reader.join(5)
        return self.lines[-1] if self.lines else ""

    def errors(self):
        with open(self.directory + "/errors") as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.receiver:
            self.stop(signal.SIGKILL)
        subprocess.run(["umount", "-l", self.mounted], stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        shutil.rmtree(self.directory, ignore_errors=True)
