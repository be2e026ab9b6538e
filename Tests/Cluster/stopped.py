"""Programs that are killed while the OSD is stopped end; the mount goes on with it."""
import os
import random
import subprocess
import time

from desk import Failed, put, require

# More than a page of the catalogue has of such names, and of their inodes.
NEIGHBOURS = 100
# More than SQLite's cache and `RecentBytes` together.
READ_FILES, READ_BYTES = 400, 60_000
READ_NAME = "user.read"


def surround(directory, name):
    """Makes a file in an empty directory. No page of the catalogue has its rows and those of other directories."""
    for first in "!~":
        for number in range(NEIGHBOURS):
            (directory / f"{first * 200}{number:03}").touch()
        if first == "!":
            put(directory / name, name.encode())


def make_read(directory):
    """Makes files with attributes that fill more pages than a mount keeps."""
    for number in range(READ_FILES):
        path = directory / f"{number}"
        path.touch()
        os.setxattr(path, READ_NAME, random.randbytes(READ_BYTES))


def read_others(directory):
    """Reads so many other pages that the mount keeps none that it had read before."""
    for number in range(READ_FILES):
        require(len(os.getxattr(directory / f"{number}", READ_NAME)) == READ_BYTES, "an attribute is cut")


def killed(desk, content):
    print("cluster: programs that are killed while the OSD is stopped")
    a = desk.places[0]
    name = next(name for name, some in content.items() if len(some) > 4_000_000)
    place = a / "albums/stopped"
    for directory in ["", "from", "into", "gone", "open", "list", "large"]:
        (place / directory).mkdir()
    for directory in ["from", "into", "gone", "open"]:
        surround(place / directory, "x")
    for number in range(200):
        put(place / f"list/{number}", b"listed")
    make_read(place / "large")
    # Nothing is in any cache, but for what a mount reads by itself, and ahead of that.
    desk.unmount(a)
    desk.mount(a)
    read_others(place / "large")
    desk.cluster.stop_osd()
    try:
        commands = [
            ["cat", f"../{name}"], ["ls", "-l", "list"], ["mv", "from/x", "into/y"], ["rm", "gone/x"],
            ["dd", "if=/dev/zero", "of=written", "bs=1M", "count=80"], ["find", a, "-type", "f"],
            ["sh", "-c", f"exec 3>open/y; echo accepted >&3; exec cat ../{name}"],
        ]
        programs = [
            subprocess.Popen(command, cwd=place, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for command in commands
        ]
        time.sleep(5)
        for command, program in zip(commands, programs):
            require(program.poll() is None, f"{command[0]} does not wait for a stopped OSD")
            program.kill()
        for command, program in zip(commands, programs):
            try:
                program.wait(60)
            except subprocess.TimeoutExpired:
                raise Failed(f"{command[0]} is killed and waits") from None
    finally:
        if desk.cluster.continue_osd():
            print("cluster: the OSD went on, but not its placement groups, until it was taken for down", flush=True)
    require((a / "albums" / name).read_bytes() == content[name], f"{name} differs")
    require((place / "from/x").exists() != (place / "into/y").exists(), "a file is moved by half")
    desk.unmount(a)
    desk.check()
    desk.mount(a)
