#!/usr/bin/env python3
"""Vaults on a Ceph cluster, from outside: cluster.py PROGRAM [--rounds N] [--seed S]

First each promise once; then rounds in which mounts and the cluster are killed, stopped and continued at random. What
was synced is there after each, and never do two mounts both write. A failure names its seed and round.
"""
import argparse
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
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

    def __init__(self, program):
        self.program = os.path.abspath(program)
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="obscura-cluster-"))
        self.cluster = ceph.Cluster(self.dir / "ceph")
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
        ended = subprocess.run(
            [self.program, *words, "--password-stdin"] if words[0] not in NO_PASSWORD else [self.program, *words],
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
    desk.obscura("backup", "copy", "ceph:photos/again", "--quiet", status=1)
    desk.obscura("export", "ceph:photos/again", "out", "--quiet")
    for name, some in content.items():
        require((desk.dir / "out/albums" / name).read_bytes() == some, f"{name} is not as exported")
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
    require("nothing is damaged" in desk.elsewhere("check", VAULT), "a check after it was handed over")
    require(not os.path.ismount(a), "it was handed over and is mounted")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds-only", action="store_true")
    arguments = parser.parse_args()
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
