"""Compares the pictures and days of a mount with a manifest and with ImageMagick: see scripts/pictures."""

import concurrent.futures
import csv
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

SIDE = 256
SECONDS = 60
# Beyond these a picture differs: pixels of a side, levels of a mean colour.
SIDE_DIFFERENCE = 1
COLOUR_DIFFERENCE = 6
LIMITS = ["-limit", "memory", "1GiB", "-limit", "map", "1GiB", "-limit", "disk", "0"]
TILES_MAX = 60
# The manifest's words for the values of user.obscura.captured.source.
SOURCES = {"CreateDate": "DateTimeDigitized", "filename": "FileName"}


def run(words):
    """The output of a program; None if it failed or took too long."""
    try:
        done = subprocess.run(words, capture_output=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None


def measure(path):
    """Width, height and mean red, green and blue of a picture; None if it cannot be decoded."""
    shown = run(["convert", *LIMITS, path, "-colorspace", "sRGB", "-type", "TrueColor", "-format",
                 "%w %h %[fx:255*mean.r] %[fx:255*mean.g] %[fx:255*mean.b]", "info:"])
    numbers = (shown or b"").split()
    if len(numbers) != 5:
        return None
    return [int(numbers[0]), int(numbers[1])] + [float(number) for number in numbers[2:]]


def other(path, target):
    """Makes ImageMagick's picture of a file: its first frame, upright, on white, in a square of SIDE."""
    made = run(["convert", *LIMITS, path + "[0]", "-auto-orient", "-background", "white", "-alpha", "remove",
                "-resize", f"{SIDE}x{SIDE}>", "-quality", "93", "jpg:" + target])
    return measure(target) if made is not None and os.path.exists(target) else None


def attribute(path, name):
    try:
        return os.getxattr(path, "user.obscura." + name).decode()
    except OSError:
        return ""


class File:
    """A file of the folder, and what a mount makes of it."""

    def __init__(self, path, number, mount):
        self.path = path
        self.name = os.path.basename(path)
        self.album = f"{mount}/albums/{number}"
        self.source = self.day = ""
        self.ours = self.theirs = None
        self.faults = []

    def put(self, folder):
        os.mkdir(self.album)
        shutil.copy2(f"{folder}/{self.path}", f"{self.album}/{self.name}")

    def thumbnail(self):
        ending = "" if re.search(r"\.jpe?g$", self.name, re.IGNORECASE) else ".jpg"
        return f"{self.album}/.thumbs/{self.name}{ending}"

    def look(self, folder, work):
        file = f"{self.album}/{self.name}"
        self.source = attribute(file, "captured.source")
        self.day = attribute(file, "captured")[:10]
        try:
            with open(self.thumbnail(), "rb") as made, open(f"{work}/{os.path.basename(self.album)}-1.jpg", "wb") as to:
                to.write(made.read())
            self.ours = measure(to.name)
        except OSError:
            pass
        self.theirs = other(f"{folder}/{self.path}", f"{work}/{os.path.basename(self.album)}-2.jpg")

    def compare(self, row, mtime):
        """Notes what differs from the manifest's row, if there is one, and from ImageMagick's picture."""
        if row:
            self.compare_day(row, mtime)
            self.compare_size(row)
        if self.ours is None and self.theirs is not None:
            self.faults.append("no picture")
        if self.ours is None or self.theirs is None:
            return
        if max(abs(self.ours[side] - self.theirs[side]) for side in (0, 1)) > SIDE_DIFFERENCE:
            self.faults.append("size")
        elif max(abs(self.ours[colour] - self.theirs[colour]) for colour in (2, 3, 4)) > COLOUR_DIFFERENCE:
            self.faults.append("colours")

    def compare_day(self, row, mtime):
        rule, day = row["rule"], row["day"]
        if rule == "not a photo":
            if self.day:
                self.faults.append("is a photo")
        elif rule in ("exact", "mtime") and self.day != (day if rule == "exact" else mtime):
            self.faults.append("day")
        elif rule == "exact":
            source = SOURCES.get(row["date_source"], row["date_source"])
            if source not in ("none", "video", self.source):
                self.faults.append("source")

    def compare_size(self, row):
        width, height = (int(row[side] or 0) for side in ("width", "height"))
        if not self.ours or not width or not height:
            return
        if (row["orientation"] or "1") in "5678":
            width, height = height, width
        scale = min(SIDE / width, SIDE / height, 1)
        sides = [max(1, round(width * scale)), max(1, round(height * scale))]
        if max(abs(self.ours[side] - sides[side]) for side in (0, 1)) > SIDE_DIFFERENCE:
            self.faults.append("size or orientation by the manifest")

    def row(self):
        def shown(found):
            return [f"{found[0]}x{found[1]}", " ".join(f"{colour:.0f}" for colour in found[2:])] if found else ["", ""]
        return [self.path, self.day, self.source, *shown(self.ours), *shown(self.theirs), ", ".join(self.faults)]


def sheet(files, work, target):
    """Draws the pictures of files that differ: the mount's above ImageMagick's."""
    words = []
    for file in files[:TILES_MAX]:
        number = os.path.basename(file.album)
        for side in "12":
            made = f"{work}/{number}-{side}.jpg"
            if not os.path.exists(made) or not os.path.getsize(made):
                run(["convert", "-size", "128x128", "xc:#888", made])
        pair = f"{work}/{number}-pair.png"
        run(["convert", f"{work}/{number}-1.jpg", f"{work}/{number}-2.jpg", "-background", "#444", "-gravity", "center",
             "-append", pair])
        words += ["-label", f"{file.name[:28]}\n{', '.join(file.faults)[:28]}", pair]
    if words:
        subprocess.run(["montage", *words, "-tile", "8x", "-geometry", "160x320+4+4", target], check=False,
                       capture_output=True)


def main():
    folder, mount, out = sys.argv[1:4]
    rows = {}
    if len(sys.argv) > 4:
        with open(sys.argv[4], encoding="utf-8", newline="") as table:
            rows = {row["path"]: row for row in csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE)}
    paths = sorted(os.path.relpath(os.path.join(directory, name), folder)
                   for directory, _, names in os.walk(folder) for name in names)
    files = [File(path, number, mount) for number, path in enumerate(paths)]
    for file in files:
        file.put(folder)
    # Made in another process, while this one waits.
    with tempfile.TemporaryDirectory() as work, concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(lambda file: file.look(folder, work), files))
        for file in files:
            seconds = os.stat(f"{folder}/{file.path}").st_mtime
            file.compare(rows.get(file.path), time.strftime("%Y-%m-%d", time.localtime(seconds)))
        different = [file for file in files if file.faults]
        sheet(different, work, out + "/differences.jpg")
    with open(out + "/pictures.tsv", "w", encoding="utf-8") as table:
        for row in [["path", "day", "source", "size", "colours", "size of ImageMagick's", "colours of it", "differs"]]:
            print("\t".join(row), file=table)
        for file in files:
            print("\t".join(file.row()), file=table)
    for file in different:
        print("\t".join(file.row()))
    counts = {}
    for file in different:
        for fault in file.faults:
            counts[fault] = counts.get(fault, 0) + 1
    told = ", ".join(f"{fault} {count}" for fault, count in sorted(counts.items()))
    print(f"{len(files)} files, {sum(1 for file in files if file.ours)} with a picture, "
          f"{sum(1 for file in files if file.theirs)} with one of ImageMagick's; {len(different)} differ: {told or '-'}")
    print(f"{out}/pictures.tsv {out}/differences.jpg")


main()
