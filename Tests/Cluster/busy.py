"""Files that are written, changed in place, saved anew, removed and read by several threads at once: none shows old bytes."""
import os
import random
import threading
import time

from desk import put, require

THREADS = 3


class Worker(threading.Thread):
    """Has files of its own, and knows what is in them."""

    def __init__(self, place, number, end):
        super().__init__(daemon=True)
        self.place, self.end = place / f"albums/busy{number}", end
        self.choose = random.Random(number)
        self.files, self.count, self.failure = {}, 0, None
        self.place.mkdir()

    def read(self, name):
        descriptor = os.open(self.place / name, os.O_RDONLY)
        try:
            # What the kernel has of it would be read instead.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            with open(descriptor, "rb", closefd=False) as file:
                require(file.read() == self.files[name], f"{name} has other bytes")
        finally:
            os.close(descriptor)

    def change(self, name):
        wanted = bytearray(self.files[name])
        start = self.choose.randrange(len(wanted))
        some = self.choose.randbytes(min(len(wanted) - start, self.choose.choice([1, 3_000, 200_000])))
        wanted[start : start + len(some)] = some
        descriptor = os.open(self.place / name, os.O_WRONLY)
        try:
            os.pwrite(descriptor, some, start)
            if self.choose.random() < 0.3:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        self.files[name] = bytes(wanted)

    def step(self):
        act = self.choose.random()
        if act < 0.35 or len(self.files) < 5:
            name = f"f{self.choose.randrange(40)}"
            self.files[name] = self.choose.randbytes(self.choose.choice([500, 40_000, 300_000, 2_500_000]))
            put(self.place / ".new", self.files[name])
            os.rename(self.place / ".new", self.place / name)
            return self.read(name)
        name = self.choose.choice(sorted(self.files))
        if act < 0.5:
            self.change(name)
        elif act < 0.6:
            os.unlink(self.place / name)
            del self.files[name]
            return
        self.read(name)

    def run(self):
        try:
            while time.monotonic() < self.end:
                self.step()
                self.count += 1
        except Exception as error:
            self.failure = error


def busy(desk, seconds=30):
    print("cluster: files that are written and read at once")
    place = desk.places[0]
    desk.mount(place, "-o", "trash=0")
    workers = [Worker(place, number, time.monotonic() + seconds) for number in range(THREADS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(seconds + 60)
        require(not worker.is_alive(), "a request hangs")
        require(worker.failure is None, f"{worker.failure}")
    with open("/proc/sys/vm/drop_caches", "w") as caches:
        caches.write("3\n")
    for worker in workers:
        for name in worker.files:
            worker.read(name)
    desk.unmount(place)
    desk.mount(place)
    for worker in workers:
        for name in worker.files:
            worker.read(name)
    desk.unmount(place)
    desk.check()
    print(f"cluster: {sum(worker.count for worker in workers)} steps")


MEMORY_BYTES_MAX = 150_000_000


def memory(desk):
    """The memory of a mount stays bounded, however much is read: freed buffers of librados' threads go back."""
    print("cluster: memory of a mount that reads much")
    place = desk.places[0]
    desk.mount(place)
    names = [f"large{number}" for number in range(12)]
    for name in names:
        put(place / "albums" / name, random.randbytes(30_000_000))
    for _ in range(3):
        for name in names:
            with open(place / "albums" / name, "rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
                while file.read(1 << 20):
                    pass
        desk.progress = time.monotonic()
    with open(f"/proc/{desk.daemon(place)}/status") as status:
        highest = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))
    require(highest <= MEMORY_BYTES_MAX, f"a mount took {highest >> 20} MiB")
    for name in names:
        (place / "albums" / name).unlink()
    desk.unmount(place)
    print(f"cluster: {highest >> 20} MiB at most")
