"""What the page says and keeps while files are looked at, sent, interrupted and failed, in Chromium with files made here."""

import os

from notices import HEIC, JPEG, MP4, PLACED, SOME_PLACE, Page, exif, write
from place import Place
from proxy import Proxy

MIB = 1 << 20


class Trial:
    """One page after the other on one receiver, behind a network that can be slow or cut."""

    def __init__(self, place):
        self.place, self.failed = place, 0
        self.proxy = Proxy(place.port)
        place.link = place.link.replace(":%d/" % place.port, ":%d/" % self.proxy.port)
        self.page = Page(place)
        self.browser = self.page.browser

    def say(self, what, good, found=""):
        self.failed += not good
        print("%s %s %s" % ("ok " if good else "BAD", what, "" if good else found), flush=True)

    def files(self, *named):
        return write(self.place.directory, named)

    def choose(self, paths):
        """Does not wait."""
        self.browser.choose("originals", paths)

    def wait_for_end(self):
        self.browser.wait("files.length > 0 && !isBusy() && active === 0 && wakeLock === null && !drawing", 300)

    def reload(self):
        self.browser.evaluate("window.isOld = true")
        self.browser.reload()
        self.browser.wait("!window.isOld && document.getElementById('send') && !document.getElementById('send').hidden", 60)

    def status(self):
        return self.browser.evaluate("document.getElementById('status').textContent")

    def rows(self):
        return self.browser.evaluate("[...document.querySelectorAll('#files li')].map((row) => row.innerText)")

    def same(self, path):
        with open(path, "rb") as sent, open(self.place.album + "/" + os.path.basename(path), "rb") as received:
            return sent.read() == received.read()


def looking(trial):
    """Looking is held up by a promise that the trial resolves: no time decides what is seen."""
    browser = trial.browser
    browser.evaluate("window.held = new Promise((done) => { window.go = done; });"
                     "window.realDigest = crypto.subtle.digest.bind(crypto.subtle);"
                     "crypto.subtle.digest = async (...words) => { await held; return realDigest(...words); }; void 0")
    paths = trial.files(("look1.jpg", JPEG + PLACED + b"1"), ("look2.jpg", JPEG + PLACED + b"2"))
    trial.choose(paths)
    browser.wait("locks.held > locks.released && !drawing && files.length === 2")
    status = trial.status()
    trial.say("files that are being looked at are not done", "0 of 2" in status and "All done" not in status, status)
    guard = browser.evaluate("(() => { const leaving = new Event('beforeunload', {cancelable: true});"
                             "dispatchEvent(leaving); return leaving.defaultPrevented; })()")
    trial.say("the page asks before it is left while it looks at files", guard)
    browser.evaluate("go()")
    trial.wait_for_end()
    guard = browser.evaluate("(() => { const leaving = new Event('beforeunload', {cancelable: true});"
                             "dispatchEvent(leaving); return leaving.defaultPrevented; })()")
    trial.say("and not afterwards", not guard)
    trial.say("all done then", trial.status() == "All done.", trial.status())
    browser.evaluate("crypto.subtle.digest = realDigest; void 0")


def failing(trial):
    browser = trial.browser
    # The computer has no room for one of many: its answer is made here.
    browser.evaluate("window.realSend = XMLHttpRequest.prototype.send; window.realOpen = XMLHttpRequest.prototype.open;"
                     "XMLHttpRequest.prototype.open = function (method, path) { realOpen.call(this, method,"
                     "method === 'PUT' && path.includes('full') ? '/photo/full.jpg?size=9' : path); }; void 0")
    full = trial.files(*[("full%d.jpg" % number, JPEG + PLACED + b"%d" % number) for number in range(2)])
    rest = trial.files(*[("many%03d.jpg" % number, JPEG + PLACED + b"%d" % number) for number in range(130)])
    browser.evaluate("Object.defineProperty(XMLHttpRequest.prototype, 'realStatus', "
                     "Object.getOwnPropertyDescriptor(XMLHttpRequest.prototype, 'status'));"
                     "Object.defineProperty(XMLHttpRequest.prototype, 'status', {configurable: true, get() {"
                     "return this.responseURL.includes('full.jpg') ? 507 : this.realStatus; }}); void 0")
    trial.choose(full + rest)
    trial.wait_for_end()
    rows, status = trial.rows(), trial.status()
    trial.say("failed files come first, with the reason",
              all("full%d.jpg" % n in rows[n] and "no room" in rows[n] for n in range(2)), rows[:3])
    trial.say("nothing is called done where a file failed", status == "Not everything was sent: see below.", status)
    browser.evaluate("Object.defineProperty(XMLHttpRequest.prototype, 'status', "
                     "Object.getOwnPropertyDescriptor(XMLHttpRequest.prototype, 'realStatus'));"
                     "XMLHttpRequest.prototype.open = realOpen; void 0")
    trial.reload()
    trial.say("after a reload the page says to choose again", browser.evaluate("!document.getElementById('left').hidden"))
    trial.choose(full)
    trial.wait_for_end()
    trial.choose(full)
    trial.wait_for_end()
    count = browser.evaluate("files.length")
    trial.say("chosen again, they are there, each once", count == 2 and trial.same(full[0]), count)
    trial.reload()
    trial.say("and after that the page says nothing", browser.evaluate("document.getElementById('left').hidden"))


def live(trial):
    """The video comes in a later choice."""
    photo = trial.files(("IMG_0100.HEIC", HEIC + exif(SOME_PLACE, live=True)))
    trial.choose(photo)
    trial.wait_for_end()
    row = trial.rows()[0]
    trial.say("a Live Photo without its video is noticed", "without its video" in row, row)
    trial.choose(trial.files(("IMG_0100.MOV", MP4 + b"com.apple.quicktime.make")))
    trial.wait_for_end()
    text = trial.browser.evaluate("document.getElementById('results').innerText")
    trial.say("and no more when the video has come", "without" not in text, text)


def locations(trial):
    filling = b"\0" * (3 * MIB)
    cases = [
        ("IMG_0200.HEIC", HEIC + filling + exif(SOME_PLACE), False),
        ("IMG_0201.HEIC", HEIC + filling + exif(), True),
        # Exif in the middle, which is not read.
        ("IMG_0202.HEIC", HEIC + filling + exif(SOME_PLACE) + filling, False),
        ("IMG_0203.JPG", JPEG + filling, True),
        ("IMG_0204.JPG", JPEG + b'<rdf:Description exif:GPSLatitude="47,1.5N"/>', False),
    ]
    for name, content, expected in cases:
        trial.choose(trial.files((name, content)))
        trial.wait_for_end()
        row = [row for row in trial.rows() if name in row][0]
        trial.say("location of " + name, ("No location:" in row) == expected, row)


NOTE_PIECES = """
    window.puts = [];
    const setHeader = XMLHttpRequest.prototype.setRequestHeader;
    XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
      if (name === "Content-Range") puts.push(value);
      setHeader.call(this, name, value);
    };
    window.large = () => files.find((item) => item.file.name === "large.jpg") || {};
    void 0"""


def slow(trial):
    """A network of 200 kB/s that is cut: pieces get smaller, and what was compared is not sent again."""
    browser = trial.browser
    path = trial.files(("large.jpg", JPEG + PLACED + os.urandom(6 * MIB)))
    # A piece takes longer than `idleSeconds`, and never is without progress for so long.
    browser.evaluate(NOTE_PIECES + "; pieceBytes = 2 << 20; idleSeconds = 6; void 0")
    trial.proxy.rate = 200_000
    trial.choose(path)
    browser.wait("large().kept && !drawing", 120)
    row = [row for row in trial.rows() if "large.jpg" in row][0]
    trial.say("the row of a file that is sent says how much", "%" in row, row)
    before, kept, piece = browser.evaluate("[puts.length, large().kept, pieceBytes]")
    browser.wait("large().sent > large().kept", 60)
    trial.proxy.cut(1)
    browser.wait("puts.length > %d && large().kept > %d" % (before, kept), 120)
    ranges = pieces(browser)
    trial.say("after a cut it goes on right after the last piece that was compared", ranges[before][0] == kept, ranges)
    trial.say("and with a smaller piece", ranges[before][1] - ranges[before][0] < piece, ranges)
    browser.wait("large().sent > large().kept", 60)
    trial.reload()
    browser.evaluate(NOTE_PIECES)
    trial.choose(path)
    browser.wait("puts.length", 120)
    kept = ranges[-1][0]
    trial.say("and so it does after a reload", pieces(browser)[0][0] == kept, [ranges, pieces(browser)])
    trial.proxy.rate = None
    trial.wait_for_end()
    trial.say("every byte is there", trial.same(path[0]))
    trial.say("and nothing of it is remembered", browser.evaluate("Object.keys(localStorage).join()") == "device")


def pieces(browser):
    """The pieces of `puts`: where they begin and end."""
    ranges = [put.split()[1].split("/")[0].split("-") for put in browser.evaluate("puts")]
    return [(int(first), int(last) + 1) for first, last in ranges]


def appearance(trial):
    browser = trial.browser
    browser.evaluate("document.documentElement.style.fontSize = '200%'; void 0")
    browser.call("Emulation.setDeviceMetricsOverride", width=360, height=760, deviceScaleFactor=2, mobile=True)
    for language in ("en", "de", "fr", "es", "it", "ar"):
        browser.evaluate("setLanguage('%s')" % language)
        lines = browser.evaluate("(() => { const range = document.createRange();"
                                 "range.selectNodeContents(document.getElementById('title'));"
                                 "return new Set([...range.getClientRects()].map((box) => box.top)).size; })()")
        words = browser.evaluate("document.getElementById('title').textContent").split()
        trial.say("no word of the title is broken at 200 %%, in %s" % language, lines <= len(words), lines)
    browser.evaluate("setLanguage('en')")
    keys = browser.evaluate("Object.values(texts).map((words) => Object.keys(words).join())")
    trial.say("each language has every text", len(set(keys)) == 1, keys)
    target = browser.evaluate("document.getElementById('target').textContent")
    trial.say("the album's name is as it is", target == "Into the album “A $& $1 B”.", target)


def page():
    with Place(album="A $& $1 B") as place:
        place.start()
        trial = Trial(place)
        try:
            for part in (appearance, looking, live, locations, slow, failing):
                part(trial)
        finally:
            trial.browser.close()
        print(place.stop(), place.errors().strip())
    return "%d are not as they should be" % trial.failed if trial.failed else None
