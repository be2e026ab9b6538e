#!/usr/bin/python3
"""Lists and extracts a vault of Obscura: a second reader, which follows the format's specification
(Sources/VaultFormat/VaultFormat.docc/Format.md). It shares no code with the program and writes to no vault.

    read_vault.py list VAULT [--key-file F]                  one line a file: path, type, mode, links, size, mtime, sum
    read_vault.py extract VAULT DIRECTORY [--key-file F]     writes `moments` and `albums` into a new directory

The password is the first line of standard input. Every seal of the newest state is verified, those of thumbnails and
identity records too. Exit status: 0 all is whole, 1 something is damaged or could not be written (a line each on
standard error), 2 no space opens with this password.

Needs PyNaCl and Python 3.11, which opens a database that is nowhere but in memory. With Debian's python3-nacl call it
by `/usr/bin/python3`: another python3 that comes first in PATH does not find the package.
"""

import argparse
import hashlib
import itertools
import os
import sqlite3
import stat
import sys
from typing import Iterator, NamedTuple

from vault_format import (
    CHUNK_BYTES, CHUNK_SECTORS, CONTENT, LOST_BYTES_MAX, LOST_SECTOR, NUMBER_MAX, Damaged, Descriptor, UnknownVersion,
    is_name, source, unsigned)
from vault_space import EmptySpace, Space, State, WrongPassword, read_header, unlock
from vault_verify import verify_rest, verify_state


# The tree


class Inode(NamedTuple):
    ino: int
    mode: int
    links: int
    size: int
    content: int
    day: int
    flags: int
    mtime: int
    mtime_ns: int
    rdev: int


class Tree:
    """Files and directories of a state, and their bytes."""

    def __init__(self, state: State):
        self.state = state
        self.database = state.catalogue()
        self.read_contents: set[int] = set()

    def note(self, line: str) -> None:
        self.state.damage[line] = None

    def rows(self, what: str, query: str, *values: int) -> list[tuple]:
        """What a query finds; nothing, and a note, where the catalogue cannot be read."""
        try:
            return self.database.execute(query, values).fetchall()
        except sqlite3.Error as error:
            self.note(f"{what}: the catalogue is damaged: {error}")
            return []

    def entries(self) -> Iterator[tuple[bytes, Inode]]:
        """All below `moments` and `albums`, these included, a directory before what lies in it, by name."""
        # By the tables alone: an index may be damaged where they are not.
        query = (
            "SELECT name, i.ino, mode, nlink, size, content, day, flags, mtime, mtime_ns, rdev "
            "FROM dentry AS d NOT INDEXED LEFT JOIN inode AS i ON i.ino = d.ino WHERE d.parent = ?")
        pending, seen = [(b"", 1)], {1}
        while pending:
            path, directory = pending.pop()
            below = []
            for name, *columns in sorted(self.rows(text(path) or "/", query, directory)):
                shown = path + b"/" + name if path else name
                if not is_name(name):
                    self.note(f"{text(path)}: a name is impossible")
                elif columns[0] is None:
                    self.note(f"{text(shown)}: there is no such inode")
                elif path or name in (b"moments", b"albums"):
                    below.append((shown, Inode(*columns)))
            for shown, inode in below:
                if inode.day != 0 and inode.size == 0 and inode.flags & 1 == 0:
                    continue  # a day that nobody made, and in which nothing lies any more
                if stat.S_ISDIR(inode.mode):
                    if inode.ino in seen:
                        self.note(f"{text(shown)}: a directory has two names")
                        continue
                    seen.add(inode.ino)
                yield shown, inode
            pending += [(shown, inode.ino) for shown, inode in reversed(below) if inode.ino in seen]

    def target(self, path: bytes, inode: Inode) -> bytes:
        for (target,) in self.rows(text(path), "SELECT target FROM symlink WHERE ino = ?", inode.ino):
            return target
        self.note(f"{text(path)}: the link has no target")
        return b"?"

    def attributes(self, path: bytes, inode: Inode) -> list[tuple[bytes, bytes]]:
        return self.rows(text(path), "SELECT name, value FROM xattr WHERE ino = ?", inode.ino)

    def pieces(self, content: int, role: int, what: str) -> Iterator[tuple[int, bytes]]:
        """The stored pieces of a content by offset. Those that do not open are noted, and left out."""
        self.read_contents.add(content)
        end = 0
        query = "SELECT offset, length, sector, generation, epoch FROM extent WHERE content = ? ORDER BY offset"
        for offset, length, sector, generation, epoch in self.rows(what, query, content):
            is_sound = end <= offset <= 1 << 60 and 1 <= length <= LOST_BYTES_MAX and 0 <= sector < NUMBER_MAX and (
                length <= CHUNK_BYTES or offset % CHUNK_BYTES == 0)
            end = offset + length
            if not is_sound:
                self.note(f"{what}: the run at {offset} is impossible")
            elif sector >= LOST_SECTOR:
                self.note(f"{what}: {length} bytes from {offset} on were lost before")
            else:
                run = Descriptor(role, 0, source(content), offset, unsigned(generation), unsigned(epoch))
                yield from self.chunks(run, length, sector, what)

    def chunks(self, run: Descriptor, length: int, sector: int, what: str) -> Iterator[tuple[int, bytes]]:
        for start in range(0, length, CHUNK_BYTES):
            expected = run._replace(offset=run.offset + start, length=min(length - start, CHUNK_BYTES))
            try:
                found, data = self.state.space.open_extent(sector + start // CHUNK_BYTES * CHUNK_SECTORS)
                if found != expected:
                    raise Damaged("another extent lies in its place")
                yield expected.offset, data
            except Damaged as error:
                self.note(f"{what}: {expected.length} bytes from {expected.offset} on: {error}")

    def file_pieces(self, path: bytes, inode: Inode) -> Iterator[tuple[int, bytes]]:
        for offset, data in self.pieces(inode.content, CONTENT, text(path)):
            if offset + len(data) > inode.size:
                self.note(f"{text(path)}: there are bytes behind its end")
                data = data[: max(inode.size - offset, 0)]
            yield offset, data

# Commands


def text(path: bytes) -> str:
    """A path on one line: backslash, and bytes below a space, as \\xHH."""
    characters = path.decode("utf-8", "surrogateescape")
    return "".join(f"\\x{ord(c):02x}" if c in "\\\x7f" or c < " " else c for c in characters)


def sum_of(tree: Tree, path: bytes, inode: Inode) -> str:
    """SHA-256 of a file's bytes; `damaged` where some do not open."""
    result, position, zeros = hashlib.sha256(), 0, bytes(1 << 20)
    known = len(tree.state.damage)
    for offset, data in itertools.chain(tree.file_pieces(path, inode), [(inode.size, b"")]):
        while position < offset:
            count = min(offset - position, len(zeros))
            result.update(zeros[:count])
            position += count
        result.update(data)
        position += len(data)
    return "damaged" if len(tree.state.damage) > known else result.hexdigest()


def list_vault(tree: Tree) -> None:
    """Prints path, type (as of find(1)), mode, links, size, time of modification and SHA-256, between tabs. A link has
    its target in the sum's place, a directory no size, and nothing but a file a sum."""
    for path, inode in sorted(tree.entries()):
        size, last = str(inode.size), "-"
        if stat.S_ISREG(inode.mode):
            last = sum_of(tree, path, inode)
        elif stat.S_ISLNK(inode.mode):
            last = text(tree.target(path, inode))
        elif stat.S_ISDIR(inode.mode):
            size = "-"
        kind = TYPES.get(stat.S_IFMT(inode.mode), "?")
        time = f"{inode.mtime}.{inode.mtime_ns:09}"
        line = (text(path), kind, f"{inode.mode & 0o7777:o}", str(inode.links), size, time, last)
        sys.stdout.buffer.write("\t".join(line).encode("utf-8", "surrogateescape") + b"\n")


TYPES = {
    stat.S_IFREG: "f", stat.S_IFDIR: "d", stat.S_IFLNK: "l", stat.S_IFIFO: "p", stat.S_IFSOCK: "s", stat.S_IFCHR: "c",
    stat.S_IFBLK: "b"}


def extract(tree: Tree, directory: str) -> None:
    """Writes all out: names of one file as hard links, holes as holes. What does not open is left out of a file."""
    os.mkdir(directory, 0o700)
    root = os.fsencode(directory)
    first: dict[int, bytes] = {}
    made: list[tuple[bytes, Inode]] = []
    for path, inode in tree.entries():
        target = os.path.join(root, path)
        if inode.ino in first and not stat.S_ISDIR(inode.mode):
            os.link(first[inode.ino], target, follow_symlinks=False)
            continue
        try:
            make(tree, path, inode, target)
        except PermissionError as error:
            tree.note(f"{text(path)} was left out: {error.strerror}")
            continue
        first[inode.ino] = target
        for name, value in tree.attributes(path, inode):
            try:
                os.setxattr(target, name, value, follow_symlinks=False)
            except OSError as error:
                tree.note(f"{text(path)}: its attribute {text(name)} was left out: {error.strerror}")
        made.append((target, inode))
    # At the end, as what is put into a directory changes its time, and may not be put into one that is read-only.
    for target, inode in reversed(made):
        if not stat.S_ISLNK(inode.mode):
            os.chmod(target, stat.S_IMODE(inode.mode))
        time = inode.mtime * 1_000_000_000 + inode.mtime_ns
        os.utime(target, ns=(time, time), follow_symlinks=False)


def make(tree: Tree, path: bytes, inode: Inode, target: bytes) -> None:
    """Makes a file, which must not be there yet."""
    if stat.S_ISDIR(inode.mode):
        os.mkdir(target, 0o700)
    elif stat.S_ISLNK(inode.mode):
        os.symlink(tree.target(path, inode), target)
    elif stat.S_ISREG(inode.mode):
        with open(target, "xb", buffering=0) as file:
            file.truncate(inode.size)
            for offset, data in tree.file_pieces(path, inode):
                os.pwrite(file.fileno(), data, offset)
    else:
        os.mknod(target, stat.S_IFMT(inode.mode) | 0o600, unsigned(inode.rdev))


def read(arguments: argparse.Namespace) -> int:
    header = read_header(arguments.vault)
    password = sys.stdin.buffer.readline().removesuffix(b"\n")
    key_file = None
    if arguments.key_file:
        with open(arguments.key_file, "rb") as file:
            key_file = file.read()
    index, key = unlock(header, password, key_file)
    state = Space(arguments.vault, header, index, key).newest_state()
    try:
        tree = Tree(state)
        if arguments.command == "list":
            list_vault(tree)
        else:
            extract(tree, arguments.directory)
        verify_rest(tree)
    except EmptySpace:
        if arguments.command == "extract":
            os.mkdir(arguments.directory)
    except (sqlite3.Error, TypeError, ValueError, OverflowError) as error:
        state.damage[f"the catalogue is damaged: {error}"] = None
    verify_state(state)
    for line in state.damage:
        print(f"read_vault: {line}", file=sys.stderr)
    return 1 if state.damage else 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Lists or extracts a vault. The password is read from standard input.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("list", "extract"):
        command = commands.add_parser(name)
        command.add_argument("vault")
        if name == "extract":
            command.add_argument("directory", help="is made; it must not be there yet")
        command.add_argument("--key-file")
    try:
        return read(parser.parse_args())
    except WrongPassword as error:
        print(f"read_vault: {error}", file=sys.stderr)
        return 2
    except (Damaged, UnknownVersion, OSError) as error:
        print(f"read_vault: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
