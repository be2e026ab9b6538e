"""A cluster that fills up while a mount writes, by a pool's quota and by its disk: deleting gives room again."""
import errno
import os
import random
import time

from desk import VAULT, put, require

FILE_BYTES = 2_000_000
# What is still accepted in the seconds until the cluster has counted.
LIMIT_BYTES = 150_000_000
COUNT_MAX = 1500
ROOM_SECONDS = 120


def fill(desk, place, prefix):
    """Writes and syncs files until one is refused. Returns the contents that fsync(2) promised."""
    synced = {}
    for number in range(COUNT_MAX):
        name, some = f"{prefix}{number}", random.randbytes(FILE_BYTES)
        desk.progress = time.monotonic()
        try:
            put(place / "albums" / name, some)
            synced[name] = some
        except OSError as error:
            require(error.errno == errno.ENOSPC, f"full: {error}")
            return synced
    require(False, f"{COUNT_MAX} files are accepted")


def same(place, synced, when):
    for name, some in synced.items():
        descriptor = os.open(place / "albums" / name, os.O_RDONLY)
        try:
            # What the kernel has of it would be read instead.
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            with open(descriptor, "rb", closefd=False) as file:
                require(file.read() == some, f"{name} is lost {when}")
        finally:
            os.close(descriptor)


def wait_for_room(desk, place):
    """Until a file can be written: the cluster counts every few seconds. Returns the seconds that took."""
    began = time.monotonic()
    while True:
        desk.progress = time.monotonic()
        try:
            put(place / "albums/after", b"room again" * 100_000)
            return time.monotonic() - began
        except OSError as error:
            require(error.errno == errno.ENOSPC, f"after deleting: {error}")
            require(time.monotonic() - began < ROOM_SECONDS, "no room after deleting")
            time.sleep(0.5)


def full(desk, way, set_limit, unset_limit):
    print(f"cluster: one that fills up, {way}", flush=True)
    a, b = desk.places
    desk.mount(a, "-o", "trash=0")
    put(a / "albums/first", b"first")
    set_limit()
    synced = fill(desk, a, "fill")
    same(a, synced, "while it is full")
    print(f"cluster: {len(synced)} files of 2 MB were synced, the next one was refused", flush=True)
    # Also by a mount that begins while it is full.
    desk.kill(a)
    desk.mount(b, "-o", "trash=0")
    same(b, synced, "after a kill")
    for name in sorted(synced)[: len(synced) * 3 // 4]:
        (b / "albums" / name).unlink()
        del synced[name]
    os.sync()
    descriptor = os.open(b, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)
    print(f"cluster: room again {wait_for_room(desk, b):.0f} s after most were deleted", flush=True)
    same(b, synced, "after deleting")
    desk.unmount(b)
    unset_limit()
    desk.mount(a)
    same(a, {**synced, "first": b"first", "after": b"room again" * 100_000}, "at the end")
    for name in [*synced, "after"]:
        (a / "albums" / name).unlink()
    desk.unmount(a)
    desk.check()


def filled(desk):
    cluster = desk.cluster

    def quota():
        cluster.set_quota(cluster.pool_bytes() + LIMIT_BYTES)

    full(desk, "by the quota of its pool", quota, lambda: cluster.set_quota(0))

    def ratio():
        cluster.set_full_ratio((cluster.disk_bytes() + LIMIT_BYTES) / cluster.DISK_BYTES)

    full(desk, "by what its disk holds", ratio, lambda: cluster.set_full_ratio(0.96))
