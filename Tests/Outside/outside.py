#!/usr/bin/python3 -B
"""Hostile home directories and disks: what the sweeps of a mount change outside the vault.

outside.py OBSCURA DIRECTORY MODE SEED ROUNDS

MODE is user, root, or uid (root mounts with uid=). In each round a home directory has traces of the mount, and files
like them; some of its files and directories are then links, hard links, mounts, another user's or devices, or another
process exchanges them all the time. After the sweeps everything must be as before, byte for byte, but for the traces.
"""
import base64, ctypes, hashlib, os, random, shutil, signal, sqlite3, stat, struct, subprocess, sys, time, zlib

OBSCURA, ROOT, MODE, SEED, ROUNDS = sys.argv[1], os.path.realpath(sys.argv[2]), sys.argv[3], *map(int, sys.argv[4:6])
IS_ROOT = os.geteuid() == 0
USER = os.geteuid() if not IS_ROOT or MODE == "root" else 65534
VAULT, MOUNT, HOME = ROOT + "/V", ROOT + "/D", ROOT + "/home"
VICTIM, STICK = ROOT + "/victim", ROOT + "/stick"
AT_FDCWD, RENAME_EXCHANGE = -100, 2
libc = ctypes.CDLL(None, use_errno=True)

if IS_ROOT and "OUTSIDE_ALONE" not in os.environ:
    os.environ["OUTSIDE_ALONE"] = "1"
    os.execvp("unshare", ["unshare", "-m", "--propagation", "slave", sys.executable, "-B", *sys.argv])


def run(words, check=True, **more):
    prefix = []
    if IS_ROOT and MODE == "user":
        prefix = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
    environment = {"HOME": "/nowhere" if MODE == "uid" else HOME, "PATH": os.environ["PATH"]}
    for name in os.environ:
        if name.startswith("OBSCURA_"):
            environment[name] = os.environ[name]
    done = subprocess.run(prefix + words, env=environment, capture_output=True, text=True, **more)
    if check and done.returncode != 0:
        raise SystemExit(f"{words}: {done.returncode} {done.stderr}")
    return done


def mount():
    option = f"uid={USER},allow_other" if MODE == "uid" else "rw"
    run([OBSCURA, "mount", vault, MOUNT, "-o", option, "--password-stdin"], input="one\n")


def unmount():
    run([OBSCURA, "unmount", MOUNT])


def hurry(process):
    """A sweep of old traces runs when nothing else does, which may be never on a busy machine."""
    try:
        os.setpriority(os.PRIO_PROCESS, process, 0)
    except OSError:
        pass


def wait_for_sweeps():
    """Of the beginning: its process has ended, and the daemon is idle. A process that has not begun yet would edit what
    it finds before an attack, and be taken for one that followed it: it must be seen, or what it leaves."""
    begun, latest = False, time.time() + 10
    for _ in range(6000):
        found = False
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                line = open(f"/proc/{process}/cmdline", "rb").read()
            except OSError:
                continue
            ours = b"\0--sweep\0" in line and MOUNT.encode() in line
            found = found or ours
            if IS_ROOT and (ours or b"obscura-desktop\0" in line):
                hurry(int(process))
        begun = begun or found or time.time() > latest or any(
            not os.path.lexists(f"{HOME}/{one}") for one in TRACES if "Trash" not in one)
        if begun and not found:
            return time.sleep(0.05)
        time.sleep(0.02)
    raise SystemExit("the sweep does not end")


# --- A home directory


def write(path, content, mode=0o600):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    os.chmod(path, mode)


def picture(uri):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    body = chunk(b"IDAT", zlib.compress(b"\0\1\2\3"))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"tEXt", b"Thumb::URI\0" + uri.encode()) + body + chunk(b"IEND", b"")


def bookmarks(paths):
    body = "".join(
        f'  <bookmark href="file://{path}" added="2026-11-23T08:33:38Z" modified="2026-11-23T08:33:38Z" '
        'visited="2026-11-23T08:33:38Z"><info><metadata owner="http://freedesktop.org"/></info></bookmark>\n'
        for path in paths)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<xbel version="1.0">\n{body}</xbel>\n'


def database(path, resources):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    opened = sqlite3.connect(path)
    opened.execute("PRAGMA journal_mode = " + random.choice(["WAL", "DELETE"]))
    opened.execute("CREATE TABLE ResourceInfo (targettedResource TEXT PRIMARY KEY, title TEXT)")
    opened.executemany("INSERT INTO ResourceInfo VALUES (?, '')", [(one,) for one in resources])
    opened.commit()
    opened.close()


def info(path):
    return f"[Trash Info]\nPath={path}\nDeletionDate=2026-01-02T03:04:05\n"


def fill(home, tag):
    """Traces have `trace` in their name or, in files of others, stand on a line of their own."""
    ours, other = MOUNT + "/albums/known", ROOT + "/E"
    data = home + "/.local/share"
    for name, place in [("trace", ours), ("other", other)]:
        write(f"{home}/.cache/thumbnails/normal/{name}.png", picture(f"file://{place}/a.jpg"))
        write(f"{home}/.config/session/{name}", f"1=file://{place}/a.jpg\n")
        write(f"{data}/RecentDocuments/{name}.desktop", f"[Desktop Entry]\nURL[$e]=file://{place}/a.jpg\n")
        write(f"{data}/Trash/files/{name}.jpg", f"{name} {tag}")
        write(f"{data}/Trash/info/{name}.jpg.trashinfo", info(place + "/a.jpg"))
        write(f"{data}/Trash/files/{name} tree/sub/leaf", f"{name} leaf {tag}")
        write(f"{data}/Trash/files/{name} tree/leaf", f"{name} second {tag}")
        write(f"{data}/Trash/info/{name} tree.trashinfo", info(place + "/tree"))
    os.symlink(VICTIM + "/secret", f"{data}/Trash/files/trace tree/link")
    # Names that lead out of the trash, and paths that lead out of the mount.
    for name in ["...trashinfo", "..trashinfo", ".trashinfo"]:
        write(f"{data}/Trash/info/{name}", info(ours + "/evil"))
    write(f"{data}/Trash/files/safe", f"safe {tag}")
    write(f"{data}/Trash/info/safe.trashinfo", info(MOUNT + "/../victim/secret"))
    write(f"{data}/Trash/info/huge.trashinfo", info(ours + "/" + "x" * 70_000))
    write(f"{data}/Trash/directorysizes", "12 1795422295451 trace%20tree\n5 6 other%20tree\n")
    views = data + "/dolphin/view_properties/local"
    write(f"{views}{MOUNT}/albums/trace/.directory", "[Dolphin]\nViewMode=1\n")
    write(f"{views}{other}/.directory", "[Dolphin]\nViewMode=1\n")
    write(f"{data}/recently-used.xbel", bookmarks([ours + "/a.jpg", other + "/a.jpg"]))
    write(f"{home}/.config/gthumb/history.xbel", bookmarks([ours, other]))
    write(f"{home}/.config/libfm/dir-settings.conf", f"# libfm\n[{ours}]\nSort=name;\n[{other}]\nSort=name;\n")
    write(f"{home}/.xsession-errors", f"one\nopened {ours}/a.jpg\ntwo {tag}\n")
    database(f"{data}/kactivitymanagerd/resources/database", [ours + "/a.jpg", other + "/a.jpg"])
    write(f"{home}/Documents/letter", f"letter {tag}")


TRACES = [".cache/thumbnails/normal/trace.png", ".config/session/trace", ".local/share/RecentDocuments/trace.desktop",
          ".local/share/Trash/files/trace.jpg", ".local/share/Trash/info/trace.jpg.trashinfo",
          ".local/share/Trash/files/trace tree", ".local/share/Trash/info/trace tree.trashinfo",
          ".local/share/dolphin/view_properties/local" + MOUNT]
EDITED = [".local/share/Trash/directorysizes", ".local/share/recently-used.xbel", ".config/gthumb/history.xbel",
          ".config/libfm/dir-settings.conf", ".xsession-errors",
          ".local/share/kactivitymanagerd/resources/database",
          ".local/share/kactivitymanagerd/resources/database-wal",
          ".local/share/kactivitymanagerd/resources/database-shm"]


def is_trace(path):
    path = os.path.relpath(path, HOME)
    return path in EDITED or any(path == one or path.startswith(one + "/") for one in TRACES)


# --- Before and after


def describe(path):
    found = os.lstat(path)
    kind = stat.S_IFMT(found.st_mode)
    content = b""
    if kind == stat.S_IFLNK:
        content = os.fsencode(os.readlink(path))
    elif kind == stat.S_IFREG:
        content = hashlib.sha256(open(path, "rb").read()).digest()
    return [found.st_mode, found.st_uid, found.st_gid, found.st_rdev, content, found.st_mtime_ns]


def snapshot(*tops):
    found = {}
    for top in tops:
        found[top] = describe(top)
        for directory, directories, files in os.walk(top):
            for name in directories + files:
                path = directory + "/" + name
                found[path] = describe(path)
    return found


def differences(before, after):
    changed = []
    # Directories that had a trace have another time.
    parents = set()
    for path in before:
        if is_trace(path):
            while path != HOME and path.startswith(HOME):
                path = os.path.dirname(path)
                parents.add(path)
    for path in sorted(set(before) | set(after)):
        old, new = before.get(path), after.get(path)
        if old == new or is_trace(path):
            continue
        if old and new and path in parents and stat.S_ISDIR(old[0]) and old[:-1] == new[:-1]:
            continue
        if old and not new and path in parents and "/view_properties/local/" in path and MOUNT.startswith(
                path.split("/view_properties/local", 1)[1]):
            continue  # a directory above the mount point's, emptied
        changed.append(f"{path}: {old} -> {new}")
    return changed


# --- Attacks

UNDO = []


def victim_name():
    return f"{VICTIM}/{len(os.listdir(VICTIM))}"


def attack_link(path):
    there = victim_name()
    os.rename(path, there)
    os.symlink(there if random.random() < 0.5 else os.path.relpath(there, os.path.dirname(path)), path)


def attack_link_up(path):
    """To its own directory, the home directory or the root: nothing moves, so the name is only replaced."""
    there = victim_name()
    os.rename(path, there)
    os.symlink(random.choice([".", "..", HOME, "/", HOME + "/Documents", MOUNT + "/albums", "/proc/self/cwd"]), path)


def attack_hard_link(path):
    if os.path.isfile(path) and not os.path.islink(path):
        there = victim_name()
        os.rename(path, there)
        os.link(there, path)


def attack_mount(path):
    if not IS_ROOT:
        return attack_link(path)
    there = victim_name()
    if os.path.isdir(path):
        shutil.copytree(path, there, symlinks=True)
    else:
        shutil.copy2(path, there)
    own(there)
    subprocess.run(["mount", "--bind", there, path], check=True)
    UNDO.append(lambda: subprocess.run(["umount", "-l", path], check=True))


def attack_owner(path):
    if not IS_ROOT:
        return os.chmod(path, 0o400)
    stranger = 12345 if USER == 0 else random.choice([0, 12345])
    os.chown(path, stranger, stranger, follow_symlinks=False)


def attack_type(path):
    os.rename(path, victim_name())
    if IS_ROOT and random.random() < 0.5:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 3))
        os.chown(path, USER, USER)
    else:
        os.mkfifo(path)


def attack_race(path):
    """Exchanges it with a victim like it until the end, and then puts both back."""
    there = victim_name()
    if os.path.isdir(path):
        shutil.copytree(path, there, symlinks=True)
    else:
        # Nothing of it is a trace.
        write(there, f"victim {there} {random.random()}\n")
    own(there)
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        while True:
            libc.renameat2(AT_FDCWD, path.encode(), AT_FDCWD, there.encode(), RENAME_EXCHANGE)
            if random.random() < 0.3:
                time.sleep(0.0005)

    def end():
        os.kill(child, signal.SIGTERM)
        os.waitpid(child, 0)

    UNDO.append(end)


ATTACKS = [attack_link, attack_link, attack_link_up, attack_hard_link, attack_mount, attack_owner, attack_type,
           attack_race]


def own(path):
    if IS_ROOT:
        subprocess.run(["chown", "-hR", f"{USER}:{USER}", path], check=True)


def markers(*tops):
    """How often each content of a regular file is there, whatever its name."""
    found = {}
    for top in tops:
        for directory, _, files in os.walk(top):
            for name in files:
                path = directory + "/" + name
                if stat.S_ISREG(os.lstat(path).st_mode):
                    key = hashlib.sha256(open(path, "rb").read()).digest()
                    found.setdefault(key, []).append(path)
    return found


# --- A round


def attack(count):
    done = []
    paths = [path for path in snapshot(HOME) if path not in (HOME, HOME + "/Documents/letter")]
    for _ in range(count):
        path = random.choice(paths)
        kind = random.choice(ATTACKS)
        # Another attack may have moved it; one behind a link would be on the victim.
        if os.path.realpath(path) != path or os.path.ismount(path) or not os.path.lexists(path):
            continue
        if any(path.startswith(one) or one.startswith(path) for _, one in done):
            continue
        if os.path.islink(path) and kind is not attack_link_up:
            continue
        kind(path)
        done.append((kind.__name__, path))
    return done


def remove_all(path):
    if os.path.lexists(path):
        subprocess.run(["chmod", "-R", "u+rwx", path], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", path], check=True)


def make(seed):
    for path in [HOME, VICTIM]:
        remove_all(path)
        os.mkdir(path)
    fill(HOME, f"home {seed}")
    # What a link leads to has traces as well.
    fill(VICTIM + "/0", f"victim {seed}")
    write(VICTIM + "/secret", f"secret {seed}")
    own(HOME)
    own(VICTIM)


def fill_stick():
    """A disk that is plugged in: it has a trash of the user, with a link and with entries."""
    trash = f"{STICK}/.Trash-{USER}"
    remove_all(trash)
    write(f"{trash}/info/trace.jpg.trashinfo", info(MOUNT + "/albums/known/a.jpg"))
    write(f"{trash}/info/letter.trashinfo", info(MOUNT + "/albums/known/letter"))
    write(f"{trash}/info/...trashinfo", info(MOUNT + "/albums/known/evil"))
    if random.random() < 0.5:
        os.symlink(random.choice([HOME + "/Documents", "/etc", VICTIM]), trash + "/files")
    else:
        write(f"{trash}/files/trace.jpg", "trace of the stick")
        os.symlink(HOME + "/Documents/letter", trash + "/files/letter")
    own(STICK)


def undo_all():
    while UNDO:
        UNDO.pop()()


def one_round(seed):
    global vault
    random.seed(seed)
    vault = random.choice([VAULT, STICK + "/V"]) if IS_ROOT else VAULT
    make(seed)
    fill_stick()
    isEarly = random.random() < 0.4
    if not isEarly:
        mount()
        wait_for_sweeps()
    done = attack(0 if seed % 5 == 0 else random.randint(1, 4))
    isRace = any(kind == "attack_race" for kind, _ in done)
    tops = [HOME, VICTIM] + ([STICK] if vault == VAULT else [])
    before = None if isRace else snapshot(*tops)
    contents = markers(HOME, VICTIM)
    if isEarly:
        mount()
        wait_for_sweeps()
    unmount()
    if isRace:
        undo_all()
    after = snapshot(*tops)
    problems = []
    if before is not None:
        problems = differences(before, after)
    else:
        # A name may be either file's now. What stood in the trash under the name of a trace may be in the vault.
        mount()
        left = markers(HOME, VICTIM, MOUNT)
        unmount()
        for key, paths in contents.items():
            if key not in left and not any(is_trace(path) for path in paths):
                problems.append(f"gone: {paths}")
        problems += [f"left over: {path}" for path in after if "/.obscura-" in path]
    if not done:
        problems += [f"still there: {one}" for one in TRACES if os.path.lexists(f"{HOME}/{one}")
                     and not (isEarly and "Trash" in one)]
    undo_all()
    if problems:
        print(f"outside: {MODE}, seed {seed}: vault {vault}, early {isEarly}, {done}", *problems, sep="\n  ")
    return not problems


def main():
    global vault
    vault = VAULT
    os.makedirs(ROOT, exist_ok=True)
    os.chmod(ROOT, 0o755)
    for path in [MOUNT, STICK, ROOT + "/E"]:
        os.makedirs(path, exist_ok=True)
    if IS_ROOT:
        subprocess.run(["mount", "-t", "tmpfs", "stick", STICK], check=True)
    if MODE == "uid":
        lines = open("/etc/passwd").read().splitlines()
        lines = [line for line in lines if not line.startswith("nobody:")]
        write(ROOT + "/passwd", "\n".join(lines + [f"nobody:x:{USER}:{USER}::{HOME}:/bin/sh"]) + "\n", 0o644)
        subprocess.run(["mount", "--bind", ROOT + "/passwd", "/etc/passwd"], check=True)
    os.mkdir(HOME)
    os.mkdir(VICTIM)
    for path in [ROOT, MOUNT, STICK, HOME]:
        own(path) if MODE == "user" else None
    words = ["--spaces=1", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin"]
    run([OBSCURA, "create", VAULT, *words], input="one\n")
    mount()
    inside = MOUNT + "/albums/known"
    run(["/bin/sh", "-c", f"mkdir -p '{inside}' '{MOUNT}/albums{MOUNT}/albums/trace'; echo a >'{inside}/note'"])
    unmount()
    if IS_ROOT:
        shutil.copytree(VAULT, STICK + "/V")
        own(STICK) if MODE == "user" else None
    good = 0
    for seed in range(SEED, SEED + ROUNDS):
        good += one_round(seed)
    print(f"outside: {MODE}: {good} of {ROUNDS} rounds good, seeds {SEED} to {SEED + ROUNDS - 1}")
    sys.exit(0 if good == ROUNDS else 1)


main()
