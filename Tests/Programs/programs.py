#!/usr/bin/env python3
"""A photographer's life by real programs on a mounted space: photos are edited, replaced, linked and removed by exiftool,
exiv2, ImageMagick, jpegtran, rsync, unzip, tar, vim and others, with remounts and kills of the daemon between.

The contract is stated here once more, in words of its own, and shares no code with the program:
 - A photo is in moments exactly once, and in every album where it was put.
 - A save is seen under all of these names, with the bytes that the same program makes in an ordinary directory. If it
   makes a new file in an album, other hard links of album names keep the old bytes, as a photo of their own.
 - What a photo was before its first edit is in `.versions/NAME/original`.
 - Backups that a program leaves are plain files.

Run by scripts/model --programs and by a test. Exit 1 at the first difference; its seed and steps are printed.
"""
import argparse, base64, json, os, random, shlex, shutil, signal, struct, subprocess, sys, tarfile, tempfile, time, zipfile

# A picture of 32 × 24 pixels.
PIXELS = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdB"
    "RkxOUlNSMj5aYVpQYEpRUk//2wBDAQ4ODhMREyYVFSZPNS01T09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09PT09P"
    "T09PT09PT09PT09PT0//wAARCAAYACADASIAAhEBAxEB/8QAFgABAQEAAAAAAAAAAAAAAAAAAAQG/8QAFRABAQAAAAAAAAAA"
    "AAAAAAAAABP/xAAWAQEBAQAAAAAAAAAAAAAAAAAABgP/xAAaEQABBQEAAAAAAAAAAAAAAAAAAhMVUWEU/9oADAMBAAIRAxEA"
    "PwDN0KJaFG8ZhWyOlVCiWhQjMEjpJQoC550URr67FCgHOig+uz//2Q=="
)
# Debian's smallest is called so.
VIM = "vim" if shutil.which("vim") else "vim.tiny"
DAYS = ["2019-03-04", "2019-03-05", "2021-07-08"]
ALBUMS = ["A", "B", "C"]

# Each edits {n} in the current directory, for which {s} is another version of it, {x} the day that it is taken on, and
# {z} and {t} archives with that version. The first word is the program that it needs.
EDITS = [line.split(None, 1) for line in """
exiftool exiftool -q -overwrite_original -Artist={r} {n}
exiftool exiftool -q -Artist={r} {n}
exiftool exiftool -q -overwrite_original_in_place -Artist={r} {n}
exiftool exiftool -q -overwrite_original -P -DateTimeOriginal='{x} 10:11:12' {n}
exiv2 exiv2 -M'set Exif.Image.Artist {r}' {n}
exiv2 exiv2 -k -M'set Exif.Image.Copyright {r}' {n}
mogrify mogrify -rotate 90 {n}
mogrify mogrify -quality {q} {n}
convert convert {n} -negate {n}
jpegtran jpegtran -copy all -rotate 90 -outfile {n} {n}
jpegtran jpegtran -copy all -flip horizontal {n} > .turned && mv .turned {n}
jpegtran jpegtran -copy all -rotate 180 {n} > turned.jpg && mv -f turned.jpg {n}
exiftran exiftran -9 -i {n}
exiftran exiftran -b -2 -i {n}
ffmpeg ffmpeg -loglevel error -y -i {n} -bitexact -map_metadata 0 -frames:v 1 -update 1 .new.jpg && mv .new.jpg {n}
rsync rsync -a --ignore-times {s} {n}
rsync rsync -a --ignore-times --inplace {s} {n}
rsync rsync -a --ignore-times --backup {s} {n}
rsync rsync -a --ignore-times --delay-updates {s} {n}
rsync rsync -a --ignore-times --temp-dir=/tmp {s} {n}
unzip unzip -qq -o {z}
tar tar xf {t}
tar tar xf {t} --overwrite
tar tar xf {t} --unlink-first
install install -m 644 {s} {n}
install install -b -m 644 {s} {n}
install install --backup=numbered -m 644 {s} {n}
cp cp {s} {n}
cp cp -p {s} {n}
cp cp --remove-destination {s} {n}
cp cp --backup=numbered {s} {n}
cp cp --backup=simple -f {s} {n}
mv cp {s} /dev/shm/{u} && mv -f /dev/shm/{u} {n}
mv cp {s} .{u} && mv -f .{u} {n}
mv mv {n} {n}~~ && cp {s} {n}
sed sed -i s/Title-[0-9a-f]*/Title-{r}/ {n}
sed sed -i.bak s/Title-[0-9a-f]*/Title-{r}/ {n}
vim {v} -u NONE -N -es -b -c 'set backupskip= backupcopy=no' -c '%s/Title-\\x*/Title-{r}/e' -c wq {n} </dev/null
vim {v} -u NONE -N -es -b -c 'set backupskip= backup backupcopy=no' -c '%s/Title-\\x*/Title-{r}/e' -c wq {n} </dev/null
vim {v} -u NONE -N -es -b -c 'set backupskip= backup backupcopy=yes' -c '%s/Title-\\x*/Title-{r}/e' -c wq {n} </dev/null
sh cat {s} > {n}
sh : > {n}; cat {s} > {n}
sh : > {n}; cat {s} > .{u}; mv .{u} {n}
dd dd if={s} of={n} conv=notrunc status=none && truncate -r {s} {n}
python3 python3 -c 'import os; os.unlink("{n}"); open("{n}", "wb").write(open("{s}", "rb").read())'
python3 python3 -c 'import os; open("{n}", "wb").close(); open("{n}", "r+b").write(open("{s}", "rb").read())'
""".strip().splitlines()]


def picture(day, title):
    """A JPEG that was taken on that day. Its title has eight digits."""
    text = day.replace("-", ":").encode() + b" 12:00:00\0"
    exif = b"Exif\0\0MM\0*" + struct.pack(">IHHHIII", 8, 1, 0x8769, 4, 1, 26, 0)
    exif += struct.pack(">HHHIII", 1, 0x9003, 2, len(text), 44, 0) + text
    comment = b"Title-%08x" % title
    segments = b"\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif
    segments += b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment
    # Behind the segment of JFIF.
    return PIXELS[:20] + segments + PIXELS[20:]


class Difference(Exception):
    pass


def expect(condition, *words):
    if not condition:
        raise Difference(" ".join(map(str, words)))


class Photo:
    """What is expected of a photo. The names are paths below `albums`."""

    def __init__(self, data, own=None):
        self.data, self.original = data, None
        # Where it was put in, memberships, and hard links of album names.
        self.own, self.members, self.links = own, set(), set()
        # Its day, and whether the user chose it; its name in moments when that was last seen.
        self.day, self.pinned, self.moment = None, False, None

    def names(self):
        return ([self.own] if self.own else []) + sorted(self.members) + sorted(self.links)

    def drop(self, name):
        if self.own == name:
            self.own = None
        self.members.discard(name)
        self.links.discard(name)


class Life:
    def __init__(self, options, seed, place):
        self.random = random.Random(seed)
        self.options, self.place = options, place
        self.vault, self.mount = place + "/V", place + "/M"
        self.photos, self.plain, self.steps, self.count = [], {}, [], 0
        self.trash = self.random.choice(["30", "30", "0"])
        self.edits = [edit for edit in EDITS if edit[0] in options.only]
        os.mkdir(self.mount)
        self.obscura("create", self.vault, "--spaces", "1", "--kdf-memory=8M", "--kdf-passes=1", "--password-stdin")
        self.begin()
        for album in ALBUMS:
            os.mkdir(self.path("albums/" + album))

    # The program

    def obscura(self, *words):
        ended = subprocess.run(
            [self.options.obscura, *words], input="one\n", text=True, capture_output=True, env=self.environment())
        expect(ended.returncode == 0, "obscura", *words, ":", ended.returncode, ended.stderr)
        return ended.stdout

    def environment(self):
        return {**os.environ, "HOME": self.place, "LC_ALL": "C.UTF-8", "TZ": "UTC"}

    def begin(self):
        self.obscura("mount", self.vault, self.mount, "-o", "rw,trash=" + self.trash, "--password-stdin")

    def end(self):
        self.obscura("unmount", self.mount)

    def daemon(self):
        for entry in os.listdir("/proc"):
            try:
                words = open(f"/proc/{entry}/cmdline", "rb").read().split(b"\0") if entry.isdigit() else []
            except OSError:
                continue
            if len(words) > 2 and words[1] == b"--daemon" and os.fsencode(self.mount) in words:
                return int(entry)
        return None

    def sync(self):
        """What was done before is in the vault, whatever happens to the daemon."""
        directory = os.open(self.path("albums"), os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    def kill(self):
        daemon = self.daemon()
        expect(daemon, "no daemon")
        os.kill(daemon, signal.SIGKILL)
        subprocess.run(["umount", "-l", self.mount], capture_output=True)
        subprocess.run(["fusermount3", "-uz", self.mount], capture_output=True)
        deadline = time.monotonic() + 20
        while os.path.exists(f"/proc/{daemon}/fd") and time.monotonic() < deadline:
            time.sleep(0.02)

    # The tree

    def path(self, name):
        return f"{self.mount}/{name}"

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def moments(self):
        """The names in moments of each inode of a file there."""
        found = {}
        for day in os.listdir(self.path("moments")):
            for entry in os.scandir(self.path("moments/" + day)):
                found.setdefault(entry.stat(follow_symlinks=False).st_ino, []).append(f"moments/{day}/{entry.name}")
        return found

    def moment(self, photo):
        return self.moments()[self.inode(photo)][0] if photo.names() else photo.moment

    def inode(self, photo):
        name = "albums/" + photo.names()[0] if photo.names() else photo.moment
        return os.stat(self.path(name)).st_ino

    def expectBytes(self, name, data):
        found = self.read(name)
        if found == data:
            return
        # Names the other owners of these bytes, and tells whether they stay.
        owners = [str(photo.names() or photo.moment) + " " + state for photo in self.photos
                  for state in ("data", "original") if getattr(photo, state) == found]
        owners += [plain for plain, bytes in self.plain.items() if bytes == found]
        time.sleep(2)
        later = "the right ones" if self.read(name) == data else "the same" if self.read(name) == found else "others"
        raise Difference(
            f"other bytes: {name}: {len(found)} and not {len(data)}, as {owners}, "
            f"from byte {next((i for i, (a, b) in enumerate(zip(found, data)) if a != b), 'end')} on; later {later}")

    def check(self):
        moments = self.moments()
        plain = {os.stat(self.path(name)).st_ino for name in self.plain}
        photos = {}
        for photo in self.photos:
            names = ["albums/" + name for name in photo.names()] or [photo.moment]
            inodes = set()
            for name in names:
                expect(os.path.exists(self.path(name)), name, "is missing")
                inodes.add(os.stat(self.path(name)).st_ino)
            expect(len(inodes) == 1, "not one file:", *names)
            inode = inodes.pop()
            expect(inode not in photos, "one file for two photos:", *names)
            photos[inode] = photo
            here = moments.get(inode, [])
            expect(len(here) == 1, names[0], "is in moments as", here)
            photo.moment = here[0]
            expect(here[0].split("/")[1] == photo.day, names[0], "is at", here[0], "and not on", photo.day)
            for name in names + here:
                self.expectBytes(name, photo.data)
            if photo.original is not None:
                directory, _, name = here[0].rpartition("/")
                found = f"{directory}/.versions/{name}/original"
                expect(os.path.exists(self.path(found)), "no original:", found)
                expect(self.read(found) == photo.original, "another original:", found)
        for name, data in self.plain.items():
            self.expectBytes(name, data)
        for inode, names in moments.items():
            expect(inode in photos or inode in plain, "not expected in moments:", *names)

    # Steps

    def step(self, *words):
        self.steps.append(" ".join(map(str, words)))
        if self.options.verbose:
            print(self.steps[-1], flush=True)

    def add(self):
        self.count += 1
        day, name = self.random.choice(DAYS), f"p{self.count}.jpg"
        photo = Photo(picture(day, self.random.getrandbits(32)))
        photo.day = day
        if self.random.random() < 0.8:
            photo.own = f"{self.random.choice(ALBUMS)}/{name}"
            place = "albums/" + photo.own
        else:
            place = photo.moment = f"moments/{day}/{name}"
            os.makedirs(self.path("moments/" + day), exist_ok=True)
        self.step("add", place)
        with open(self.path(place), "wb") as file:
            file.write(photo.data)
        self.photos.append(photo)

    def link(self):
        photo = self.random.choice(self.photos)
        self.count += 1
        to = f"{self.random.choice(ALBUMS)}/l{self.count}.jpg"
        names = photo.names()
        isMember = not names or self.random.random() < 0.6
        source = self.moment(photo) if isMember else "albums/" + self.random.choice(names)
        words = ["ln", source, "albums/" + to]
        if not isMember and self.random.random() < 0.5:
            words = ["cp", "-al", *words[1:]]
        self.step(*words)
        subprocess.run(words, cwd=self.mount, check=True)
        (photo.members if isMember else photo.links).add(to)

    def unlink(self):
        photo = self.random.choice(self.photos)
        names = photo.names()
        if len(names) > 1:
            name = self.random.choice(names)
            self.step("rm", "albums/" + name)
            subprocess.run(["rm", "albums/" + name], cwd=self.mount, check=True)
            photo.drop(name)
        elif len(self.photos) > 4:
            moment = self.moment(photo)
            self.step("rm", moment)
            subprocess.run(["rm", moment], cwd=self.mount, check=True)
            self.photos.remove(photo)

    def move(self):
        photo = self.random.choice(self.photos)
        if photo.names() and self.random.random() < 0.6:
            name = self.random.choice(photo.names())
            self.count += 1
            to = f"{self.random.choice(ALBUMS)}/m{self.count}.jpg"
            self.step("mv", "albums/" + name, "albums/" + to)
            subprocess.run(["mv", "albums/" + name, "albums/" + to], cwd=self.mount, check=True)
            kind = "own" if photo.own == name else "members" if name in photo.members else "links"
            photo.drop(name)
            if kind == "own":
                photo.own = to
            else:
                getattr(photo, kind).add(to)
        else:
            moment, day = self.moment(photo), self.random.choice(DAYS)
            os.makedirs(self.path("moments/" + day), exist_ok=True)
            to = f"moments/{day}/{os.path.basename(moment)}"
            if os.path.exists(self.path(to)):
                return
            self.step("mv", moment, to)
            subprocess.run(["mv", moment, to], cwd=self.mount, check=True)
            photo.day, photo.pinned, photo.moment = day, True, to

    def edit(self, killed=False):
        photo = self.random.choice(self.photos)
        names = photo.names()
        isMoment = not names or self.random.random() < 0.4
        place = self.moment(photo) if isMoment else "albums/" + self.random.choice(names)
        directory, _, name = place.rpartition("/")
        program, line = self.random.choice(self.edits)
        if isMoment:
            # A day has no directories: rsync would discard the file, and say nothing.
            line = line.replace(" --delay-updates", "")
        elif photo.links and line.startswith(": >") and "mv" in line:
            # Emptied, the other links are empty too, and stay so.
            return
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="obscura-programs-") as twin:
            os.mkdir(twin + "/work")
            source = f"{twin}/{name}"
            with open(source, "wb") as file:
                file.write(picture(photo.day, self.random.getrandbits(32)))
            with zipfile.ZipFile(twin + "/z.zip", "w") as archive:
                archive.write(source, name)
            with tarfile.open(twin + "/t.tar", "w") as archive:
                archive.add(source, name)
            # What of this stem is there already decides on the names of backups.
            for entry in os.listdir(self.path(directory)):
                if entry == name or entry.startswith(name):
                    with open(f"{twin}/work/{entry}", "wb") as file:
                        file.write(self.read(f"{directory}/{entry}"))
            # Some programs treat a file of several links otherwise.
            os.link(f"{twin}/work/{name}", f"{twin}/link")
            before = os.stat(f"{twin}/link").st_ino
            self.count += 1
            taken = self.random.choice(DAYS)
            # Python's words are in quotes already.
            quoted = (lambda text: text) if program == "python3" else shlex.quote
            line = line.format(
                n=quoted(name), s=quoted(source), z=twin + "/z.zip", t=twin + "/t.tar", u=f"u{self.count}", q=self.random.randrange(30, 90),
                r="%08x" % self.random.getrandbits(32), v=VIM, x=taken.replace("-", ":"))
            self.step(f"in {directory}:", line)
            if killed:
                return self.edit_killed(photo, directory, name, line)
            self.program(line, twin + "/work")
            found = {entry: open(f"{twin}/work/{entry}", "rb").read() for entry in os.listdir(twin + "/work")}
            isNew = os.stat(f"{twin}/work/{name}").st_ino != before
            # Two files of the same bytes would be one photo.
            same = any(other.data == found[name] for other in self.photos if other is not photo)
            if same or photo.links and found[name] == photo.data:
                return
            self.program(line, self.path(directory))
        isDated = "DateTimeOriginal" in line and not photo.pinned
        day = photo.day
        if isDated:
            photo.day = taken
        # A photo that gets another date in its day leaves that.
        if not (isDated and isMoment):
            here = {entry for entry in os.listdir(self.path(directory)) if entry.startswith(name)}
            expect(here == set(found), "files beside", place, ":", sorted(here), "and not", sorted(found))
        self.saved(photo, place, found, isNew, day)
        if isDated and isMoment and not photo.names():
            places = [one for places in self.moments().values() for one in places]
            photo.moment = next(
                (one for one in places if one.startswith(f"moments/{taken}/") and self.read(one) == photo.data), place)

    def program(self, line, directory):
        ended = subprocess.run(
            ["bash", "-c", line], cwd=directory, capture_output=True, text=True, env=self.environment())
        expect(ended.returncode == 0, line, "in", directory, ":", ended.stdout, ended.stderr)

    def saved(self, photo, place, found, isNew, day):
        """What the contract says of a save: `found` are the files that it left, and `day` that of the old bytes."""
        directory, _, name = place.rpartition("/")
        new, old = found[name], photo.data
        for entry, data in found.items():
            if entry != name and f"{directory}/{entry}" not in map("albums/".__add__, photo.names()):
                self.plain[f"{directory}/{entry}"] = data
        if isNew and directory.startswith("albums/"):
            staying = photo.links - {place.removeprefix("albums/")}
            if staying:
                other = Photo(old)
                other.links, photo.links = staying, photo.links - staying
                other.day = day
                other.pinned = photo.pinned
                self.photos.append(other)
                # A backup that is one more link of it is no plain file.
                for entry in found:
                    if entry != name and os.stat(self.path(f"{directory}/{entry}")).st_ino == self.inode(other):
                        self.remove(f"{directory}/{entry}")
        if photo.original is None and new != old:
            photo.original = old
        photo.data = new

    def edit_killed(self, photo, directory, name, line):
        """The daemon dies within an edit: nothing but this photo may differ, and its old bytes are somewhere."""
        self.sync()
        work = subprocess.Popen(
            ["bash", "-c", line], cwd=self.path(directory), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=self.environment(), start_new_session=True)
        time.sleep(self.random.random() * 0.15)
        self.kill()
        try:
            work.wait(10)
        except subprocess.TimeoutExpired:
            os.killpg(work.pid, signal.SIGKILL)
            work.wait()
        self.begin()
        self.photos.remove(photo)
        others = {self.inode(other) for other in self.photos}
        found = [names for inode, names in self.moments().items() if inode not in others]
        # Of the files beside it a program may have made a link of the photo.
        others |= {
            os.stat(self.path(plain)).st_ino for plain in self.plain
            if os.path.exists(self.path(plain)) and not plain.startswith(f"{directory}/{name}")}
        expect(all(len(names) == 1 for names in found), "more than once in moments:", found)
        # Links may have become a photo of their own.
        loose = [names[0] for names in found if os.stat(self.path(names[0])).st_ino not in others]
        # What a program left beside it, as a backup or half written, is listed in its day, and no photo.
        most = len(self.photos) + (2 if photo.links else 1)
        expect(self.photoCount() <= most, "split by a kill:", *loose)
        everywhere = [os.path.join(top, name) for top, _, names in os.walk(self.mount) for name in names]
        for one in loose:
            original = f"{os.path.dirname(one)}/.versions/{os.path.basename(one)}/original"
            if os.path.exists(self.path(original)):
                everywhere.append(self.path(original))
        olds = {photo.data, photo.original}
        isKept = self.trash == "0" or any(open(path, "rb").read() in olds for path in everywhere)
        expect(isKept, "lost by a kill:", photo.names())
        # It begins anew: what is left of it goes.
        for album_name in photo.names():
            album, _, stem = ("albums/" + album_name).rpartition("/")
            for entry in os.listdir(self.path(album)):
                if entry.startswith(stem) or entry.startswith("."):
                    self.remove(f"{album}/{entry}")
        for inode, names in self.moments().items():
            if inode not in others:
                for one in names:
                    self.remove(one)
        for plain in list(self.plain):
            if not os.path.exists(self.path(plain)):
                del self.plain[plain]
            elif plain.startswith(f"{directory}/{name}"):
                # A backup of before, which the program may have replaced.
                self.plain[plain] = self.read(plain)
        self.add()

    def photoCount(self):
        return json.loads(self.obscura("status", self.mount, "--json"))["photos"]

    def remove(self, name):
        if not any(name == "albums/" + other for photo in self.photos for other in photo.names()):
            self.plain.pop(name, None)
            subprocess.run(["rm", "-rf", self.path(name)], check=True)

    def empty(self):
        """Emptied, and written again by way of any of its names, with a remount or a kill between."""
        photo = self.random.choice(self.photos)
        places = ["albums/" + name for name in photo.names()] + [self.moment(photo)]
        first, second = self.random.choice(places), self.random.choice(places)
        self.step(": >", first)
        open(self.path(first), "wb").close()
        for name in places:
            expect(os.stat(self.path(name)).st_size == 0, name, "is not empty")
        self.pause()
        old = photo.data
        photo.data = picture(photo.day, self.random.getrandbits(32))
        ways = ["w", "r+"] if photo.links and not second.startswith("moments/") else ["w", "r+", "rename"]
        way = self.random.choice(ways)
        self.step("write again", second, way)
        if way == "rename":
            temporary = f"{os.path.dirname(second)}/.t{self.count}"
            with open(self.path(temporary), "wb") as file:
                file.write(photo.data)
            os.rename(self.path(temporary), self.path(second))
        else:
            with open(self.path(second), way + "b") as file:
                file.write(photo.data)
        if photo.original is None:
            photo.original = old

    def pause(self):
        roll = self.random.random()
        if roll < 0.4:
            self.step("remount")
            self.end()
            self.begin()
        elif roll < 0.6:
            self.step("kill")
            deadline = time.monotonic() + 30
            while '"committed": true' not in self.obscura("status", self.mount, "--json").replace('":true', '": true'):
                expect(time.monotonic() < deadline, "not committed")
                time.sleep(0.05)
            self.kill()
            self.begin()

    def live(self, rounds, deadline):
        steps = [(self.edit, 60), (self.link, 10), (self.move, 6), (self.unlink, 4), (self.empty, 6), (self.add, 4),
                 (self.pause, 6)]
        if self.options.kills:
            steps.append((lambda: self.edit(killed=True), 4))
        for _ in range(3):
            self.add()
        for done in range(rounds):
            if deadline and time.monotonic() > deadline:
                return done
            self.random.choices([step for step, _ in steps], [weight for _, weight in steps])[0]()
            self.check()
        return rounds

    def finish(self):
        self.step("check")
        self.end()
        self.obscura("check", self.vault, "--password-stdin")
        self.begin()
        self.check()
        self.end()


def run(options, seed, rounds, deadline):
    place = tempfile.mkdtemp(prefix="obscura-programs-")
    life = None
    if os.geteuid() == 0:
        # What others copy into namespaces of their own goes with the mount: a private copy would hold it.
        subprocess.run(["mount", "--bind", place, place], check=True)
        subprocess.run(["mount", "--make-private", place], check=True)
        subprocess.run(["mount", "--make-shared", place], check=True)
    try:
        life = Life(options, seed, place)
        done = life.live(rounds, deadline)
        life.finish()
        return done
    except (Difference, OSError, subprocess.CalledProcessError) as error:
        print(f"programs: seed {seed}: {error}", file=sys.stderr)
        for step in life.steps if life else []:
            print("  " + step, file=sys.stderr)
        return None
    finally:
        if options.keep:
            print(place)
        else:
            subprocess.run(["umount", "-l", place + "/M"], capture_output=True)
            subprocess.run(["fusermount3", "-uz", place + "/M"], capture_output=True)
            subprocess.run(["umount", "-l", place], capture_output=True)
            shutil.rmtree(place, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("obscura", help="the program")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=100, help="steps of one life")
    parser.add_argument("--minutes", type=float, default=0, help="go on with further seeds for so long")
    parser.add_argument("--only", help="the programs, parted by commas; otherwise all that are installed")
    parser.add_argument("--kills", action="store_true", help="kill the daemon within edits too")
    parser.add_argument("--keep", action="store_true", help="leave everything as it is at the end")
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    options.obscura = os.path.abspath(options.obscura)
    known = {program for program, _ in EDITS}
    options.only = set(options.only.split(",")) if options.only else known
    missing = {program for program in options.only if not shutil.which(VIM if program == "vim" else program)}
    if missing and options.only != known:
        parser.error("not installed: " + ", ".join(sorted(missing)))
    options.only -= missing
    deadline = time.monotonic() + options.minutes * 60 if options.minutes else None
    seed, total = options.seed, 0
    while True:
        done = run(options, seed, options.rounds, deadline)
        if done is None:
            sys.exit(1)
        total += done
        seed += 1
        if deadline is None or time.monotonic() > deadline:
            break
    print(f"programs: {total} steps, seeds {options.seed} to {seed - 1}, with {', '.join(sorted(options.only))}")


main()
