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
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import evidence
import spaces
from beside import beside
from busy import busy, memory
from desk import VAULT, Desk, Failed, put, require
from full import filled
from kills import losses, rounds
from stopped import killed


# Without a sign of life for so long, the OSD forgets that a mount listens for messages.
WATCH_SECONDS = 30


def promises(desk):
    a, b = desk.places
    desk.obscura("info", "ceph:nopool/x", status=1)
    desk.obscura("info", "ceph:photos/none", status=3)
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
    connections(desk, content)
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
    many(desk)
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
        # Whoever asks the next holder would wait for this one's answer too.
        watchers = desk.cluster.run("rados", "-p", desk.cluster.POOL, "listwatchers", "family/header")
        require(not watchers.strip(), f"a mount that was handed over still listens: {watchers}")
        try:
            file.seek(4_000_000)
            file.read(100)
            raise Failed("a file is read from a mount that was handed over")
        except OSError as error:
            require(error.errno in [errno.ENOTCONN, errno.ECONNABORTED], f"a file of a former mount: {error}")
    print("cluster: it asks while much is on its way")
    desk.mount(a, "-o", "share=handover")
    copied = {f"copied{number}": random.randbytes(3_000_000) for number in range(20)}
    for name, some in copied.items():
        (a / "albums" / name).write_bytes(some)
    began = time.monotonic()
    require("nothing is damaged" in desk.elsewhere("check", VAULT), "a check after much was handed over")
    print(f"cluster: handed over and checked in {time.monotonic() - began:.1f} s")
    desk.mount(a)
    same(a, copied)
    for name in copied:
        (a / "albums" / name).unlink()
    same(a, {**content, "killed": b"synced", "shared": b"before", "open": b"still here"})
    print("cluster: a stopped mount whose vault another one took")
    pid = desk.stop(a)
    desk.mount(b)
    put(b / "albums/taken", b"by B")
    desk.require_shut_out(pid, a, "a stopped mount")
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
    killed(desk, content)
    desk.unmount(a)
    changed(desk)
    desk.mount(a)
    print("cluster: an OSD that is away for longer than a lock lasts")
    desk.cluster.kill_osd()
    writer = subprocess.Popen(["cp", desk.dir / "copy/obscura.vault", a / "albums/waits"])
    time.sleep(30)
    require("waiting for the cluster, " in desk.obscura("status"), "status does not say that the cluster is away")
    desk.cluster.start_osd()
    require(writer.wait(120) == 0, "a write fails after the OSD was away for long")
    put(a / "albums/long", b"written after that")
    content["long"] = b"written after that"
    desk.unmount(a)
    print("cluster: a mount that begins while the OSD is away")
    desk.cluster.kill_osd()
    require("timed out" in desk.mount(a, status=1), "it does not say that nothing answers")
    desk.cluster.start_osd()
    for outage in ["the OSD was away", "it was stopped"]:
        print(f"cluster: a mount that is asked for the vault after {outage} for longer than a watch lasts")
        desk.mount(a, "-o", "share=handover")
        put(a / "albums/long", b"written before that")
        pid = desk.daemon(a)
        if outage == "it was stopped":
            desk.stop(a)
            time.sleep(WATCH_SECONDS + 5)
            desk.go_on(pid)
        else:
            desk.cluster.kill_osd()
            time.sleep(WATCH_SECONDS + 5)
            desk.cluster.start_osd()
        put(a / "albums/long", b"written after that")
        time.sleep(5)
        require("nothing is damaged" in desk.elsewhere("check", VAULT), "not handed over")
    desk.mount(a)
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


def connections(desk, content):
    """A command connects once, though it looks at the vault before it opens it; a mount's process once more."""
    print("cluster: connections of commands")
    a = desk.places[0]
    for words, body in [
        ("export", lambda: desk.same(VAULT, content)),
        ("check", desk.check),
        ("import", lambda: desk.obscura("import", VAULT, desk.cluster.configuration)),
        ("info", lambda: desk.obscura("info", VAULT)),
    ]:
        made = desk.cluster.connections(body)
        require(made == 1, f"{words} connects {made} times")
    made = desk.cluster.connections(lambda: desk.mount(a))
    require(made == 2, f"a mount connects {made} times")
    made = desk.cluster.connections(lambda: desk.unmount(a))
    require(made == 0, f"an unmount connects {made} times")


def many(desk):
    """Taking a vault over takes a request for each placement group, not for each object."""
    print("cluster: a killed mount of a vault with many objects")
    a, vault, objects = desk.places[1], "ceph:photos/many", 3000
    desk.obscura("create", vault, "--spaces", 1)
    with desk.cluster.pool() as pool:
        begun = [pool.aio_write_full(f"many/{2000 + number // 16:06}.{number % 16}", b"x") for number in range(objects)]
        for write in begun:
            write.wait_for_complete()
    desk.mount(a, vault=vault)
    put(a / "albums/killed", b"synced")
    desk.kill(a)
    before = desk.cluster.reads()
    desk.mount(a, vault=vault)
    reads = desk.cluster.reads() - before
    require(reads < objects / 2, f"{reads} reads to take over a vault of {objects} objects")
    require((a / "albums/killed").read_bytes() == b"synced", "what was synced is not there")
    desk.unmount(a)


def changed(desk):
    """A mount publishes nothing once anybody else has changed an object with roots."""
    print("cluster: somebody else's write to an object with roots")
    a, vault = desk.places[0], "ceph:photos/changed"
    for number in range(2):
        desk.obscura("create", f"{vault}{number}", "--spaces", 1)
        desk.mount(a, vault=f"{vault}{number}")
        for synced in range(4):
            put(a / "albums" / f"before{synced}", b"before")
        # The object and its lock stay as they are.
        for segment in range(2):
            with desk.cluster.pool() as pool:
                pool.set_xattr(f"changed{number}/{segment:06}.0", "somebody", b"else")
        if number == 1:
            # Longer than until the next renewal.
            time.sleep(6)
        try:
            put(a / "albums/after", b"after")
            raise Failed("a root is published after somebody else's write")
        except OSError as error:
            require(error.errno in [errno.EROFS, errno.EIO], f"after somebody else's write: {error}")
        require("taken the space over" in desk.obscura("status"), "status does not tell of somebody else's write")
        desk.unmount(a, "--discard")
        desk.mount(a, vault=f"{vault}{number}")
        require(not (a / "albums/after").exists(), "what was refused is there")
        require((a / "albums/before3").read_bytes() == b"before", "what was synced is not there")
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds-only", action="store_true")
    parser.add_argument("--losses", action="store_true", help="instead: three OSDs, of which two are lost")
    parser.add_argument("--directory", help="for all that is made")
    arguments = parser.parse_args()
    tempfile.tempdir = arguments.directory
    # What a script starts beside itself ignores it, and so would all programs that are interrupted here.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
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
            spaces.spaces(desk)
            beside(desk)
            busy(desk)
            memory(desk)
            filled(desk)
        rounds(desk, arguments.rounds, arguments.seed)
        spaces.rounds(desk, arguments.rounds, arguments.seed)
        print("cluster: all good")
    except (Failed, OSError) as error:
        print(evidence.of(desk), flush=True)
        sys.exit(f"cluster: {type(error).__name__}: {error}")
    finally:
        desk.end()


main()
