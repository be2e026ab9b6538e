"""A Ceph cluster of one monitor and one OSD on 127.0.0.1, in a directory of its own."""
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time
import uuid

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
osd pool default size = 1
osd pool default min size = 1
osd crush chooseleaf type = 0
osd heartbeat grace = 4
osd heartbeat interval = 1
osd pool default read lease ratio = 0.1
mon allow pool size one = true
mon warn on pool no redundancy = false
mon data avail crit = 0
mon osd initial require min compat client = octopus
[mon]
mon data = {dir}/mon
[osd]
osd data = {dir}/osd
osd objectstore = bluestore
bluestore block path =
bluestore block create = true
bluestore block size = 8589934592
bluestore cache autotune = false
bluestore cache size = 134217728
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
    """Started when made; `end` kills it and removes its directory."""

    POOL = "photos"

    def __init__(self, directory):
        self.dir = pathlib.Path(directory)
        self.configuration = self.dir / "ceph.conf"
        self.dir.mkdir()
        for name in ["mon", "osd"]:
            (self.dir / name).mkdir()
        self.pids = {}
        port, fsid = free_port(), uuid.uuid4()
        self.configuration.write_text(SETTINGS.format(dir=self.dir, port=port, fsid=fsid))
        keys = self.dir / "keyring"
        for client, caps in [
            ("mon.", ["mon", "allow *"]),
            ("client.admin", ["mon", "allow *", "osd", "allow *"]),
            ("osd.0", ["mon", "allow profile osd", "osd", "allow *"]),
        ]:
            pairs = [word for pair in zip(caps[::2], caps[1::2]) for word in ["--cap", *pair]]
            new = [] if keys.exists() else ["--create-keyring"]
            self.run("ceph-authtool", keys, *new, "--gen-key", "-n", client, *pairs)
        monmap = self.dir / "monmap"
        address = f"[v2:127.0.0.1:{port}/0]"
        self.run("monmaptool", "--create", "--fsid", fsid, "--addv", "a", address, monmap)
        self.run("ceph-mon", "-i", "a", "--mkfs", "--monmap", monmap, "--keyring", keys)
        self.start("mon", "ceph-mon", "-i", "a")
        osd = uuid.uuid4()
        self.ceph("osd", "new", osd, "0")
        self.run("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.start_osd()
        self.ceph("osd", "pool", "create", self.POOL, "8", "8")
        # An answered write says that the placement groups are active.
        self.run("rados", "-p", self.POOL, "put", "ready", self.configuration)

    @property
    def environment(self):
        return {**os.environ, "CEPH_CONF": str(self.configuration)}

    def run(self, *words):
        """Runs a command of Ceph's; returns its output."""
        ended = subprocess.run(
            [str(word) for word in words], env=self.environment, capture_output=True, text=True, timeout=60
        )
        if ended.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: {ended.stderr}")
        return ended.stdout

    def ceph(self, *words):
        return self.run("ceph", "--connect-timeout", "20", *words)

    def start(self, name, *words):
        self.pids[name] = subprocess.Popen(
            [*words, "-f"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def start_osd(self):
        self.start("osd", "ceph-osd", "-i", "0")

    def kill_osd(self):
        self.pids["osd"].kill()
        self.pids["osd"].wait()

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
