"""The way from a password to the state of a space: header, root, maps, catalogue. See Format.md.

A page is opened in both copies. What does not open becomes a line of `State.damage`; what nothing can be read without
throws `Damaged`.
"""

import os
import sqlite3
from typing import Iterator

import nacl.bindings

from vault_format import (
    CATALOGUE, CHUNK_SECTORS, DELTA_ROLE, DURABLE_SLOTS, FANOUT, NODE_ROLE, PAGE_BYTES, PAGE_PLAIN_BYTES, ROOT_ROLE,
    SECTOR_BYTES, SLOT_BITMAP, SOFT_SLOTS, USAGE, Damaged, Delta, Descriptor, Header, Kind, Reference, Root,
    UnknownVersion, blake2b, boot_mark, decode_delta, decode_header, decode_node, decode_root, derive, open_extent,
    open_page, open_slot, sectors_of)


CATALOGUE_VERSION = 5  # the newest that is known here; what is read here is the same in all up to it


class WrongPassword(Exception):
    """No space opens."""


class EmptySpace(Exception):
    """Nobody has written to the space yet."""


# The header


def read_header(vault: str) -> Header:
    """The first valid copy."""
    with open(os.path.join(vault, "obscura.vault"), "rb") as file:
        data = file.read()
    unknown = None
    for start in (0, 65_536):
        try:
            return decode_header(data[start : start + 4096])
        except UnknownVersion as error:
            unknown = unknown or error
        except Damaged:
            pass
    raise unknown or Damaged("both copies of the header are damaged, or this is no vault")


def stretch(header: Header, password: bytes, key_file: bytes | None) -> bytes:
    if key_file is not None:
        password = blake2b(password, derive(blake2b(key_file), "obscura 1 key file"))
    return nacl.bindings.crypto_pwhash_alg(
        32, password, header.salt, header.passes, header.memory, nacl.bindings.crypto_pwhash_ALG_ARGON2ID13)


def unlock(header: Header, password: bytes, key_file: bytes | None) -> tuple[int, bytes]:
    """Number and key of the space that the password opens."""
    stretched = stretch(header, password, key_file)
    keys = [open_slot(slot, index, stretched, header.clear) for index, slot in enumerate(header.slots)]
    for index, key in enumerate(keys):
        if key is not None:
            return index, key
    raise WrongPassword("no space opens with this password")


# Segments


def segment_place(header: Header, space: int, segment: int) -> tuple[str, int]:
    """File, within the vault, and offset at which a segment begins. Nothing else knows where segments are."""
    spaces = len(header.slots)
    if spaces == 1:
        return f"segments/{segment:06}.seg", 0
    return "spaces", (segment * spaces + space) * header.segment_bytes


class Segments:
    """The sectors of a space, numbered through."""

    def __init__(self, vault: str, header: Header, space: int):
        self.vault, self.header, self.space, self.segment_bytes = vault, header, space, header.segment_bytes
        self.sectors = self.segment_bytes // SECTOR_BYTES
        self.descriptors: dict[str, int] = {}

    def read(self, sector: int, count: int) -> bytes:
        """As many bytes as are there; none where they would lie in two segments, or there is no file."""
        segment, sector = divmod(sector, self.sectors)
        if segment >= 1 << 22 or sector * SECTOR_BYTES + count > self.segment_bytes:
            return b""
        path, start = segment_place(self.header, self.space, segment)
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


# A space


class Space:
    def __init__(self, vault: str, header: Header, index: int, key: bytes):
        self.segments = Segments(vault, header, index)
        self.slots_per_pair = header.segment_bytes // PAGE_BYTES
        self.content, self.descriptor, self.page, self.boot = (
            derive(key, "obscura 1 " + name) for name in ("content", "descriptor", "page", "boot"))

    def open_extent(self, sector: int, limit: int = CHUNK_SECTORS) -> tuple[Descriptor, bytes]:
        """The extent that begins there and takes `limit` sectors at most, by its own descriptor."""
        try:
            found, content = open_extent(self.read_extent(sector), self.descriptor, self.content)
        except Damaged as error:
            raise Damaged(f"the extent in sector {sector}: {error}") from None
        if sectors_of(found.length) > limit:
            raise Damaged(f"the extent in sector {sector} is longer than what was written there")
        return found, content

    def read_extent(self, sector: int) -> bytes:
        """As many bytes as the longest extent takes, or up to the segment's end."""
        left = self.segments.segment_bytes - sector % self.segments.sectors * SECTOR_BYTES
        return self.segments.read(sector, min(CHUNK_SECTORS * SECTOR_BYTES, left))

    def open_copy(
        self, kind: Kind, slot: int, copy: int, pairs: list[tuple[int, int]], tag: bytes | None
    ) -> bytes | None:
        pair, place = divmod(slot, self.slots_per_pair)
        if pair >= len(pairs):
            return None
        sector = pairs[pair][copy] * self.segments.sectors + place * (PAGE_BYTES // SECTOR_BYTES)
        sealed = self.segments.read(sector, PAGE_BYTES)
        return open_page(sealed, self.page, kind, copy, tag)

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
                state.damage = dict.fromkeys(passed_over) | state.damage
                state.ring = {} if soft else ring
                return state
            except Damaged as error:
                passed_over.append(f"durable root {root.generation} is passed over: {error}")
        raise Damaged("; ".join(passed_over) or "the space has no root")

    def boot_mark(self) -> bytes | None:
        try:
            with open("/proc/sys/kernel/random/boot_id", "rb") as file:
                return boot_mark(file.read(64), self.boot)
        except OSError:
            return None


class State:
    """What one root leads to."""

    def __init__(self, space: Space, root: Root):
        self.space, self.root = space, root
        self.damage: dict[str, None] = {}  # lines, in order
        self.ring: dict[int, list[Root | None]] = {}  # without a soft root, which tells of a crash

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
        if self.space.slots_per_pair * len(self.root.pairs) > 1 << 26:
            raise Damaged("there are too many pairs of segments")
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

    def catalogue(self) -> sqlite3.Connection:
        """The database, in memory alone."""
        if self.root.objects[CATALOGUE].pages == 0:
            raise EmptySpace
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
        version, needed = (
            database.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id"))
        if version > CATALOGUE_VERSION:
            raise UnknownVersion("catalogue version", version, (needed >> 16 & 0xFFFF, needed & 0xFFFF))
        if version < 1:
            raise Damaged("the catalogue is empty, or of no version")
        return database
