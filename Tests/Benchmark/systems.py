"""What is compared: places to put photos, each with a store below a directory of its own."""
import os
import subprocess
import time

OBSCURA = os.environ.get("OBSCURA", "obscura")
PASSWORD = "benchmark"


def run(words, **options):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stdout.strip()}")
    return done.stdout


class System:
    inside = ""

    def __init__(self, root):
        self.root, self.store, self.mount_point = root, root + "/store", root + "/mount"
        self.secret = root + "/password"
        os.makedirs(self.store)
        os.makedirs(self.mount_point)
        with open(os.open(self.secret, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(PASSWORD + "\n")
        self.create()

    @property
    def place(self):
        return os.path.join(self.mount_point, self.inside)

    def mount(self):
        self.attach()
        for _ in range(2000):
            if os.path.ismount(self.mount_point):
                break
            time.sleep(0.005)
        os.makedirs(self.place, exist_ok=True)

    def processes(self):
        """Those that have the mount point in their command line, and serve it."""
        wanted = self.mount_point.encode()
        for name in os.listdir("/proc"):
            try:
                if name.isdigit() and wanted in open(f"/proc/{name}/cmdline", "rb").read().split(b"\0"):
                    yield name
            except OSError:
                pass

    def unmount(self):
        for _ in range(100):
            if subprocess.run(["fusermount3", "-u", self.mount_point], stderr=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.05)
        # What it has not written when it is unmounted, it writes before its process ends.
        while list(self.processes()):
            time.sleep(0.01)


class Gocryptfs(System):
    def create(self):
        run(["gocryptfs", "-q", "-init", "-scryptn", "10", "-passfile", self.secret, self.store])

    def attach(self):
        run(["gocryptfs", "-q", "-passfile", self.secret, self.store, self.mount_point])


class Obscura(System):
    inside, spaces = "albums/benchmark", 1

    def create(self):
        size = ["--size", self.size] if self.spaces > 1 else []
        run([OBSCURA, "create", "--spaces", str(self.spaces), *size, "--kdf-memory", "8M", "--kdf-passes", "1",
             "--password-file", self.secret, self.store])

    def attach(self):
        run([OBSCURA, "mount", "--password-file", self.secret, self.store, self.mount_point])


def systems(bytes_stored):
    """By name, in the order in which a round runs them. The first is what the others are compared with."""
    found = {"gocryptfs": Gocryptfs}
    # Room for all photos twice, and what a vault needs itself.
    size = f"{max(1 << 30, bytes_stored * 5 // 2) >> 20}M"
    for spaces in [1, 2]:
        found[f"N = {spaces}"] = type("Vault", (Obscura,), {"spaces": spaces, "size": size})
    return found


def machine(directory):
    """The line below a table: without it a figure says nothing."""
    model = "unknown processor"
    for line in open("/proc/cpuinfo"):
        if line.startswith("model name"):
            model = " ".join(line.split(":", 1)[1].split())
            break
    release = os.uname().release
    kind = run(["stat", "-f", "-c", "%T", directory]).strip()
    other = run(["gocryptfs", "-version"]).split(";")[0].strip()
    version = run([OBSCURA, "--version"]).split("\n")[0]
    day = time.strftime("%-d %B %Y")
    return f"{len(os.sched_getaffinity(0))} × {model}, Linux {release}, {kind}; {version}; {other}; {day}."
