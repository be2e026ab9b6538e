"""Trials of `obscura receive` that take a browser, or long: called by `scripts/phone`."""

import sys


def main(words):
    kind, rest = (words[0] if words else ""), words[1:]
    number = lambda index, default: int(rest[index]) if len(rest) > index else default
    if kind in ("chromium", "firefox"):
        from send import make_files, send
        count, video = number(0, 500), number(1, 4_000_000_000)
        paths = make_files("/var/tmp/phone-files", count, 3_000_000, video)
        send(kind, paths, seed=number(2, 1), harms=number(3, 10), pause=(10, 25), rate=number(4, 0) or None)
    elif kind == "flood":
        from flood import flood
        flood(number(0, 1_000_000), number(1, 100))
    elif kind == "speed":
        from speed import speed
        speed(number(0, 5), number(1, 1_000_000_000), number(2, 100))
    elif kind == "notices":
        from notices import notices
        return notices()
    elif kind == "page":
        from page import page
        return page()
    elif kind == "pictures" and rest:
        from notices import pictures
        pictures(rest[0])
    else:
        return "usage: scripts/phone chromium|firefox [PHOTOS [VIDEO-BYTES [SEED [HARMS [BYTES-A-SECOND]]]]]\n" \
               "       scripts/phone flood [REQUESTS [GIGABYTES]]\n" \
               "       scripts/phone speed [ROUNDS [BYTES [PHOTOS]]]\n" \
               "       scripts/phone notices\n" \
               "       scripts/phone page\n" \
               "       scripts/phone pictures DIRECTORY"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
