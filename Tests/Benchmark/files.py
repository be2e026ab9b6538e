"""A library's day. Each workload is what some program does, by that program where there is one."""
import os
import shutil
import subprocess
import sys
import tempfile
import time

import photos
import systems

IS_ROOT = os.geteuid() == 0
WORKLOADS = ["import", "again", "heads", "cold", "rand", "export", "small", "ls", "ls2", "mv", "rm"]


def drop_caches():
    os.sync()
    if IS_ROOT:
        with open("/proc/sys/vm/drop_caches", "w") as file:
            file.write("3")


def timed(line):
    start = time.perf_counter()
    done = subprocess.run(["bash", "-ec", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{line}: {done.stdout.strip()[-500:]}")
    return time.perf_counter() - start


class Measurement:
    unit, workloads, is_cold = "s", WORKLOADS, IS_ROOT

    def __init__(self, work, count, small, progress):
        self.work, self.photos, self.small = work, work + "/photos", work + "/small"
        photos.make_library(self.photos, count, progress)
        photos.make_small(self.small, small, progress)
        stored = sum(os.path.getsize(f"{at}/{name}") for at, _, names in os.walk(self.photos) for name in names)
        self.systems = systems.systems(stored + small * 8192)
        self.names = list(self.systems)
        self.title = (f"{count} photos of {stored // count / 1e6:.1f} MB and {small} of 4 KB; time relative to"
                      f" gocryptfs, less is better.")

    def run(self, name, progress):
        root = tempfile.mkdtemp(prefix="round-", dir=self.work)
        system = self.systems[name](root)
        result = {}

        def measure(workload, line):
            progress(workload)
            result[workload] = timed(line)

        def remount():
            system.unmount()
            drop_caches()
            system.mount()

        def reader(kind):
            return f"python3 {os.path.abspath(__file__)} {kind} {system.place}/photos"

        try:
            system.mount()
            place = system.place
            drop_caches()
            measure("import", f"rsync -a {self.photos}/ {place}/photos/ && sync")
            measure("again", f"rsync -a {self.photos}/ {place}/photos/")
            remount()
            os.listdir(place)
            measure("heads", reader("heads"))
            remount()
            measure("cold", f"tar cf - -C {place} photos | cat >/dev/null")
            measure("rand", reader("rand"))
            remount()
            measure("export", f"cp -a {place}/photos {root}/export && sync")
            if subprocess.run(["diff", "-rq", self.photos, root + "/export"]).returncode != 0:
                raise RuntimeError(f"{name}: what came out is not what went in")
            shutil.rmtree(root + "/export")
            measure("small", f"cp -r {self.small} {place}/small && sync")
            remount()
            measure("ls", f"ls -lR {place}/small >/dev/null")
            measure("ls2", f"find {place}/small -printf '%p %s %T@\\n' >/dev/null")
            measure("mv", f"cd {place} && mv small moved && find moved -name '*7.jpg' -exec mv -t . {{}} +")
            measure("rm", f"cd {place} && rm -rf -- moved photos *.jpg && sync")
            system.unmount()
        finally:
            subprocess.run(["fusermount3", "-uqz", system.mount_point], stderr=subprocess.DEVNULL)
            shutil.rmtree(root, ignore_errors=True)
        return result


def read_heads(top):
    """The first 64 KiB of each file, as a program reads that looks for its kind and date."""
    for at, _, names in os.walk(top):
        for name in names:
            with open(f"{at}/{name}", "rb") as file:
                file.read(65536)


def read_at_random(top):
    """4 KiB at 4,000 places."""
    import random
    random.seed(1)
    paths = sorted(f"{at}/{name}" for at, _, names in os.walk(top) for name in names)
    for _ in range(4000):
        file = os.open(random.choice(paths), os.O_RDONLY)
        os.pread(file, 4096, random.randrange(max(1, os.fstat(file).st_size - 4096)))
        os.close(file)


if __name__ == "__main__":
    {"heads": read_heads, "rand": read_at_random}[sys.argv[1]](sys.argv[2])
