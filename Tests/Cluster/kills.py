"""Ends of mounts, OSDs and whole disks, by chance."""
import os
import random
import threading
import time

from desk import VAULT, Desk, Failed, put, require


def rounds(desk, count, seed):
    """Random ends of mounts and of the OSD, while placement groups are split and merged. `synced` are the contents that
    fsync(2) promised."""
    choose = random.Random(seed)
    synced, unsure = {}, {}
    stopped = []
    for number in range(count):
        desk.progress = time.monotonic()
        place = desk.places[number % 2]
        desk.kill(place)
        try:
            desk.mount(place)
        except Failed as error:
            raise Failed(f"seed {seed}, round {number}: {error}") from None
        for name, some in synced.items():
            found = (place / "albums" / name).read_bytes()
            require(found in [some, *unsure.get(name, [])], f"seed {seed}, round {number}: {name} is lost")
        unsure = {}
        if choose.random() < 0.3:
            desk.cluster.set_groups(choose.choice([4, 8, 11, 16, 32]))
        for _ in range(choose.randrange(1, 8)):
            name, some = f"f{choose.randrange(30)}", choose.randbytes(choose.choice([10, 5_000, 300_000, 3_000_000]))
            if choose.random() < 0.15:
                desk.cluster.kill_osd()
                desk.cluster.start_osd()
            if choose.random() < 0.6:
                put(place / "albums" / name, some)
                synced[name], unsure[name] = some, []
            else:
                (place / "albums" / name).write_bytes(some)
                # It may be there, or a part of it, until the next sync of it.
                synced.pop(name, None)
        for pid, old in stopped:
            desk.require_shut_out(pid, old, f"seed {seed}, round {number}")
        stopped = []
        end = choose.random()
        if end < 0.45:
            desk.kill(place)
        elif end < 0.7:
            stopped.append((desk.stop(place), place))
        else:
            desk.unmount(place)
        groups = desk.cluster.pool_details()["pg_num"]
        print(f"cluster: seed {seed}, round {number}: {len(synced)} files, {groups} groups", flush=True)
    for place in desk.places:
        desk.kill(place)
    desk.mount(desk.places[0])
    for name, some in synced.items():
        require((desk.places[0] / "albums" / name).read_bytes() == some, f"seed {seed}, end: {name} is lost")
    names = os.listdir(desk.places[0] / "albums")
    require(not [name for name in names if name.startswith("late")], f"seed {seed}: {names}")
    desk.unmount(desk.places[0])
    desk.check()


class Writer(threading.Thread):
    """Writes and syncs files until it is told to end. `synced` are the contents that fsync(2) promised."""

    def __init__(self, place, seed):
        super().__init__(daemon=True)
        self.place, self.choose = place, random.Random(seed)
        self.synced, self.failure, self.count = {}, None, 0
        self.ends = threading.Event()

    def run(self):
        try:
            while not self.ends.is_set():
                name = f"w{self.count % 400}"
                some = self.choose.randbytes(self.choose.choice([10, 5_000, 300_000, 3_000_000]))
                self.synced.pop(name, None)
                put(self.place / "albums" / name, some)
                self.synced[name] = some
                self.count += 1
        except OSError as error:
            self.failure = error

    def waits_for(self, count):
        """Until it has synced so many files more."""
        wanted = self.count + count
        deadline = time.monotonic() + 120
        while self.count < wanted:
            require(self.failure is None, f"a write fails: {self.failure}")
            require(time.monotonic() < deadline, "nothing is written for two minutes")
            time.sleep(0.1)


def losses(program, seed):
    """Three OSDs, two copies: one is lost for good during writes, and after the recovery another one."""
    desk = Desk(program, osds=3, copies=2)
    try:
        place = desk.places[0]
        desk.obscura("create", VAULT, "--spaces", 1)
        desk.mount(place)
        writer = Writer(place, seed)
        writer.start()
        writer.waits_for(20)
        order = random.Random(seed).sample(range(3), 2)
        for osd in order:
            desk.cluster.lose_osd(osd)
            writer.waits_for(20)
            if osd == order[0]:
                desk.cluster.wait_for_recovery()
                lines = desk.cluster.scrub()
                require(all("deep-scrub ok" in line for line in lines), f"seed {seed}: {lines}")
                print(f"cluster: osd.{osd} is lost, and its copies are made again", flush=True)
        print(f"cluster: {writer.count} files were synced", flush=True)
        writer.ends.set()
        writer.join(120)
        require(writer.failure is None and not writer.is_alive(), f"the writer fails: {writer.failure}")

        def same(place):
            for name, some in writer.synced.items():
                require((place / "albums" / name).read_bytes() == some, f"seed {seed}: {name} is lost")

        same(place)
        desk.kill(place)
        desk.mount(desk.places[1])
        same(desk.places[1])
        desk.unmount(desk.places[1])
        desk.check()
        print(f"cluster: osd.{order[1]} is lost too, and {len(writer.synced)} files are as they were synced")
    finally:
        desk.end()
