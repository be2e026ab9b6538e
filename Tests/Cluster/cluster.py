#!/usr/bin/env python3
"""Vaults on a Ceph cluster, from outside: cluster.py PROGRAM [--rounds N] [--seed S]

First each promise once; then rounds in which mounts and the cluster are killed, stopped and continued at random. What
was synced is there after each, and never do two mounts both write. A failure names its seed and round.
"""
import argparse
import errno
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import ceph

VAULT = "ceph:photos/family"
PASSWORD = "a password for tests\n"


class Failed(Exception):
    pass


def require(holds, text):
    if not holds:
        raise Failed(text)


class Desk:
    """A cluster, a program, and two places to mount at."""

    def __init__(self, program, **cluster):
        self.program = os.path.abspath(program)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="obscura-cluster-"))
        self.cluster = ceph.Cluster(self.dir / "ceph", **cluster)
        self.places = [self.dir / "A", self.dir / "B"]
        for place in self.places:
            place.mkdir()
        (self.dir / "files").mkdir()

    def end(self):
        for place in self.places:
            self.kill(place)
        self.cluster.end()
        shutil.rmtree(self.dir, ignore_errors=True)

    def obscura(self, *words, status=0, seconds=120):
        """Runs a command; requires its exit status. Returns its output and errors."""
        words = [str(word) for word in words]
        asks = words[0] not in NO_PASSWORD or "--check" in words
        ended = subprocess.run(
            [self.program, *words, *(["--password-stdin"] if asks else [])],
            input=PASSWORD,
            env=self.cluster.environment,
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=seconds,
        )
        text = ended.stdout + ended.stderr
        require(ended.returncode == status, f"{' '.join(words)}: {ended.returncode}, not {status}: {text}")
        return text

    def elsewhere(self, *words, status=0, password=PASSWORD):
        """Runs a command that sees no process of this computer, as on another one."""
        ended = subprocess.run(
            ["unshare", "--pid", "--fork", "--mount-proc", "sh", "-c"]
            # This namespace's copies of the mounts would keep them.
            + [f"umount -l {self.places[0]} {self.places[1]} 2>/dev/null; exec \"$@\"", "sh"]
            + [self.program, *words, "--password-stdin"],
            input=password,
            env=self.cluster.environment,
            cwd=self.dir,
            capture_output=True,
            text=True,
            timeout=120,
        )
        text = ended.stdout + ended.stderr
        require(ended.returncode == status, f"elsewhere: {' '.join(words)}: {ended.returncode}, not {status}: {text}")
        return text

    def mount(self, place, *words, status=0):
        return self.obscura("mount", VAULT, place, *words, status=status)

    def unmount(self, place, *words, status=0):
        return self.obscura("unmount", place, *words, status=status)

    def check(self, vault=VAULT):
        require("nothing is damaged" in self.obscura("check", vault), "damaged")

    def same(self, vault, wanted):
        """Requires that an export of a vault has these files in `albums`."""
        shutil.rmtree(self.dir / "out", ignore_errors=True)
        self.obscura("export", vault, "out", "--quiet")
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

    def kill(self, place):
        pid = self.daemon(place)
        if pid:
            os.kill(pid, signal.SIGKILL)
        subprocess.run(["umount", "-l", place], capture_output=True)
        while self.daemon(place):
            time.sleep(0.05)


NO_PASSWORD = {"unmount", "info", "status", "header", "grow", "backup"}


def put(path, content):
    """Writes a file and syncs it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def promises(desk):
    a, b = desk.places
    desk.obscura("info", "ceph:nopool/x", status=1)
    desk.obscura("info", "ceph:photos/none", status=3)
    require("has one space" in desk.obscura("create", VAULT, "--spaces", 2, "--size", "32M", status=2), "two spaces")
    desk.obscura("create", VAULT, "--spaces", 1)
    require("already a vault" in desk.obscura("create", VAULT, "--spaces", 1, status=1), "made twice")
    lost = "lost/000000.0"
    desk.cluster.run("rados", "-p", desk.cluster.POOL, "put", lost, desk.cluster.configuration)
    desk.obscura("create", "ceph:photos/lost", "--spaces", 1, status=1)
    require(lost in desk.cluster.run("rados", "-p", desk.cluster.POOL, "ls").split(), "a vault without header is lost")
    print("cluster: a mount, a second one, an unmount")
    desk.mount(a)
    content = {f"{number}.bin": random.randbytes(random.choice([0, 900, 70_000, 5_000_000])) for number in range(20)}
    for name, some in content.items():
        put(a / "albums" / name, some)
    require("mounted at" in desk.mount(b, status=5), "a second mount does not say where the first is")
    desk.obscura("check", VAULT, status=5)
    desk.unmount(a)
    desk.mount(b)

    def same(place, wanted=content):
        for name, some in wanted.items():
            require((place / "albums" / name).read_bytes() == some, f"{name} differs")

    same(b)
    desk.unmount(b)
    desk.check()
    print("cluster: a copy in files, and one of it on the cluster")
    desk.obscura("backup", VAULT, "copy", "--quiet")
    desk.check("copy")
    desk.obscura("backup", "copy", "ceph:photos/again", "--quiet")
    desk.check("ceph:photos/again")
    desk.same("ceph:photos/again", content)
    copies(desk, content)
    headers(desk)
    print("cluster: a killed mount")
    desk.mount(a)
    put(a / "albums/killed", b"synced")
    desk.kill(a)
    desk.mount(a)
    same(a, {**content, "killed": b"synced"})
    print("cluster: another computer asks for the vault")
    require(socket.gethostname() in desk.elsewhere("check", VAULT, status=5), "the holder's name is not told")
    desk.elsewhere("check", VAULT, status=4, password="a wrong one\n")
    desk.unmount(a)
    desk.mount(a, "-o", "share=handover")
    put(a / "albums/shared", b"before")
    with open(a / "albums/open", "wb") as file:
        desk.elsewhere("check", VAULT, status=5)
        file.write(b"still here")
    desk.elsewhere("check", VAULT, status=4, password="a wrong one\n")
    require(os.path.ismount(a), "a wrong password unmounts")
    name = next(name for name, some in content.items() if len(some) > 4_000_000)
    with open(a / "albums" / name, "rb") as file:
        require(file.read(1000) == content[name][:1000], "a file that is open for reading differs")
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        began = time.monotonic()
        require("nothing is damaged" in desk.elsewhere("check", VAULT), "a check after it was handed over")
        print(f"cluster: handed over and checked in {time.monotonic() - began:.1f} s")
        require(not os.path.ismount(a), "it was handed over and is mounted")
        try:
            file.seek(4_000_000)
            file.read(100)
            raise Failed("a file is read from a mount that was handed over")
        except OSError as error:
            require(error.errno in [errno.ENOTCONN, errno.ECONNABORTED], f"a file of a former mount: {error}")
    desk.mount(a)
    same(a, {**content, "killed": b"synced", "shared": b"before", "open": b"still here"})
    print("cluster: a stopped mount whose vault another one took")
    pid = desk.daemon(a)
    os.kill(pid, signal.SIGSTOP)
    desk.mount(b)
    put(b / "albums/taken", b"by B")
    os.kill(pid, signal.SIGCONT)
    try:
        put(a / "albums/late", b"by A")
        raise Failed("two mounts write")
    except OSError:
        pass
    require("taken the space over" in desk.obscura("status"), "status does not say who has the space")
    desk.unmount(a, "--discard")
    desk.unmount(b)
    desk.mount(a)
    same(a, {**content, "taken": b"by B"})
    require(not (a / "albums/late").exists(), "what came too late is there")
    print("cluster: an OSD that is away for some seconds")
    desk.cluster.kill_osd()
    writer = subprocess.Popen(["cp", desk.dir / "copy/obscura.vault", a / "albums/waits"])
    time.sleep(3)
    require(writer.poll() is None or writer.returncode == 0, "a write fails while the OSD is away")
    desk.cluster.start_osd()
    require(writer.wait(120) == 0, "a write fails after the OSD is back")
    print("cluster: an OSD that is away for longer than a lock lasts")
    desk.cluster.kill_osd()
    writer = subprocess.Popen(["cp", desk.dir / "copy/obscura.vault", a / "albums/waits"])
    time.sleep(30)
    require("waiting for the cluster, " in desk.obscura("status"), "status does not say that the cluster is away")
    desk.cluster.start_osd()
    require(writer.wait(120) == 0, "a write fails after the OSD was away for long")
    put(a / "albums/long", b"written after that")
    content["long"] = b"written after that"
    print("cluster: a full one")
    desk.cluster.set_full(True)
    refused = 0
    for number in range(20):
        try:
            put(a / f"albums/full{number}", random.randbytes(2_000_000))
        except OSError as error:
            require(error.errno == 28, f"full: {error}")
            refused += 1
    require(refused > 0, "nothing is refused by a full cluster")
    os.unlink(a / "albums/waits")
    desk.cluster.set_full(False)
    put(a / "albums/after", b"room again")
    desk.unmount(a)
    desk.check()
    desk.mount(a)
    same(a, {**content, "after": b"room again"})
    require(not (a / "albums/waits").exists(), "what was removed is there")
    desk.unmount(a)


def copies(desk, content):
    """Copies that are there already get what changed, and survive that a backup is killed. Changes `content`."""
    a, again = desk.places[0], "ceph:photos/again"

    def change(name, some):
        desk.mount(a)
        put(a / "albums" / name, some)
        content[name] = some
        desk.unmount(a)

    print("cluster: copies that are there already")
    change("more", random.randbytes(400_000))
    for source, target in [(VAULT, "copy"), ("copy", again), (VAULT, "ceph:photos/between")]:
        report = json.loads(desk.obscura("backup", source, target, "--quiet", "--json"))
        if target != "ceph:photos/between":
            require(report["bytes_written"] < 4_000_000, f"all is copied again: {report}")
        desk.check(target)
        desk.same(target, content)
    report = json.loads(desk.obscura("backup", VAULT, again, "--check", "--quiet", "--json"))
    require(report["complete"] and report["findings"] == [], f"a backup with a check: {report}")
    desk.obscura("create", "other", "--spaces", 1)
    require("another vault" in desk.obscura("backup", "other", again, "--quiet", status=1), "another vault's copy")
    print("cluster: a copy of a mounted vault")
    desk.mount(a)
    put(a / "albums/more", content["more"])
    desk.obscura("backup", VAULT, "copy", "--quiet")
    desk.same("copy", content)
    desk.unmount(a)
    print("cluster: backups that are killed")
    for number in range(3):
        before = dict(content)
        change(f"more{number}", random.randbytes(3_000_000))
        command = [desk.program, "backup", VAULT, again, "--quiet"]
        backup = subprocess.Popen(command, env=desk.cluster.environment, cwd=desk.dir)
        time.sleep(random.random() * 1.5)
        backup.kill()
        backup.wait()
        desk.check(again)
        desk.same(again, before)
        desk.obscura("backup", VAULT, again, "--quiet")
        desk.same(again, content)
    names = desk.cluster.run("rados", "-p", desk.cluster.POOL, "ls").split()
    require(not [name for name in names if "/log-" in name], f"logs are left: {names}")


def headers(desk):
    """A header that is lost is restored."""
    print("cluster: a header that is lost")
    vault = "ceph:photos/again"
    desk.obscura("header", "export", vault, "header")
    require("nothing to do" in desk.obscura("header", "restore", vault, "header"), "the same header")
    require("grows with its photos" in desk.obscura("grow", vault, "1G", status=2), "a vault that grows")
    desk.cluster.run("rados", "-p", desk.cluster.POOL, "rm", "again/header")
    desk.obscura("info", vault, status=3)
    desk.obscura("header", "restore", "ceph:photos/none", "header", status=3)
    desk.obscura("header", "restore", vault, "header")
    desk.check(vault)
    desk.obscura("create", "ceph:photos/another", "--spaces", 1)
    desk.obscura("header", "restore", "ceph:photos/another", "header", status=1)
    desk.check("ceph:photos/another")


def rounds(desk, count, seed):
    """Random ends of mounts and of the OSD. `synced` are the contents that fsync(2) promised."""
    choose = random.Random(seed)
    synced, unsure = {}, {}
    stopped = []
    for number in range(count):
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
        # Those that were stopped go on while another one has the vault: nothing of theirs may come through.
        for pid, old, late in stopped:
            os.kill(pid, signal.SIGCONT)
            try:
                put(old / "albums" / late, b"late")
                raise Failed(f"seed {seed}, round {number}: two mounts write")
            except OSError:
                pass
        stopped = []
        end = choose.random()
        if end < 0.45:
            desk.kill(place)
        elif end < 0.7:
            pid = desk.daemon(place)
            os.kill(pid, signal.SIGSTOP)
            stopped.append((pid, place, f"late{number}"))
        else:
            desk.unmount(place)
        print(f"cluster: seed {seed}, round {number}: {len(synced)} files", flush=True)
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
        self.synced, self.failure = {}, None
        self.ends = threading.Event()

    def run(self):
        number = 0
        try:
            while not self.ends.is_set():
                name = f"w{number % 400}"
                some = self.choose.randbytes(self.choose.choice([10, 5_000, 300_000, 3_000_000]))
                self.synced.pop(name, None)
                put(self.place / "albums" / name, some)
                self.synced[name] = some
                number += 1
        except OSError as error:
            self.failure = error

    def waits_for(self, count):
        """Until it has synced so many files more."""
        wanted = len(self.synced) + count
        deadline = time.monotonic() + 120
        while len(self.synced) < wanted:
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds-only", action="store_true")
    parser.add_argument("--losses", action="store_true", help="instead: three OSDs, of which two are lost")
    arguments = parser.parse_args()
    if arguments.losses:
        try:
            losses(arguments.program, arguments.seed)
        except Failed as error:
            sys.exit(f"cluster: {error}")
        return
    desk = Desk(arguments.program)
    try:
        if arguments.rounds_only:
            desk.obscura("create", VAULT, "--spaces", 1)
        else:
            promises(desk)
        rounds(desk, arguments.rounds, arguments.seed)
        print("cluster: all good")
    except Failed as error:
        sys.exit(f"cluster: {error}")
    finally:
        desk.end()


main()
