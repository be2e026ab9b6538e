#!/usr/bin/python3
"""Lists and extracts a vault of Obscura: an independent reader, written from the format's specification
(Sources/VaultFormat/VaultFormat.docc/Format.md) alone. It shares nothing with the program and writes to no vault.

    read_vault.py list VAULT [--key-file F]                  one line a file: path, type, mode, links, size, mtime, sum
    read_vault.py extract VAULT DIRECTORY [--key-file F]     writes `moments` and `albums` into a new directory

The password is the first line of standard input. Every seal of the newest state is verified, those of thumbnails and
identity records too. Exit status: 0 all is whole, 1 something is damaged or could not be written (a line each on
standard error), 2 no space opens with this password.

Needs PyNaCl (Debian: python3-nacl) and Python 3.11, which opens a database that is nowhere but in memory.
"""

import argparse
import hashlib
import itertools
import os
import sqlite3
import stat
import sys
from dataclasses import dataclass
from typing import Iterator, NamedTuple

import nacl.bindings
import nacl.exceptions

VERSION = 1
SECTOR_BYTES = 512
PAGE_BYTES, PAGE_PLAIN_BYTES = 4096, 4056
NONCE_BYTES, TAG_BYTES = 24, 16
CHUNK_BYTES, CHUNK_SECTORS = 131_072, 257
EXTENT_HEADER_BYTES, EXTENT_OVERHEAD_BYTES = 80, 96
NUMBER_MAX = 1 << 62
LOST_SECTOR = 1 << 61
LOST_BYTES_MAX = 1 << 40
FANOUT = 112
ABSENT = 0xFFFF_FFFF

CONTENT, THUMBNAIL, IDENTITY = 1, 2, 3  # roles of extents
CATALOGUE, SECTOR_BITMAP, SLOT_BITMAP, USAGE = range(4)  # objects; their pages' role is 17 more
NODE_ROLE, DELTA_ROLE, ROOT_ROLE = 21, 22, 23
DURABLE_SLOTS, SOFT_SLOTS = range(0, 4), range(4, 12)


class Damaged(Exception):
    """Bytes that are not what the format says."""


class WrongPassword(Exception):
    """No space opens."""


# Primitives


def number(data: bytes, offset: int, size: int) -> int:
    return int.from_bytes(data[offset : offset + size], "little")


def unsigned(value: int) -> int:
    """A number of 64 bits, which SQLite keeps as a signed one."""
    return value & 0xFFFF_FFFF_FFFF_FFFF


def blake2b(data: bytes, key: bytes = b"") -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=32).digest()


def derive(key: bytes, name: str) -> bytes:
    return blake2b(name.encode("ascii"), key)


def unseal(key: bytes, nonce: bytes, sealed: bytes, associated: bytes) -> bytes | None:
    """The plaintext of a ciphertext and its tag; None where they do not open."""
    try:
        return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(sealed, associated, nonce, key)
    except (nacl.exceptions.CryptoError, ValueError):
        return None


# The header


@dataclass(frozen=True)
class Header:
    clear: bytes
    spaces: int
    segment_bytes: int
    memory: int
    passes: int
    salt: bytes
    slots: list[bytes]


def decode_header(copy: bytes) -> Header:
    if len(copy) != 4096 or copy[:8] != b"OBSCURA\n" or blake2b(copy[:4064]) != copy[4064:]:
        raise Damaged("the header is damaged, or this is no vault")
    if number(copy, 8, 2) != VERSION:
        raise NotImplementedError(f"the vault is of format version {number(copy, 8, 2)}, which is not known here")
    header = Header(
        clear=copy[:64], spaces=copy[10], segment_bytes=number(copy, 16, 8), memory=number(copy, 24, 8),
        passes=number(copy, 32, 4), salt=copy[40:56],
        slots=[copy[start : start + 128] for start in range(64, 64 + 128 * copy[10], 128)])
    size = header.segment_bytes
    if not (1 <= header.spaces <= 8 and 1 << 19 <= size <= 1 << 32 and size & (size - 1) == 0
            and 8 << 20 <= header.memory <= 448 << 20 and 1 <= header.passes <= 64):
        raise Damaged("a number of the header is out of range")
    return header


def read_header(vault: str) -> Header:
    """The first valid copy."""
    with open(os.path.join(vault, "obscura.vault"), "rb") as file:
        data = file.read()
    unknown = None
    for start in (0, 65_536):
        try:
            return decode_header(data[start : start + 4096])
        except NotImplementedError as error:
            unknown = unknown or error
        except Damaged:
            pass
    raise unknown or Damaged("both copies of the header are damaged, or this is no vault")


def open_slot(slot: bytes, index: int, stretched: bytes, clear: bytes) -> bytes | None:
    """The space key; None where the slot is another password's, or nobody's."""
    nonce, commitment = slot[:24], slot[24:56]
    plain = unseal(derive(stretched, "obscura 1 slot"), nonce, slot[56:], clear + bytes([index]))
    if commitment != blake2b(bytes([index]) + nonce, derive(stretched, "obscura 1 commitment")):
        return None
    return plain[:32] if plain is not None and plain[32] == index else None


def unlock(header: Header, password: bytes, key_file: bytes | None) -> tuple[int, bytes]:
    """Number and key of the space that the password opens."""
    if key_file is not None:
        password = blake2b(password, derive(blake2b(key_file), "obscura 1 key file"))
    stretched = nacl.bindings.crypto_pwhash_alg(
        32, password, header.salt, header.passes, header.memory, nacl.bindings.crypto_pwhash_ALG_ARGON2ID13)
    keys = [open_slot(slot, index, stretched, header.clear) for index, slot in enumerate(header.slots)]
    for index, key in enumerate(keys):
        if key is not None:
            return index, key
    raise WrongPassword("no space opens with this password")


# Segments


def segment_place(space: int, segment: int) -> tuple[str, int]:
    """File, within the vault, and offset at which a segment begins."""
    return f"spaces/{space}/{segment:06}.seg", 0


class Segments:
    """The sectors of a space, numbered through."""

    def __init__(self, vault: str, space: int, segment_bytes: int):
        self.vault, self.space, self.segment_bytes = vault, space, segment_bytes
        self.sectors = segment_bytes // SECTOR_BYTES
        self.descriptors: dict[str, int] = {}

    def read(self, sector: int, count: int) -> bytes:
        """As many bytes as are there; none where they would lie in two segments, or there is no file."""
        segment, sector = divmod(sector, self.sectors)
        if segment >= 1 << 22 or sector * SECTOR_BYTES + count > self.segment_bytes:
            return b""
        path, start = segment_place(self.space, segment)
        try:
            return os.pread(self.descriptor(path), count, start + sector * SECTOR_BYTES)
        except OSError:
            return b""

    def descriptor(self, path: str) -> int:
        if path not in self.descriptors:
            if len(self.descriptors) >= 256:
                os.close(self.descriptors.pop(next(iter(self.descriptors))))
            self.descriptors[path] = os.open(os.path.join(self.vault, path), os.O_RDONLY)
        return self.descriptors[path]


# Extents


class Descriptor(NamedTuple):
    role: int
    length: int
    content: int
    offset: int
    generation: int
    epoch: int


def decode_descriptor(plain: bytes) -> Descriptor:
    found = Descriptor(number(plain, 0, 4), number(plain, 4, 4), *(number(plain, at, 8) for at in range(8, 40, 8)))
    if not (len(plain) == 40 and found.role in (CONTENT, THUMBNAIL, IDENTITY) and 1 <= found.length <= CHUNK_BYTES
            and found.content < 2 * NUMBER_MAX and found.offset <= NUMBER_MAX and found.generation <= NUMBER_MAX):
        raise Damaged("the descriptor of an extent is impossible")
    return found


# Pages


class Reference(NamedTuple):
    """Where a page lies, and the tags of its copies."""
    slot: int
    tags: tuple[bytes, bytes]


def decode_reference(data: bytes, at: int) -> Reference | None:
    slot = number(data, at, 4)
    return None if slot == ABSENT else Reference(slot, (data[at + 4 : at + 20], data[at + 20 : at + 36]))


def decode_node(plain: bytes) -> list[Reference | None]:
    return [decode_reference(plain, 36 * place) for place in range(FANOUT)]


class Kind(NamedTuple):
    """What a page is: its associated data says so."""
    role: int
    object: int
    level: int
    index: int

    def associated(self, copy: int) -> bytes:
        head = bytes([VERSION, 0, self.role, copy, self.object, self.level, 0, 0])
        return head + self.index.to_bytes(4, "little")

    def __str__(self) -> str:
        objects = ("the catalogue", "the sector bitmap", "the slot bitmap", "the usage counts")
        if self.role == NODE_ROLE:
            return f"node {self.index} of level {self.level} of the map of {objects[self.object]}"
        if self.role in (DELTA_ROLE, ROOT_ROLE):
            return f"the {'delta' if self.role == DELTA_ROLE else 'root'} in slot {self.index}"
        return f"page {self.index} of {objects[self.object]}"


class MapRoot(NamedTuple):
    pages: int
    levels: int
    reference: Reference | None


@dataclass(frozen=True)
class Root:
    generation: int
    is_durable: bool
    epoch: int
    boot: bytes
    base: int
    released: int
    objects: list[MapRoot]
    delta: Reference | None
    pairs: list[tuple[int, int]]


def decode_root(plain: bytes) -> Root:
    count = number(plain, 72, 4)
    if plain[8] not in (1, 2) or not 1 <= count <= (PAGE_PLAIN_BYTES - 320) // 8:
        raise Damaged("a root is impossible")
    root = Root(
        generation=number(plain, 0, 8), is_durable=plain[8] == 1, epoch=number(plain, 16, 8), boot=plain[24:56],
        base=number(plain, 56, 8), released=number(plain, 64, 8),
        objects=[
            MapRoot(number(plain, at, 4), number(plain, at + 4, 4), decode_reference(plain, at + 8))
            for at in range(80, 272, 48)],
        delta=decode_reference(plain, 272),
        pairs=[(number(plain, at, 4), number(plain, at + 4, 4)) for at in range(320, 320 + 8 * count, 8)])
    segments = [segment for pair in root.pairs for segment in pair]
    if not (root.generation <= NUMBER_MAX and root.base <= root.generation and root.released <= root.generation
            and root.pairs[0] == (0, 1) and len(set(segments)) == len(segments) and max(segments) < 1 << 22
            and all(map.levels <= 4 and map.pages <= FANOUT**4 for map in root.objects)
            and all(map.levels > 0 or map.reference is None for map in root.objects)
            and root.objects[USAGE].pages <= (1 << 22) // 1000 + 1):
        raise Damaged("a root is impossible")
    return root


class Delta(NamedTuple):
    generation: int
    previous: Reference | None
    entries: list[tuple[int, int, int]]  # kind, count, first sector or slot


def decode_delta(plain: bytes, segment_sectors: int, slots: int) -> Delta:
    count = number(plain, 8, 4)
    if count > (PAGE_PLAIN_BYTES - 56) // 16:
        raise Damaged("a delta is impossible")
    entries = [
        (plain[at], number(plain, at + 4, 4), number(plain, at + 8, 8)) for at in range(56, 56 + 16 * count, 16)]
    for kind, amount, first in entries:
        is_sound = amount > 0 and first < segment_sectors << 22 and (
            kind in (1, 2) and first % segment_sectors + amount <= segment_sectors
            or kind == 3 and first + amount <= slots)
        if not is_sound:
            raise Damaged("a delta is impossible")
    return Delta(number(plain, 0, 8), decode_reference(plain, 16), entries)


# A space


class Space:
    def __init__(self, vault: str, header: Header, index: int, key: bytes):
        self.segments = Segments(vault, index, header.segment_bytes)
        self.slots_per_pair = header.segment_bytes // PAGE_BYTES
        self.content, self.descriptor, self.page, self.boot = (
            derive(key, "obscura 1 " + name) for name in ("content", "descriptor", "page", "boot"))

    def open_extent(self, sector: int, limit: int = CHUNK_SECTORS) -> tuple[Descriptor, bytes]:
        """The extent that begins there and takes `limit` sectors at most, by its own descriptor."""
        head = self.segments.read(sector, EXTENT_HEADER_BYTES)
        plain = unseal(self.descriptor, head[:24], head[24:80], bytes([VERSION, 0]))
        if plain is None:
            raise Damaged(f"the descriptor in sector {sector} does not open")
        found = decode_descriptor(plain)
        sealed = self.segments.read(sector, EXTENT_OVERHEAD_BYTES + found.length)[EXTENT_HEADER_BYTES:]
        content = unseal(self.content, head[:24], sealed, bytes([VERSION, 0]) + plain)
        if content is None or sectors_of(found.length) > limit:
            raise Damaged(f"the extent in sector {sector} does not open")
        return found, content

    def open_copy(self, kind: Kind, slot: int, copy: int, pairs: list[tuple[int, int]], tag: bytes | None) -> bytes | None:
        pair, place = divmod(slot, self.slots_per_pair)
        if pair >= len(pairs):
            return None
        sector = pairs[pair][copy] * self.segments.sectors + place * (PAGE_BYTES // SECTOR_BYTES)
        sealed = self.segments.read(sector, PAGE_BYTES)
        if tag is not None and sealed[-TAG_BYTES:] != tag:
            return None
        return unseal(self.page, sealed[:24], sealed[24:], kind.associated(copy))

    def roots(self) -> dict[int, list[Root | None]]:
        """What both copies of every slot say, where one says anything."""
        found = {}
        for slot in (*DURABLE_SLOTS, *SOFT_SLOTS):
            copies: list[Root | None] = []
            for copy in (0, 1):
                plain = self.open_copy(Kind(ROOT_ROLE, 0, 0, slot), slot, copy, [(0, 1)], None)
                try:
                    copies.append(decode_root(plain) if plain is not None else None)
                except Damaged:
                    copies.append(None)
            if any(copies):
                found[slot] = copies
        return found

    def newest_state(self) -> "State":
        """The state of the root that counts."""
        ring = self.roots()
        newest = [max((root for root in copies if root), key=lambda root: root.generation) for copies in ring.values()]
        durable = sorted((root for root in newest if root.is_durable), key=lambda root: -root.generation)
        soft = max((root for root in newest if not root.is_durable), key=lambda root: root.generation, default=None)
        passed_over = []
        base = next((root for root in durable if soft and root.generation == soft.base), None)
        if soft and base and soft.generation > durable[0].generation and soft.boot == self.boot_mark():
            try:
                state = State(self, soft)
                state.load()
                state.open_all_since(base)
                return state
            except Damaged as error:
                passed_over.append(f"soft root {soft.generation} is passed over: {error}")
        for root in durable:
            try:
                state = State(self, root)
                state.load()
                state.damage = dict.fromkeys(passed_over + self.damaged_roots(ring, soft)) | state.damage
                return state
            except Damaged as error:
                passed_over.append(f"durable root {root.generation} is passed over: {error}")
        raise Damaged("; ".join(passed_over) or "the space has no root")

    def boot_mark(self) -> bytes | None:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as file:
                return blake2b(file.read(64).ljust(64, b"\0"), self.boot)
        except OSError:
            return None

    def damaged_roots(self, ring: dict[int, list[Root | None]], soft: Root | None) -> list[str]:
        """Copies of durable roots that are lost. After a crash one may be torn, and a soft root tells of a crash."""
        if soft:
            return []
        newest = max(root.generation for copies in ring.values() for root in copies if root)
        lines = []
        for slot in DURABLE_SLOTS:
            copies = ring.get(slot, [None, None])
            best = max((root.generation for root in copies if root), default=0)
            if best == newest and all(copies):
                continue  # perhaps half written
            for name, root in zip("AB", copies):
                if not root or root.generation != best:
                    lines.append(f"copy {name} of the root in slot {slot} does not open")
        return lines


def sectors_of(length: int) -> int:
    return (length + EXTENT_OVERHEAD_BYTES + SECTOR_BYTES - 1) // SECTOR_BYTES


class State:
    """What one root leads to."""

    def __init__(self, space: Space, root: Root):
        self.space, self.root = space, root
        self.damage: dict[str, None] = {}  # lines, in order

    def open_page(self, kind: Kind, reference: Reference) -> bytes:
        """Opens both copies, and notes one that does not open."""
        copies = [
            self.space.open_copy(kind, reference.slot, copy, self.root.pairs, reference.tags[copy]) for copy in (0, 1)]
        for copy, plain in enumerate(copies):
            if plain is None:
                self.damage[f"copy {'AB'[copy]} of {kind} does not open"] = None
        for plain in copies:
            if plain is not None:
                return plain
        raise Damaged(f"neither copy of {kind} opens")

    def walk(self, object: int, is_strict: bool = False) -> Iterator[tuple[Kind, Reference]]:
        """All nodes and pages of an object. A node that does not open leads to nothing and is noted, or thrown."""
        pages, levels, top = self.root.objects[object]
        pending = [(Kind(NODE_ROLE, object, levels - 1, 0), top)] if top else []
        while pending:
            kind, reference = pending.pop()
            yield kind, reference
            if kind.role != NODE_ROLE:
                continue
            try:
                below = decode_node(self.open_page(kind, reference))
            except Damaged as error:
                if is_strict:
                    raise
                self.damage[str(error)] = None
                continue
            for place, reference in enumerate(below):
                index = kind.index * FANOUT + place
                if reference and kind.level > 0:
                    pending.append((Kind(NODE_ROLE, object, kind.level - 1, index), reference))
                elif reference and index < pages:
                    pending.append((Kind(17 + object, object, 0, index), reference))

    def load(self) -> None:
        """Opens what a root must lead to in order to count: the slot bitmap and the counts of use."""
        for object in (SLOT_BITMAP, USAGE):
            for kind, reference in self.walk(object, is_strict=True):
                if kind.role != NODE_ROLE:
                    self.open_page(kind, reference)

    def open_delta(self, reference: Reference) -> Delta:
        plain = self.open_page(Kind(DELTA_ROLE, 0, 0, reference.slot), reference)
        return decode_delta(plain, self.space.segments.sectors, self.space.slots_per_pair * len(self.root.pairs))

    def open_all_since(self, base: Root) -> None:
        """Opens every extent, page, node and delta that was written since the root `base`, or throws."""
        reference, seen = self.root.delta, set()
        while reference and reference.slot not in seen:
            seen.add(reference.slot)
            delta = self.open_delta(reference)
            if delta.generation <= base.generation:
                break
            for kind, count, sector in delta.entries:
                end = sector + count
                while kind == 1 and sector < end:
                    sector += sectors_of(self.space.open_extent(sector, end - sector)[0].length)
            reference = delta.previous
        before = State(self.space, base)
        for object in range(4):
            known = set(before.walk(object))
            for kind, reference in self.walk(object, is_strict=True):
                if (kind, reference) not in known:
                    self.open_page(kind, reference)

    def verify_pages(self) -> None:
        """Opens what `load` and `catalogue` do not: the sector bitmap, and the deltas after `released`."""
        for kind, reference in self.walk(SECTOR_BITMAP):
            try:
                self.open_page(kind, reference)
            except Damaged as error:
                self.damage[str(error)] = None
        reference, given_back = self.root.delta, set()
        while reference:
            before = dict(self.damage)
            try:
                delta = self.open_delta(reference)
            except Damaged as error:
                self.damage[str(error)] = None
                delta = None
            is_over = delta.generation <= self.root.released if delta else (
                reference.slot in given_back or not self.is_used(reference.slot))
            if is_over:
                self.damage = before  # Its slot may be another page's by now.
            if is_over or not delta:
                return
            for kind, count, first in delta.entries:
                given_back.update(range(first, first + count) if kind == 3 else ())
            given_back.add(reference.slot)  # It cannot come again.
            reference = delta.previous

    def is_used(self, slot: int) -> bool:
        page, bit = divmod(slot, 16_384)
        for kind, reference in self.walk(SLOT_BITMAP):
            if kind.role != NODE_ROLE and kind.index == page:
                return bool(self.open_page(kind, reference)[bit // 8] >> bit % 8 & 1)
        return False

    def catalogue(self) -> sqlite3.Connection:
        """The database, in memory alone."""
        image = bytearray(PAGE_BYTES * self.root.objects[CATALOGUE].pages)
        for kind, reference in self.walk(CATALOGUE):
            if kind.role == NODE_ROLE:
                continue
            try:
                start = kind.index * PAGE_BYTES
                image[start : start + PAGE_PLAIN_BYTES] = self.open_page(kind, reference)
            except Damaged as error:
                self.damage[str(error)] = None
        database = sqlite3.connect(":memory:")
        database.deserialize(bytes(image))
        database.execute("PRAGMA trusted_schema=OFF")
        database.execute("PRAGMA cell_size_check=ON")
        if database.execute("PRAGMA user_version").fetchone() != (1,):
            raise Damaged("the catalogue is of a version that is not known here, or empty")
        return database


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

    def entries(self) -> Iterator[tuple[bytes, Inode]]:
        """All below `moments` and `albums`, these included, a directory before what lies in it, by name."""
        query = (
            "SELECT name, i.ino, mode, nlink, size, content, day, flags, mtime, mtime_ns, rdev "
            "FROM dentry AS d LEFT JOIN inode AS i ON i.ino = d.ino WHERE d.parent = ? ORDER BY name")
        pending, seen = [(b"", 1)], {1}
        while pending:
            path, directory = pending.pop()
            below = []
            for name, *columns in self.database.execute(query, (directory,)):
                shown = path + b"/" + name if path else name
                if not 1 <= len(name) <= 255 or b"/" in name or b"\0" in name or name in (b".", b".."):
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

    def target(self, inode: Inode) -> bytes:
        row = self.database.execute("SELECT target FROM symlink WHERE ino = ?", (inode.ino,)).fetchone()
        if row is None:
            raise Damaged("a link has no target")
        return row[0]

    def attributes(self, inode: Inode) -> list[tuple[bytes, bytes]]:
        return self.database.execute("SELECT name, value FROM xattr WHERE ino = ?", (inode.ino,)).fetchall()

    def pieces(self, content: int, role: int, what: str) -> Iterator[tuple[int, bytes]]:
        """The stored pieces of a content by offset. Those that do not open are noted, and left out."""
        self.read_contents.add(content)
        end = 0
        rows = self.database.execute(
            "SELECT offset, length, sector, generation, epoch FROM extent WHERE content = ? ORDER BY offset", (content,))
        for offset, length, sector, generation, epoch in rows:
            is_sound = end <= offset <= 1 << 60 and 1 <= length <= LOST_BYTES_MAX and 0 <= sector < NUMBER_MAX and (
                length <= CHUNK_BYTES or offset % CHUNK_BYTES == 0)
            end = offset + length
            if not is_sound:
                self.note(f"{what}: the run at {offset} is impossible")
            elif sector >= LOST_SECTOR:
                self.note(f"{what}: {length} bytes from {offset} on were lost before")
            else:
                run = Descriptor(role, 0, content, offset, unsigned(generation), unsigned(epoch))
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

    def verify_rest(self) -> None:
        """Opens what no file in `moments` and `albums` has: thumbnails, identity records, what lies in the trash."""
        thumbnails = {row[0] for row in self.database.execute("SELECT content FROM thumbnail WHERE length > 0")}
        for (content,) in self.database.execute("SELECT DISTINCT content FROM extent").fetchall():
            if content not in self.read_contents:
                role, what = (THUMBNAIL, "thumbnail") if content in thumbnails else (CONTENT, "content")
                for _ in self.pieces(content, role, f"{what} {content}"):
                    pass
        for id, length, sector, generation, epoch in self.database.execute("SELECT * FROM identity"):
            run = Descriptor(IDENTITY, 0, id, 0, unsigned(generation), unsigned(epoch))
            for _ in self.chunks(run, length, sector, f"identity record {id}"):
                pass


# Commands


def text(path: bytes) -> str:
    """A path on one line: backslash, and bytes below a space, as \\xHH."""
    return "".join(
        f"\\x{ord(c):02x}" if c == "\\" or c < " " or c == "\x7f" else c for c in path.decode("utf-8", "surrogateescape"))


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
            last = text(tree.target(inode))
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
        first[inode.ino] = target
        try:
            make(tree, path, inode, target)
        except PermissionError as error:
            tree.note(f"{text(path)} was left out: {error.strerror}")
            continue
        for name, value in tree.attributes(inode):
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
        os.symlink(tree.target(inode), target)
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
        tree.verify_rest()
    except sqlite3.Error as error:
        state.damage[f"the catalogue is damaged: {error}"] = None
    state.verify_pages()
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
    except (Damaged, NotImplementedError, OSError) as error:
        print(f"read_vault: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
