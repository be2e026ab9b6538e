"""A Ceph cluster of one monitor and some OSDs on 127.0.0.1, in a directory of its own."""
import contextlib
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid

import rados

SETTINGS = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{port}/0]
public addr = 127.0.0.1
ms bind msgr1 = false
ms bind ipv6 = false
keyring = {dir}/keyring
run dir = {dir}
admin socket =
crash dir = {dir}
log file = {dir}/$name.log
mon cluster log file = {dir}/cluster.log
osd pool default size = {copies}
osd pool default min size = 1
osd crush chooseleaf type = 0
osd heartbeat grace = 4
osd heartbeat interval = 1
osd pool default read lease ratio = 0.1
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 0
mon osd min down reporters = 1
mon osd initial require min compat client = octopus
[mon]
mon data = {dir}/mon
[osd]
admin socket = {dir}/$name.asok
osd data = {dir}/osd.$id
osd objectstore = bluestore
osd scrub load threshold = 1000
osd scrub backoff ratio = 0
osd scrub interval randomize ratio = 0
bluestore block path =
bluestore block create = true
bluestore block size = {disk}
bluestore cache autotune = false
bluestore cache size = 134217728
[mgr]
mgr data = {dir}/mgr
mgr initial modules =
mgr stats period = 1
[client]
log file =
objecter timeout = 2
objecter tick interval = 1
"""


def free_port():
    """A port that nobody listens on, below those that the kernel gives out itself."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port


class Cluster:
    """Started when made; `end` kills it and removes its directory. Each object is on `copies` of its `osds`."""

    POOL = "photos"
    DISK_BYTES = 8 << 30
    # A lease lasts for less than a second here.
    LAGGY_CHECKS = 5

    def __init__(self, directory, osds=1, copies=1):
        self.dir = pathlib.Path(directory)
        self.configuration = self.dir / "ceph.conf"
        self.dir.mkdir()
        (self.dir / "mon").mkdir()
        self.pids = {}
        port, fsid = free_port(), uuid.uuid4()
        self.configuration.write_text(
            SETTINGS.format(dir=self.dir, port=port, fsid=fsid, copies=copies, disk=self.DISK_BYTES)
        )
        keys = self.dir / "keyring"
        for client, caps in [
            ("mon.", ["mon", "allow *"]),
            ("client.admin", ["mon", "allow *", "osd", "allow *", "mgr", "allow *"]),
            ("mgr.x", ["mon", "allow profile mgr", "osd", "allow *"]),
            *[
                (f"osd.{osd}", ["mon", "allow profile osd", "osd", "allow *", "mgr", "allow profile osd"])
                for osd in range(osds)
            ],
        ]:
            pairs = [word for pair in zip(caps[::2], caps[1::2]) for word in ["--cap", *pair]]
            new = [] if keys.exists() else ["--create-keyring"]
            self.run("ceph-authtool", keys, *new, "--gen-key", "-n", client, *pairs)
        monmap = self.dir / "monmap"
        address = f"[v2:127.0.0.1:{port}/0]"
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, monmap)
        self.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keys)
        self.start("mon", "ceph-mon", "-i", "a")
        for osd in range(osds):
            (self.dir / f"osd.{osd}").mkdir()
            identity = uuid.uuid4()
            self.ceph("osd", "new", identity, osd)
            self.run("ceph-osd", "-i", osd, "--mkfs", "--osd-uuid", identity)
            self.start_osd(osd)
        self.ceph("osd", "pool", "create", self.POOL, "8", "8")
        # An answered write says that the placement groups are active.
        self.run("rados", "-p", self.POOL, "put", "ready", self.configuration)

    @property
    def environment(self):
        return {**os.environ, "CEPH_CONF": str(self.configuration)}

    def run(self, *words):
        """Runs a command of Ceph's; returns its output."""
        return self.run_bytes(*words).decode()

    def run_bytes(self, *words):
        ended = subprocess.run([str(word) for word in words], env=self.environment, capture_output=True, timeout=60)
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {ended.stderr.decode(errors='replace')}")
        return ended.stdout

    @contextlib.contextmanager
    def pool(self):
        """The pool, by a connection of its own: a program for each object would take a hundred times as long."""
        with rados.Rados(conffile=str(self.configuration)) as client, client.open_ioctx(self.POOL) as pool:
            yield pool

    def client_number(self):
        """The number of a client that connects now: the monitor gives each one a higher one, by equal steps."""
        with rados.Rados(conffile=str(self.configuration)) as client:
            return client.get_instance_id()

    def connections(self, body):
        """How many clients connect while a function runs, by the monitor's numbers."""
        first, second = self.client_number(), self.client_number()
        body()
        return (self.client_number() - second) // (second - first) - 1

    def ceph(self, *words):
        return self.run("ceph", "--connect-timeout", "20", *words)

    def start(self, name, *words):
        self.pids[name] = subprocess.Popen(
            [*words, "-f"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def start_osd(self, osd=0):
        self.start(f"osd.{osd}", "ceph-osd", "-i", str(osd))

    def kill_osd(self, osd=0):
        process = self.pids.pop(f"osd.{osd}")
        process.kill()
        process.wait()

    def stop_osd(self, osd=0):
        """Stops an OSD's process; `continue_osd` follows."""
        self.pids[f"osd.{osd}"].send_signal(signal.SIGSTOP)

    def continue_osd(self, osd=0):
        """Lets a stopped OSD go on. Returns whether it had to be told to begin anew.

        A group whose lease ended meanwhile is laggy: it holds requests back until the lease is renewed. In a group
        with one OSD nothing ends that, though the lease is renewed: the requests wait for good, those of any client
        (github.com/ceph/ceph-container/issues/1682). Once it is taken for down, the OSD comes back by itself.
        """
        self.pids[f"osd.{osd}"].send_signal(signal.SIGCONT)
        for _ in range(self.LAGGY_CHECKS):
            time.sleep(1)
            answers = [self.ask_osd(osd, prefix="query", pgid=group) for group in self.groups()]
            if not any(answer and "laggy" in answer["state"] for answer in answers):
                return False
        self.ceph("osd", "down", osd)
        return True

    def lose_osd(self, osd):
        """Kills an OSD for good, with its disk. Others get its copies."""
        self.kill_osd(osd)
        shutil.rmtree(self.dir / f"osd.{osd}")
        self.ceph("osd", "out", osd)

    def ask_osd(self, osd, **command):
        """Sends a command to an OSD; None if it refuses. Without a manager there is only this way."""
        with socket.socket(socket.AF_UNIX) as channel:
            channel.settimeout(60)
            channel.connect(str(self.dir / f"osd.{osd}.asok"))
            channel.sendall(json.dumps(command).encode() + b"\0")
            with channel.makefile("rb") as answer:
                text = answer.read(int.from_bytes(answer.read(4), "big"))
        return json.loads(text) if text.startswith(b"{") else None

    def groups(self):
        """The pool's placement groups, and for each the OSD that answers for it."""
        pool = self.pool_details()
        groups = [f"{pool['pool']}.{number:x}" for number in range(pool["pg_num"])]
        return {group: json.loads(self.ceph("pg", "map", group, "-f", "json"))["acting"][0] for group in groups}

    def pool_details(self):
        """What the cluster's map says of the pool."""
        pools = json.loads(self.ceph("osd", "dump", "-f", "json"))["pools"]
        return next(pool for pool in pools if pool["pool_name"] == self.POOL)

    def wait_for_recovery(self):
        """Until each object is on as many OSDs as it should be."""
        states = []
        for _ in range(240):
            answers = [self.ask_osd(osd, prefix="query", pgid=group) for group, osd in self.groups().items()]
            states = [answer and answer["state"] for answer in answers]
            if set(states) == {"active+clean"}:
                return
            time.sleep(0.5)
        raise RuntimeError(f"no recovery: {states}")

    def scrub(self):
        """Compares all copies and their checksums. Returns the lines of the OSDs about it, for all groups."""
        log = self.dir / "cluster.log"
        begun = len(log.read_text().splitlines())
        self.set_scrubbing(1)
        for _ in range(240):
            lines = [line for line in log.read_text().splitlines()[begun:] if " deep-scrub " in line]
            ended = {group: [line for line in lines if f" {group} deep" in line][1:] for group in self.groups()}
            if all(ended.values()):
                self.set_scrubbing(7 * 86_400)
                return [line for line in lines if "starts" not in line]
            time.sleep(0.5)
        raise RuntimeError(f"no scrub: {lines}")

    def set_scrubbing(self, seconds):
        """Scrubs each group so often: one that is told to scrub may wait for days."""
        for osd in {name.removeprefix("osd.") for name in self.pids if name.startswith("osd.")}:
            for name in ["deep_scrub_interval", "scrub_max_interval", "scrub_min_interval"]:
                self.ask_osd(osd, prefix="config set", var=f"osd_{name}", val=[str(seconds)])

    def start_manager(self):
        """Starts the daemon that counts what pools have, if it does not run: without it a quota has no effect."""
        if "mgr" in self.pids:
            return
        (self.dir / "mgr").mkdir()
        self.start("mgr", "ceph-mgr", "-i", "x")

    def set_groups(self, count):
        """Has the manager split the pool's placement groups, or merge them, until there are so many."""
        self.start_manager()
        self.ceph("osd", "pool", "set", self.POOL, "pg_autoscale_mode", "off")
        self.ceph("osd", "pool", "set", self.POOL, "pg_num", count)

    def pool_bytes(self):
        """The bytes of the pool as the manager has counted them."""
        self.start_manager()
        for _ in range(120):
            pools = json.loads(self.ceph("df", "-f", "json"))["pools"]
            found = [pool["stats"]["stored"] for pool in pools if pool["name"] == self.POOL]
            if found and found[0] > 0:
                return found[0]
            time.sleep(0.5)
        raise RuntimeError("the manager counts nothing")

    def set_quota(self, count):
        """Limits the pool to so many bytes; 0 for no limit."""
        self.start_manager()
        self.ceph("osd", "pool", "set-quota", self.POOL, "max_bytes", count)

    def reads(self, osd=0):
        """Requests to read from objects that an OSD has answered."""
        return self.ask_osd(osd, prefix="perf dump")["osd"]["op_r"]

    def disk_bytes(self, osd=0):
        """The bytes of an OSD's disk that are in use."""
        counters = self.ask_osd(osd, prefix="perf dump")
        return counters["bluestore"]["bluestore_allocated"] + counters["bluefs"]["db_used_bytes"]

    def set_full_ratio(self, ratio):
        """From which part of its disk on an OSD takes itself for full."""
        steps = [("nearfull", ratio - 0.002), ("backfillfull", ratio - 0.001), ("full", ratio)]
        # Each must be lower than the next one at any time.
        for name, part in reversed(steps) if ratio > 0.9 else steps:
            self.ceph("osd", f"set-{name}-ratio", f"{part:.4f}")

    def set_full(self, isFull):
        """Makes the cluster take itself for full, or no longer."""
        ratios = [("backfillfull", 0.0002), ("nearfull", 0.0001), ("full", 0.0003)]
        if not isFull:
            ratios = [("full", 0.96), ("backfillfull", 0.95), ("nearfull", 0.94)]
        for name, ratio in ratios:
            self.ceph("osd", f"set-{name}-ratio", ratio)
        for _ in range(120):
            # Not `1 nearfull osd(s)`.
            if (" 1 full osd" in " " + self.ceph("health")) == isFull:
                return
            time.sleep(0.5)
        raise RuntimeError("the cluster does not change its mind about being full")

    def end(self):
        for process in self.pids.values():
            process.send_signal(signal.SIGKILL)
            process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)
