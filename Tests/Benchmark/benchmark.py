#!/usr/bin/env python3
"""Called by scripts/benchmark. Every round runs each system in turn, so that a ratio within a round holds even if the
machine's speed drifts; the table has medians of these ratios."""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import files
import photos
import systems
import thumbnails


def progress(text, is_last=False):
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="\n" if is_last else "", file=sys.stderr, flush=True)
    elif is_last:
        print(text, file=sys.stderr, flush=True)


def table(names, rounds, workloads, unit):
    """The first column in its unit, the others relative to it in the same round: median, least and greatest."""
    first, *others = names
    lines = ["| | " + " | ".join([f"{first}, {unit}", *others]) + " |", "|" + "---|" * (len(names) + 1)]
    for workload in workloads:
        base = [result[first][workload] for result in rounds]
        cells = [f"{statistics.median(base):.2f}"]
        for name in others:
            ratios = [result[name][workload] / result[first][workload] for result in rounds]
            spread = f" ({min(ratios):.2f}–{max(ratios):.2f})" if len(ratios) > 1 else ""
            cells.append(f"{statistics.median(ratios):.2f}{spread}")
        lines.append(f"| {workload} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="scripts/benchmark")
    parser.add_argument("kind", nargs="?", choices=["files", "thumbnails"], default="files")
    parser.add_argument("--photos", type=int, help="photos of 3.3 MB (300), or of 12 MP for thumbnails (1,000)")
    parser.add_argument("--small", type=int, default=3000, help="photos of 4 KB (3,000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds (5)")
    parser.add_argument("--directory", default="/var/tmp", help="where, on the disk to be measured (/var/tmp)")
    words = parser.parse_args()
    if words.rounds < 1 or words.small < 1 or (words.photos is not None and words.photos < 1):
        parser.error("numbers begin at 1")
    work = tempfile.mkdtemp(prefix="obscura-benchmark-", dir=words.directory)
    # What programs listed while they ran must not be what the next one measures.
    random.seed(1)
    try:
        if words.kind == "files":
            measure = files.Measurement(work, words.photos or 300, words.small, progress)
        else:
            measure = thumbnails.Measurement(work, words.photos or 1000, progress)
        rounds = []
        for number in range(words.rounds):
            result = {}
            for name in measure.names:
                result[name] = measure.run(
                    name, lambda text: progress(f"round {number + 1} of {words.rounds}, {name}: {text}"))
                figures = ", ".join(f"{key} {value:.2f}" for key, value in result[name].items())
                progress(f"round {number + 1} of {words.rounds}, {name}: {figures}", is_last=True)
            rounds.append(result)
        print(f"{measure.title} {words.rounds} alternating rounds: medians, in brackets the extremes"
              + ("" if measure.is_cold else "; NOT ROOT: caches were not dropped, so nothing is cold") + ".\n")
        print(table(measure.names, rounds, measure.workloads, measure.unit))
        print("\n" + systems.machine(words.directory))
    finally:
        for entry in os.listdir(work):
            subprocess.run(["fusermount3", "-uqz", f"{work}/{entry}/mount"], stderr=subprocess.DEVNULL)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(f"benchmark: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
