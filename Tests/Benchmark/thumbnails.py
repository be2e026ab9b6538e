"""The thumbnails of a folder, as a file manager asks for them: a screen of 40, then all the others, some at a time."""
import concurrent.futures
import os
import shutil
import subprocess
import tempfile
import time

import photos
import systems
from files import IS_ROOT, drop_caches, timed

SCREEN = 40
WORKLOADS = ["first screen", "all", "all, again"]


class Measurement:
    unit, workloads, is_cold = "s", WORKLOADS, IS_ROOT

    def __init__(self, work, count, progress):
        self.work, self.photos, self.count = work, work + "/photos", count
        photos.make_pixels(self.photos, count, 4000, 3000, progress)
        self.names_of_photos = sorted(os.listdir(self.photos))
        self.cores = len(os.sched_getaffinity(0))
        self.commands = {
            "djpeg and cjpeg": "djpeg -scale 1/8 {0}/$1 | cjpeg -quality 85 >{1}/$1",
            "vipsthumbnail": "vipsthumbnail --size 256 -o {1}/%s.jpg {0}/$1",
        }
        self.names = [*self.commands, "obscura"]
        progress("storing the photos")
        self.template = systems.Obscura(tempfile.mkdtemp(prefix="template-", dir=work))
        self.template.mount()
        systems.run(["rsync", "-a", self.photos + "/", self.template.place + "/"])
        self.template.unmount()
        self.title = (f"Thumbnails of 256 pixels of {count} photos of 12 MP, by {self.cores} processes or threads;"
                      f" time relative to djpeg -scale 1/8 | cjpeg, less is better.")

    def run(self, name, progress):
        root = tempfile.mkdtemp(prefix="round-", dir=self.work)
        try:
            return self.run_mount(root, progress) if name == "obscura" else self.run_command(name, root, progress)
        finally:
            subprocess.run(["fusermount3", "-uqz", root + "/mount"], stderr=subprocess.DEVNULL)
            shutil.rmtree(root, ignore_errors=True)

    def run_command(self, name, root, progress):
        """Files written to a directory, and read again from there."""
        command = self.commands[name].format(self.photos, root)

        def make(names):
            listed = "\\n".join(names)
            each = f"xargs -P {self.cores} -I @ bash -ec '{command}' - @"
            return timed(f"printf '{listed}\\n' | {each}")

        drop_caches()
        progress("first screen")
        first = make(self.names_of_photos[:SCREEN])
        progress("all")
        others = self.names_of_photos[SCREEN:]
        everything = first + (make(others) if others else 0)
        drop_caches()
        progress("all, again")
        made = [f"{root}/{name}" for name in os.listdir(root)]
        return {"first screen": first, "all": everything, "all, again": self.read(made)}

    def run_mount(self, root, progress):
        mount = root + "/mount"
        os.mkdir(mount)
        shutil.copytree(self.template.store, root + "/store")

        def attach():
            drop_caches()
            systems.run([systems.OBSCURA, "mount", "--password-file", self.template.secret, root + "/store", mount])

        attach()
        directory = f"{mount}/{self.template.inside}/.thumbs"
        paths = [f"{directory}/{name}" for name in self.names_of_photos]
        progress("first screen")
        first = self.read(paths[:SCREEN])
        progress("all")
        everything = first + self.read(paths[SCREEN:])
        systems.run([systems.OBSCURA, "unmount", mount])
        attach()
        progress("all, again")
        again = self.read(paths)
        systems.run([systems.OBSCURA, "unmount", mount])
        return {"first screen": first, "all": everything, "all, again": again}

    def read(self, paths):
        def read_one(path):
            os.stat(path)
            with open(path, "rb") as file:
                if not file.read().startswith(b"\xff\xd8"):
                    raise RuntimeError(f"{path}: not a picture")

        start = time.perf_counter()
        with concurrent.futures.ThreadPoolExecutor(2 * self.cores) as threads:
            list(threads.map(read_one, paths))
        return time.perf_counter() - start
