"""Vaults of several spaces: what a copy of the pool shows, and that no space changes another."""
import errno
import json
import os
import random
import signal
import subprocess
import time

import rados

from desk import VAULT, Desk, Failed, put, require

HIDING = "ceph:photos/hiding"
FIRST, SECOND, WRONG = "the first password\n", "another password\n", "a wrong password\n"
SIZE = "48M"
# Deriving keys is not what is tried here.
MADE = ["--spaces", 2, "--kdf-memory", "8M", "--kdf-passes", 1, "--size"]
OBJECT_BYTES = 4 << 20
OBJECTS = 2 * (48 << 20) // OBJECT_BYTES
# A picture of one pixel.
DOT = bytes.fromhex("47494638396101000100800000000000ffffff2c00000000010001000002024401003b")


def objects(desk, vault):
    """What a copy of the pool has of a vault: for each object its size, its attributes with their values, its omap."""
    prefix = vault.rsplit("/", 1)[1] + "/"
    with desk.cluster.pool() as pool:
        names = [found.key for found in pool.list_objects() if found.key.startswith(prefix)]
        return {name[len(prefix) :]: description(pool, name) for name in names}


def description(pool, name):
    """The size of an object, its attributes with their values, and the keys of its omap."""
    with rados.ReadOpCtx() as reading:
        pairs, _ = pool.get_omap_keys(reading, "", 1000)
        pool.operate_read_op(reading, name)
        keys = [key for key, _ in pairs]
    return pool.stat(name)[0], dict(pool.get_xattrs(name)), keys


def content(desk, vault):
    """The bytes of all objects of a vault."""
    prefix = vault.rsplit("/", 1)[1] + "/"
    names = objects(desk, vault)
    with desk.cluster.pool() as pool:
        for name, (size, _, _) in names.items():
            yield name, pool.read(prefix + name, size)


def looks_random(name, some):
    """Requires that no page is all zeros, and that none is there twice."""
    pages = [some[start : start + 4096] for start in range(0, len(some), 4096)]
    require(bytes(4096) not in pages, f"{name} has a page of zeros")
    return pages


def listings(desk):
    """Two vaults, alike but for a second space in use: their objects are the same except for the bytes."""
    print("cluster: what a copy shows of a vault with one space in use, and of one with two")
    one, two = "ceph:photos/decoy", "ceph:photos/secret"
    place = desk.places[0]
    for vault in [one, two]:
        made = desk.obscura("create", vault, *MADE, SIZE, password=FIRST)
        require("rados stat" in made, f"create does not say who sees what: {made}")
        if vault == two:
            desk.obscura("space", "add", vault, password=SECOND + FIRST)
        else:
            desk.obscura("passwd", vault, password=FIRST + "yet another\n")
            desk.obscura("passwd", vault, password="yet another\n" + FIRST)
    require(objects(desk, one) == objects(desk, two), "after creation")
    for vault, password in [(one, FIRST), (one, FIRST), (two, FIRST), (two, SECOND)]:
        desk.mount(place, vault=vault, password=password)
        for number in range(10):
            put(place / f"albums/{number}", random.randbytes(500_000))
        desk.unmount(place)
    found = objects(desk, one)
    require(found == objects(desk, two), f"after sessions: {found}, {objects(desk, two)}")
    require(len(found) == OBJECTS + 1, f"{len(found)} objects")
    require({size for name, (size, _, _) in found.items() if name != "header"} == {OBJECT_BYTES}, "sizes")
    print("cluster: the same while a space is open")
    states = []
    for vault, password in [(one, FIRST), (two, FIRST), (two, SECOND)]:
        desk.mount(place, vault=vault, password=password)
        put(place / "albums/open", random.randbytes(500_000))
        found = objects(desk, vault).items()
        states.append({name: (size, sorted(values), omap) for name, (size, values, omap) in found})
        desk.unmount(place)
    require(states[0] == states[1] == states[2], f"{states}")
    seen = set()
    for name, some in content(desk, two):
        for page in looks_random(name, some):
            require(page not in seen or name == "header", f"{name} has a page of another object")
            seen.add(page)


def same(desk, vault, password, wanted):
    desk.check(vault, password=password)
    desk.same(vault, wanted, password=password)


def spaces(desk):
    listings(desk)
    a, b = desk.places
    print("cluster: two spaces")
    desk.obscura("create", HIDING, "--spaces", 9, "--size", SIZE, status=2)
    desk.obscura("create", HIDING, *MADE, "1M", status=2)
    interrupted(desk)
    require(not objects(desk, HIDING), "objects of a vault that was not made")
    desk.obscura("mount", "--create", *MADE, SIZE, HIDING, a, password=FIRST)
    firsts = {f"first{number}": random.randbytes(random.choice([0, 900, 70_000, 3_000_000])) for number in range(12)}
    seconds = {f"second{number}": random.randbytes(random.choice([1, 900, 70_000, 3_000_000])) for number in range(12)}
    for name, some in firsts.items():
        put(a / "albums" / name, some)
    desk.obscura("space", "add", HIDING, password=SECOND + FIRST, status=5)
    desk.unmount(a)
    desk.obscura("space", "add", HIDING, password=SECOND + WRONG, status=4)
    desk.obscura("space", "add", HIDING, password=SECOND + FIRST)
    desk.obscura("space", "add", HIDING, password=WRONG + FIRST + SECOND, status=7)
    desk.mount(b, vault=HIDING, password=SECOND)
    require(not os.listdir(b / "albums"), "a new space is not empty")
    for name, some in seconds.items():
        put(b / "albums" / name, some)
    # Nobody is told whether it is this space that is open.
    answers = [
        desk.elsewhere("check", HIDING, status=5, password=password).split(": ", 1)[1] for password in [FIRST, SECOND]
    ]
    require(answers[0] == answers[1], f"{answers}")
    desk.mount(a, vault=HIDING, password=FIRST, status=5)
    desk.elsewhere("check", HIDING, status=4, password=WRONG)
    # One that only reads takes no lock.
    desk.mount(a, "-o", "ro", vault=HIDING, password=FIRST)
    put(b / "albums/beside", b"beside")
    seconds["beside"] = b"beside"
    for name, some in firsts.items():
        require((a / "albums" / name).read_bytes() == some, f"{name} differs beside a writer")
    desk.unmount(a)
    desk.unmount(b)
    same(desk, HIDING, FIRST, firsts)
    same(desk, HIDING, SECOND, seconds)
    desk.mount(a, "-o", "share=handover", vault=HIDING, password=SECOND)
    desk.elsewhere("check", HIDING, password=FIRST)
    require(not os.path.ismount(a), "it was handed over and is mounted")
    print("cluster: two spaces: a killed mount of one, then the other")
    desk.mount(a, vault=HIDING, password=SECOND)
    put(a / "albums/killed", b"synced")
    seconds["killed"] = b"synced"
    desk.kill(a)
    desk.mount(b, vault=HIDING, password=FIRST)
    put(b / "albums/after", b"synced as well")
    firsts["after"] = b"synced as well"
    desk.unmount(b)
    same(desk, HIDING, FIRST, firsts)
    same(desk, HIDING, SECOND, seconds)
    copies(desk, firsts, seconds)
    full(desk, a)
    grown(desk, firsts, seconds)
    grown_copies(desk, firsts, seconds)
    full_cluster(desk)
    damaged(desk, firsts, seconds)
    print("cluster: two spaces: import, passwords, the end of one")
    (desk.dir / "camera").mkdir()
    (desk.dir / "camera/dot.gif").write_bytes(DOT)
    desk.obscura("import", HIDING, "camera", "--album", "Camera", password=SECOND)
    same(desk, HIDING, SECOND, {**seconds, "Camera/dot.gif": DOT})
    same(desk, HIDING, FIRST, firsts)
    desk.obscura("passwd", HIDING, password=FIRST + "a third password\n")
    desk.check(HIDING, password=FIRST, status=4)
    same(desk, HIDING, "a third password\n", firsts)
    desk.obscura("space", "remove", HIDING, "--yes", password=SECOND)
    desk.check(HIDING, password=SECOND, status=4)
    same(desk, HIDING, "a third password\n", firsts)


def interrupted(desk):
    """A create that is interrupted leaves nothing."""
    words = [desk.program, "create", HIDING, *MADE, "3G", "--password-stdin"]
    create = subprocess.Popen(
        [str(word) for word in words], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, env=desk.cluster.environment)
    create.stdin.write(FIRST.encode())
    create.stdin.close()
    deadline = time.monotonic() + 60
    while len(objects(desk, HIDING)) < 5:
        require(time.monotonic() < deadline and create.poll() is None, "nothing is made")
    create.send_signal(signal.SIGINT)
    require(create.wait(60) == 130, f"interrupted: {create.returncode}")


def copies(desk, firsts, seconds):
    """Copies in files and on the cluster open in both spaces."""
    print("cluster: two spaces: copies, of copies as well")
    again = "ceph:photos/hidden-again"
    for source, target in [(HIDING, "hidden"), ("hidden", again), (again, "hidden2")]:
        desk.obscura("backup", source, target, "--quiet")
        report = json.loads(desk.obscura("backup", source, target, "--quiet", "--json"))
        require(report["bytes_written"] == 0 and report["complete"], f"{source} to {target}, again: {report}")
        same(desk, target, FIRST, firsts)
        same(desk, target, SECOND, seconds)
    spaces_file = (desk.dir / "hidden/spaces").read_bytes()
    require(spaces_file == (desk.dir / "hidden2/spaces").read_bytes(), "a copy of a copy differs")
    require(len(spaces_file) == 2 * 48 << 20, "the size of a copy")
    print("cluster: two spaces: a backup with a check, and backups that are killed")
    report = json.loads(desk.obscura("backup", HIDING, again, "--check", "--quiet", "--json", password=SECOND))
    require(report["complete"] and report["findings"] == [], f"{report}")
    for number in range(3):
        before = dict(seconds)
        desk.mount(desk.places[0], vault=HIDING, password=SECOND)
        seconds[f"more{number}"] = random.randbytes(2_000_000)
        put(desk.places[0] / f"albums/more{number}", seconds[f"more{number}"])
        desk.unmount(desk.places[0])
        backup = subprocess.Popen(
            [desk.program, "backup", HIDING, again, "--quiet"], env=desk.cluster.environment, cwd=desk.dir)
        try:
            backup.wait(random.random())
        except subprocess.TimeoutExpired:
            backup.kill()
        backup.wait()
        desk.check(again, password=SECOND)
        desk.same(again, before, password=SECOND)
        desk.obscura("backup", HIDING, again, "--quiet")
        same(desk, again, SECOND, seconds)
        same(desk, again, FIRST, firsts)
    print("cluster: two spaces: a first backup that is killed")
    for number in range(3):
        target = f"ceph:photos/begun{number}"
        backup = subprocess.Popen(
            [desk.program, "backup", HIDING, target, "--quiet"], env=desk.cluster.environment, cwd=desk.dir)
        try:
            backup.wait(0.2 + random.random() / 2)
        except subprocess.TimeoutExpired:
            backup.kill()
        backup.wait()
        desk.obscura("backup", HIDING, target, "--quiet")
        same(desk, target, SECOND, seconds)
        found = objects(desk, target)
        require({size for name, (size, _, _) in found.items() if name != "header"} == {OBJECT_BYTES}, f"{found}")
    print("cluster: two spaces: a header that is lost")
    desk.obscura("header", "export", again, "header2")
    desk.cluster.run("rados", "-p", desk.cluster.POOL, "rm", "hidden-again/header")
    desk.obscura("info", again, status=3)
    desk.obscura("header", "restore", again, "header2")
    same(desk, again, SECOND, seconds)
    # Of a vault of one space, and the other way round.
    require("has one" in desk.obscura("header", "restore", VAULT, "header2", status=1), "a header of two spaces")
    desk.obscura("header", "export", VAULT, "header1")
    require("several" in desk.obscura("header", "restore", again, "header1", status=1), "a header of one space")


def full(desk, place):
    """A space that is full answers ENOSPC, and removing makes room."""
    print("cluster: two spaces: a full one")
    desk.mount(place, "-o", "trash=0", vault=HIDING, password=FIRST)
    count = 0
    try:
        while True:
            put(place / f"albums/full{count}", random.randbytes(1_000_000))
            count += 1
    except OSError as error:
        require(error.errno == errno.ENOSPC, f"full: {error}")
    require(count > 5, f"full after {count} files")
    for number in range(count + 1):
        (place / f"albums/full{number}").unlink(missing_ok=True)
    put(place / "albums/room", random.randbytes(1_000_000))
    (place / "albums/room").unlink()
    desk.unmount(place)


def grown(desk, firsts, seconds):
    """Both spaces grow, mounted or not, whole or not at all."""
    print("cluster: two spaces: grow")

    def size():
        return json.loads(desk.obscura("info", HIDING, "--json"))["bytes_per_space"]

    place = desk.places[0]
    before = size()
    desk.obscura("grow", HIDING, "32M", status=2)
    desk.obscura("grow", HIDING, "64M")
    require(size() == 64 << 20, f"{size()} after {before}")
    desk.mount(place, "-o", "trash=0", vault=HIDING, password=SECOND)
    was = os.statvfs(place).f_blocks
    desk.obscura("grow", HIDING, "80M")
    now = os.statvfs(place).f_blocks
    require(now > was, f"a mount does not see that its space grew: {was}, {now}")
    wide = {f"wide{number}": random.randbytes(3_000_000) for number in range(8)}
    for name, some in wide.items():
        put(place / "albums" / name, some)
    desk.unmount(place)
    same(desk, HIDING, SECOND, {**seconds, **wide})
    same(desk, HIDING, FIRST, firsts)
    desk.mount(place, "-o", "trash=0", vault=HIDING, password=SECOND)
    for name in wide:
        (place / "albums" / name).unlink()
    desk.unmount(place)
    print("cluster: two spaces: one that grows is killed")
    for number in range(3):
        grow = subprocess.Popen([desk.program, "grow", HIDING, f"{96 + 16 * number}M"], env=desk.cluster.environment)
        try:
            grow.wait(random.random() / 4)
        except subprocess.TimeoutExpired:
            grow.kill()
        grow.wait()
        desk.mount(place, vault=HIDING, password=FIRST)
        desk.unmount(place)
        require("nothing is damaged" in desk.check(HIDING, password=FIRST), "after a grow that was killed")
    growing = [
        subprocess.Popen([desk.program, "grow", HIDING, "160M"], env=desk.cluster.environment) for _ in range(3)
    ]
    require([grow.wait(60) for grow in growing] == [0, 0, 0], "three that grow it at once")
    require(size() == 160 << 20, f"{size()}")
    same(desk, HIDING, SECOND, seconds)
    same(desk, HIDING, FIRST, firsts)
    for name, some in content(desk, HIDING):
        looks_random(name, some)


def grown_copies(desk, firsts, seconds):
    """A copy grows with its vault, also if a backup is killed meanwhile."""
    print("cluster: two spaces: copies of one that has grown")
    again = "ceph:photos/hidden-again"
    for target in [again, again, again, "hidden"]:
        backup = subprocess.Popen(
            [desk.program, "backup", HIDING, target, "--quiet"], env=desk.cluster.environment, cwd=desk.dir)
        try:
            backup.wait(0.2 + random.random())
        except subprocess.TimeoutExpired:
            backup.kill()
        backup.wait()
        desk.check(target, password=SECOND)
    for target in [again, "hidden"]:
        desk.obscura("backup", HIDING, target, "--quiet")
        same(desk, target, SECOND, seconds)
        same(desk, target, FIRST, firsts)
    require(objects(desk, again).keys() == objects(desk, HIDING).keys(), "another size")


def full_cluster(desk):
    """Spaces are made and enlarged whole or not at all."""
    print("cluster: two spaces: a cluster that is full")
    none = "ceph:photos/none"
    before = desk.obscura("info", HIDING)
    desk.cluster.set_full(True)
    desk.obscura("grow", HIDING, "176M", status=7)
    desk.obscura("create", none, *MADE, SIZE, status=7, password=FIRST)
    require(not objects(desk, none), "objects of a vault that was not made")
    desk.cluster.set_full(False)
    require(desk.obscura("info", HIDING) == before, "it grew")
    desk.obscura("grow", HIDING, "176M")


def damaged(desk, firsts, seconds):
    """A lost object is named, nothing is written beside the gap, and a repair makes it anew."""
    print("cluster: two spaces: a lost object")
    # Nothing was ever there: the last row.
    lost = sorted(name for name in objects(desk, HIDING) if name.startswith("spaces-"))[-2]
    desk.cluster.run("rados", "-p", desk.cluster.POOL, "rm", f"hiding/{lost}")
    require(lost in desk.obscura("check", HIDING, password=FIRST, status=6), "a lost object is not named")
    desk.obscura("check", HIDING, "--repair", password=FIRST)
    require(objects(desk, HIDING)[lost][0] == OBJECT_BYTES, "not made anew")
    same(desk, HIDING, SECOND, seconds)
    same(desk, HIDING, FIRST, firsts)


def rounds(desk, count, seed):
    """Mounts of two spaces in turn, killed, stopped and continued at random: neither loses what was synced."""
    choose = random.Random(seed)
    vault = "ceph:photos/both"
    desk.obscura("create", vault, *MADE, "128M", password=FIRST)
    desk.obscura("space", "add", vault, password=SECOND + FIRST)
    synced, stopped = {FIRST: {}, SECOND: {}}, []
    for number in range(count):
        place, password = desk.places[number % 2], choose.choice([FIRST, SECOND])
        what = f"two spaces, seed {seed}, round {number}"
        desk.kill(place)
        try:
            desk.mount(place, vault=vault, password=password)
        except Failed as error:
            raise Failed(f"{what}: {error}") from None
        for name, some in synced[password].items():
            require((place / "albums" / name).read_bytes() == some, f"{what}: {name} is lost")
        for _ in range(choose.randrange(1, 6)):
            name = f"f{choose.randrange(20)}"
            some = choose.randbytes(choose.choice([10, 5_000, 300_000, 2_000_000]))
            if choose.random() < 0.1:
                desk.cluster.kill_osd()
                desk.cluster.start_osd()
            put(place / "albums" / name, some)
            synced[password][name] = some
        for pid, old in stopped:
            desk.require_shut_out(pid, old, what)
        stopped = []
        end = choose.random()
        if end < 0.4:
            desk.kill(place)
        elif end < 0.7:
            stopped.append((desk.stop(place), place))
        else:
            desk.unmount(place)
    for place in desk.places:
        desk.kill(place)
    for password, wanted in synced.items():
        same(desk, vault, password, wanted)
    print(f"cluster: two spaces, seed {seed}: {count} rounds, {[len(files) for files in synced.values()]} files")
