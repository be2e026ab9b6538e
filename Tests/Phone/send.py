"""Many photos and a long video by a real browser, over a bad network, with everything killed at random."""

import hashlib
import os
import random
import re
import signal
import subprocess
import time

from browsers import BROWSERS
from place import Place
from proxy import Proxy


def digest(path):
    result = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            result.update(block)
    return result.digest()


def make_files(directory, count, photo_bytes, video_bytes):
    """Photos that differ, with dates, and a video: `directory` keeps them for the next time."""
    os.makedirs(directory, exist_ok=True)
    paths = []
    template = directory + "/template.jpg"
    if not os.path.exists(template):
        subprocess.run(["convert", "-size", "1600x1200", "plasma:blue-red", "-quality", "90", template], check=True)
        subprocess.run(["exiftool", "-q", "-overwrite_original", "-DateTimeOriginal=2024:05:01 10:00:00",
                        "-GPSLatitude=47", "-GPSLatitudeRef=N", "-GPSLongitude=8", "-GPSLongitudeRef=E", template], check=True)
    with open(template, "rb") as file:
        head = file.read()
    for number in range(count):
        path = "%s/IMG_%04d.jpg" % (directory, number)
        if not os.path.exists(path) or os.path.getsize(path) != photo_bytes:
            with open(path, "wb") as file:
                file.write(head + os.urandom(photo_bytes - len(head)))
        paths.append(path)
    if video_bytes:
        path = directory + "/VID_20240501_101010.mp4"
        if not os.path.exists(path) or os.path.getsize(path) != video_bytes:
            with open(path, "wb") as file:
                file.write(b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x01mdat" + (video_bytes - 24).to_bytes(8, "big"))
                while file.tell() < video_bytes:
                    file.write(os.urandom(min(1 << 20, video_bytes - file.tell())))
        paths.insert(count // 2, path)
    return paths


class Trial:
    def __init__(self, name, paths, seed, rate):
        self.random, self.paths = random.Random(seed), paths
        self.kinds = os.environ.get("PHONE_HARMS", "cut cut outage reload browser receiver daemon").split()
        self.place, self.counts = Place(), {}
        self.place.start()
        self.proxy = Proxy(self.place.port, rate)
        self.browser = BROWSERS[name]().start()
        print(self.browser.version, "seed", seed, flush=True)

    def link(self, code=True):
        return "https://127.0.0.1:%d/" % self.proxy.port + ("#" + self.place.code if code else "")

    def choose(self):
        for _ in range(5):
            try:
                self.browser.wait("document.readyState === 'complete' && (!document.getElementById('send').hidden "
                                  "|| !document.getElementById('code').hidden)", 40)
                break
            except TimeoutError:
                # The network was cut while the page came.
                self.browser.open(self.link(False))
        if self.browser.evaluate("document.getElementById('send').hidden"):
            print("  the page asks for a code", flush=True)
            self.place.new_code()
            self.browser.open(self.link())
            self.browser.wait("!document.getElementById('send').hidden", 60)
        self.browser.choose("originals", self.paths)

    def page(self):
        """Files that arrived, were known, failed; and the line of progress."""
        summary = self.browser.evaluate("document.getElementById('summary').innerText") or ""
        numbers = [sum(map(int, re.findall(word + r": (\d+)", summary))) for word in ("Arrived", "There already", "Not sent")]
        return numbers, self.browser.evaluate("document.getElementById('status').textContent") or ""

    def harm(self):
        kind = self.random.choice(self.kinds)
        self.counts[kind] = self.counts.get(kind, 0) + 1
        print("  %.0f s: %s, %s" % (time.monotonic() - self.begun, kind, self.page()), flush=True)
        if kind == "cut":
            self.proxy.cut()
        elif kind == "outage":
            self.proxy.cut(self.random.uniform(2, 8))
        elif kind == "reload":
            self.browser.reload()
            self.choose()
        elif kind == "browser":
            self.browser.kill()
            self.browser.start()
            self.browser.open(self.link(False))
            self.choose()
        else:
            if kind == "receiver":
                self.place.stop(signal.SIGKILL)
            else:
                os.kill(self.place.daemon(), signal.SIGKILL)
                self.place.receiver.wait(60)
                print("  " + self.place.errors().strip().split("\n")[-1], flush=True)
                subprocess.run(["umount", "-l", self.place.mounted], check=False)
                for _ in range(50):
                    try:
                        self.place.mount()
                        break
                    except subprocess.CalledProcessError:
                        time.sleep(0.2)
            self.place.start()
            self.proxy.target = self.place.port
            self.proxy.cut()
            # The certificate and the code are others: a person scans again, which opens another tab.
            self.browser.open("about:blank")
            self.browser.open(self.link())
            self.choose()

    def run(self, harms, pause):
        self.begun = time.monotonic()
        self.browser.open(self.link())
        self.choose()
        most, next_harm = [0, 0, 0], time.monotonic() + self.random.uniform(*pause)
        while True:
            time.sleep(0.5)
            numbers, status = self.page()
            for process, own in enumerate(self.place.memory() if self.place.receiver.poll() is None else []):
                most[process] = max(most[process], own)
            if harms and time.monotonic() > next_harm:
                self.harm()
                harms -= 1
                next_harm = time.monotonic() + self.random.uniform(*pause)
            elif sum(numbers[:2]) == len(self.paths) and status == "All done.":
                break
            elif numbers[2]:
                raise RuntimeError("a file failed: %s %s" % (numbers, status))
            elif time.monotonic() - self.begun > 3000:
                raise RuntimeError("it does not end: %s %s" % (numbers, status))
        print("sent in %.0f s, %s, most memory of its own %s KiB, processor seconds %s" % (
            time.monotonic() - self.begun, self.counts, most, self.place.seconds()), flush=True)

    def compare(self):
        print(self.place.stop(), self.place.errors().strip())
        album = self.place.album
        self.place.unmount()
        self.place.mount()
        names = sorted(os.listdir(album))
        same = sum(digest(path) == digest(album + "/" + os.path.basename(path)) for path in self.paths)
        moments = sum(len(files) for _, _, files in os.walk(self.place.mounted + "/moments"))
        print("%d of %d the same; %d names in the album, %d in moments" % (same, len(self.paths), len(names), moments))
        parts = [name for name in names if name.startswith(".")]
        if same != len(self.paths) or len(names) != same or moments != same or parts:
            raise RuntimeError("not as sent: %s" % parts)
        subprocess.run([self.place.program, "check", self.place.mounted], check=True)

    def close(self):
        self.browser.close()
        self.place.__exit__()


def send(name, paths, seed, harms, pause, rate):
    trial = Trial(name, paths, seed, rate)
    try:
        trial.run(harms, pause)
        trial.compare()
    except Exception:
        print(trial.place.errors())
        print((trial.browser.evaluate("document.body.innerText") or "")[:3000])
        raise
    finally:
        trial.close()
