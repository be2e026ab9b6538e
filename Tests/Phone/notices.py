"""What the page says that a phone has taken away, and its wake lock, in Chromium with files made here; and pictures of the
page in each language, at a phone's size."""

import os
import shutil
import struct
import subprocess

from browsers import Chromium
from place import Place

JPEG, HEIC, MP4 = b"\xff\xd8\xff", b"\0\0\0\x18ftypheic\0\0\0\0", b"\0\0\0\x14ftypqt  \0\0\0\0"
HEIC_NAMES, PLACE, LIVE, VIDEO = "lostHeic", "lostPlace", "lostLive", "lostVideo"


def exif(place=None, live=False, order=">"):
    """An Exif block: `place` is the six numbers of a latitude, or None; `live` adds Apple's number of a Live Photo."""
    entry = lambda tag, kind, count, value: struct.pack(order + "HHII", tag, kind, count, value)
    head = (b"MM" if order == ">" else b"II") + struct.pack(order + "HI", 42, 8)
    # One entry of the first directory leads to the places' directory, whose numbers stand behind it.
    first = struct.pack(order + "H", 1 if place else 0) + (entry(0x8825, 4, 1, 26) if place else b"") + b"\0" * 4
    tiff = head + first
    if place:
        tiff += struct.pack(order + "H", 2) + entry(1, 2, 2, 0x4E000000) + entry(2, 5, 3, 56) + b"\0" * 4
        tiff += struct.pack(order + "6I", *place)
    if live:
        tiff += b"Apple iOS\0\0\x01MM" + struct.pack(">H", 1) + struct.pack(">HHII", 0x11, 2, 37, 0) + b"\0" * 4
    return b"\xff\xe1" + struct.pack(">H", len(tiff) + 8) + b"Exif\0\0" + tiff


SOME_PLACE, NO_PLACE = (47, 1, 30, 1, 0, 1), (0, 0, 0, 0, 0, 0)
PLACED = exif(SOME_PLACE)

# Name, bytes, and the notices: files of one row are chosen together, and each is about the first of them.
CASES = [
    ([("IMG_0001.HEIC", JPEG + PLACED)], [HEIC_NAMES]),
    ([("IMG_0002.heif", JPEG + PLACED)], [HEIC_NAMES]),
    ([("IMG_0003.HEIC", HEIC + PLACED)], []),
    ([("IMG_0004.JPG", JPEG + PLACED)], []),
    ([("IMG_0005.JPG", JPEG + exif(SOME_PLACE, order="<"))], []),
    ([("IMG_0006.JPG", JPEG + exif())], [PLACE]),
    ([("IMG_0007.JPG", JPEG + b"no Exif at all")], [PLACE]),
    ([("IMG_0008.HEIC", HEIC)], [PLACE]),
    # Android hands out a photo whose place it has overwritten with zeros.
    ([("PXL_20240501_101010.jpg", JPEG + exif(NO_PLACE))], [PLACE]),
    # The equator: zeros, but with denominators.
    ([("PXL_20240501_101011.jpg", JPEG + exif((0, 1, 0, 1, 0, 1)))], []),
    ([("IMG_0009.HEIC", HEIC + exif(SOME_PLACE, live=True))], [LIVE]),
    ([("IMG_0010.HEIC", HEIC + exif(SOME_PLACE, live=True)), ("IMG_0010.MOV", MP4 + b"com.apple.quicktime.make")], []),
    ([("IMG_0011.JPG", JPEG + exif(SOME_PLACE, live=True)), ("IMG_0011.MOV", MP4 + b"com.apple.quicktime.make")], []),
    ([("IMG_0012.HEIC", JPEG + exif(None, live=True))], [HEIC_NAMES, PLACE, LIVE]),
    ([("IMG_0013.MOV", MP4 + b"made again")], [VIDEO]),
    ([("IMG_0014.MOV", MP4 + b"\0" * 3_000_000 + b"com.apple.quicktime.creationdate")], []),
    ([("VID_20240501_101010.mp4", MP4 + b"of another phone")], []),
    ([("Screenshot.png", b"\x89PNG\r\n\x1a\n")], []),
    ([("notes.txt", b"a text")], []),
    ([("empty.jpg", b"")], []),
    # Directories that say what cannot be.
    ([("IMG_0015.JPG", JPEG + exif(SOME_PLACE)[:20])], [PLACE]),
    ([("IMG_0016.JPG", JPEG + b"Exif\0\0MM\0\x2a\xff\xff\xff\xf0")], [PLACE]),
    ([("IMG_0017.JPG", JPEG + b"Exif\0\0II\x2a\0\x08\0\0\0\xff\xff")], [PLACE]),
]

COUNT_LOCKS = """
    window.locks = {asked: 0, held: 0, released: 0};
    const lock = navigator.wakeLock?.request.bind(navigator.wakeLock);
    if (lock) navigator.wakeLock.request = async (kind) => {
      locks.asked++;
      const held = await lock(kind);
      locks.held++;
      held.addEventListener("release", () => { locks.released++; });
      return held;
    };"""


def write(directory, files):
    paths = []
    for name, content in files:
        paths.append(directory + "/" + name)
        with open(paths[-1], "wb") as file:
            file.write(content)
    return paths


class Page:
    def __init__(self, place, language="en"):
        self.browser = Chromium(language).start()
        self.browser.call("Page.addScriptToEvaluateOnNewDocument", source=COUNT_LOCKS)
        self.browser.call("Browser.grantPermissions", permissions=["wakeLockScreen"])
        self.browser.open(place.link)
        self.browser.wait("document.getElementById('send') && !document.getElementById('send').hidden", 60)

    def choose(self, paths):
        """The state and notices of each, when all are sent."""
        self.browser.choose("originals", paths)
        self.browser.wait("files.length > 0 && active === 0 && !isBusy() && !drawing", 120)
        return self.browser.evaluate(
            "files.slice(-%d).map((item) => [item.file.name, item.state, lossesOf(item)])" % len(paths))


def notices():
    failed = 0
    with Place() as place:
        place.start()
        page = Page(place)
        browser = page.browser
        print(browser.version)
        for files, expected in CASES:
            name, state, found = page.choose(write(place.directory, files))[0]
            # What a person reads: the notices below the name.
            row = browser.evaluate("[...document.querySelectorAll('#files li')].find((row) => row.firstChild.textContent === "
                                   "%r).innerText" % name) or ""
            seen = all(browser.evaluate("texts.en." + key) in row for key in expected)
            good = state == "done" and sorted(found) == sorted(expected) and seen
            failed += not good
            print("%s %-26s %s %s%s" % ("ok " if good else "BAD", name, state, found, "" if good else " for %s" % expected))
        for key in (HEIC_NAMES, PLACE, LIVE, VIDEO):
            print("   ", browser.evaluate("texts.en." + key))
        browser.wait("wakeLock === null", 10)
        locks = browser.evaluate("locks")
        good = locks["held"] > 0 and locks["held"] == locks["released"]
        failed += not good
        print("%s wake lock: %s" % ("ok " if good else "BAD", locks))
        # While something is sent, the lock is held: at 200 kB/s the file takes 20 seconds.
        browser.call("Network.enable")
        browser.call("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1,
                     uploadThroughput=200_000)
        browser.choose("originals", write(place.directory, [("large.jpg", JPEG + os.urandom(4_000_000))]))
        browser.wait("active > 0 && locks.held > locks.released", 30)
        print("ok  wake lock is held while a file is sent")
        # The screen was off: the browser took the lock away, and the page asks for it again.
        before = browser.evaluate("locks.held")
        browser.evaluate("wakeLock.release().then(() => new Promise((done) => setTimeout(done, 300)))"
                         ".then(() => document.dispatchEvent(new Event('visibilitychange')))")
        browser.wait("locks.held > %d" % before, 30)
        print("ok  wake lock is asked for again when the page is shown again")
        browser.wait("active === 0 && wakeLock === null", 120)
        print("ok  wake lock is given back at the end: %s" % browser.evaluate("locks"))
        same = page.choose([place.directory + "/IMG_0004.JPG"])[0]
        failed += same[1] != "known"
        print("%s chosen again: %s" % ("ok " if same[1] == "known" else "BAD", same))
        browser.close()
        print(place.stop(), place.errors().strip())
    return "%d notices are not as they should be" % failed if failed else None


def pictures(directory):
    """The page after some photos, in each language, as JPEG files of a phone's width."""
    os.makedirs(directory, exist_ok=True)
    with Place() as place:
        photos = place.directory + "/photos-to-send"
        os.mkdir(photos)
        for number in range(6):
            path = "%s/IMG_%04d.JPG" % (photos, 412 + number)
            subprocess.run(["convert", "-seed", str(number), "-size", "800x600", "plasma:skyblue-darkgreen", path], check=True)
            subprocess.run(["exiftool", "-q", "-overwrite_original", "-DateTimeOriginal=2024:05:01 10:00:00", path], check=True)
        os.rename(photos + "/IMG_0412.JPG", photos + "/IMG_0412.HEIC")
        for language in ("en", "de", "fr", "es", "it", "ar"):
            place.start()
            page = Page(place, language)
            page.choose([photos + "/" + name for name in sorted(os.listdir(photos))])
            title = page.browser.evaluate("document.documentElement.lang + ' ' + document.documentElement.dir")
            for name, script in (("send", "scrollTo(0, 0)"),
                                 ("received", "document.getElementById('results').scrollIntoView()")):
                page.browser.evaluate(script)
                with open(place.directory + "/picture.png", "wb") as file:
                    file.write(page.browser.picture())
                subprocess.run(["convert", place.directory + "/picture.png", "-resize", "50%", "-quality", "80",
                                "%s/phone-%s-%s.jpg" % (directory, name, language)], check=True)
            print(language, title, flush=True)
            page.browser.close()
            place.stop()
            # Out of the space, so that they are sent again.
            shutil.rmtree(place.mounted + "/moments/2024-05-01")
