"""`curl -T` to `obscura receive` into the encrypted space, beside `curl -T` to nginx with TLS onto the same disk, in
alternating rounds. Only a quiet machine gives figures; ratios and processor seconds say something on any."""

import os
import shutil
import statistics
import subprocess
import tempfile
import time

from browsers import free_port
from flood import Device
from place import Place

NGINX = """
worker_processes 1; pid {0}/pid; error_log {0}/log; daemon off; master_process off; user root;
events {{ }}
http {{ client_body_temp_path {0}/body; access_log off; client_max_body_size 0;
 server {{ listen 127.0.0.1:{1} ssl; ssl_certificate {0}/certificate; ssl_certificate_key {0}/key; root {0}/root;
 location / {{ dav_methods PUT; }} }} }}
"""


class Nginx:
    def __init__(self):
        self.directory, self.port = tempfile.mkdtemp(prefix="nginx-", dir="/var/tmp"), free_port()
        for name in ("root", "body"):
            os.mkdir(self.directory + "/" + name)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x",
             "-keyout", self.directory + "/key", "-out", self.directory + "/certificate"], check=True, stderr=subprocess.DEVNULL)
        with open(self.directory + "/conf", "w") as file:
            file.write(NGINX.format(self.directory, self.port))
        self.process = subprocess.Popen(["nginx", "-c", self.directory + "/conf"])
        time.sleep(1)

    def seconds(self):
        with open("/proc/%d/stat" % self.process.pid) as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.directory)


def put(url, paths, connections, *words):
    """Seconds of so many curls, each of which sends its files one after another over a connection."""
    senders = []
    begun = time.monotonic()
    for first in range(connections):
        command = ["curl", "-skf", *words]
        for number in range(first, len(paths), connections):
            command += ["-T", paths[number], "-o", "/dev/null", url % number]
        senders.append(subprocess.Popen(command))
    if any(sender.wait() for sender in senders):
        raise RuntimeError("curl failed")
    return time.monotonic() - begun


def speed(rounds, large_bytes, small_count):
    nginx = Nginx()
    with Place() as place:
        place.start()
        device = Device(place)
        source = place.directory + "/source"
        os.mkdir(source)
        for kind, count, size, connections in (
                ("a file", 1, large_bytes, 1), ("photos by a connection", small_count, 3_000_000, 1),
                ("photos by 3 connections", small_count, 3_000_000, 3), ("photos by 6 connections", small_count, 3_000_000, 6)):
            ratios, ours, theirs, load = [], 0.0, 0.0, 0
            for number in range(rounds):
                paths = []
                for index in range(count):
                    # Not those of another kind: memory that they free is quicker to write to than new memory, and
                    # nginx comes first.
                    paths.append("%s/%s-%d" % (source, kind, index))
                    with open(paths[-1], "wb") as file:
                        for _ in range(0, size, 1 << 20):
                            file.write(os.urandom(1 << 20))
                name = "%s-%d-%%d" % (kind.replace(" ", "-"), number)
                before = nginx.seconds(), sum(place.seconds())
                plain = put("https://127.0.0.1:%d/%s" % (nginx.port, name), paths, connections)
                # nginx does not sync; what it left to be written would be written while ours is measured.
                os.sync()
                received = put("%sphoto/%s" % (place.address, name), paths, connections, "-b", device.jar)
                os.sync()
                ratios.append(plain / received)
                theirs += nginx.seconds() - before[0]
                ours += sum(place.seconds()) - before[1]
                load = max(load, os.getloadavg()[0])
            print("%s of %d MB: speed by nginx's, each round: %s; median %.2f; processor seconds a GB: ours %.1f, nginx %.1f; "
                  "load %.1f" % (kind, count * size / 1e6, ["%.2f" % ratio for ratio in ratios], statistics.median(ratios),
                                 ours * 1e9 / (rounds * count * size), theirs * 1e9 / (rounds * count * size), load), flush=True)
    nginx.close()
