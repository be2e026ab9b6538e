"""The structures of a vault, taken apart: pure functions from bytes to values. See Format.md.

All that is wrong with bytes that open throws `Damaged`.
"""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

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
NODE_ROLE, DELTA_ROLE, ROOT_ROLE, CLAIM_ROLE = 21, 22, 23, 24
DURABLE_SLOTS, SOFT_SLOTS, CLAIM_SLOT = range(0, 4), range(4, 12), 12


class Damaged(Exception):
    """Bytes that are not what the format says."""


class UnknownVersion(Exception):
    """A header that is whole, and of another version of the format."""

    def __init__(self, version: int):
        super().__init__(f"the vault is of format version {version}, which is not known here")
        self.version = version


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
        raise UnknownVersion(number(copy, 8, 2))
    header = Header(
        clear=copy[:64], spaces=copy[10], segment_bytes=number(copy, 16, 8), memory=number(copy, 24, 8),
        passes=number(copy, 32, 4), salt=copy[40:56],
        slots=[copy[start : start + 128] for start in range(64, 64 + 128 * copy[10], 128)])
    size = header.segment_bytes
    if not (1 <= header.spaces <= 8 and 1 << 19 <= size <= 1 << 32 and size & (size - 1) == 0
            and 8 << 20 <= header.memory <= 448 << 20 and 1 <= header.passes <= 64):
        raise Damaged("a number of the header is out of range")
    return header


def open_slot(slot: bytes, index: int, stretched: bytes, clear: bytes) -> bytes | None:
    """The space key; None where the slot is another password's, or nobody's."""
    nonce, commitment = slot[:24], slot[24:56]
    plain = unseal(derive(stretched, "obscura 1 slot"), nonce, slot[56:], clear + bytes([index]))
    if commitment != blake2b(bytes([index]) + nonce, derive(stretched, "obscura 1 commitment")):
        return None
    return plain[:32] if plain is not None and plain[32] == index else None


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


def sectors_of(length: int) -> int:
    return (length + EXTENT_OVERHEAD_BYTES + SECTOR_BYTES - 1) // SECTOR_BYTES


def open_extent(data: bytes, descriptor_key: bytes, content_key: bytes) -> tuple[Descriptor, bytes]:
    """What an extent says of itself, and its content. Behind its end there may be more bytes."""
    nonce, version = data[:NONCE_BYTES], bytes([VERSION, 0])
    plain = unseal(descriptor_key, nonce, data[NONCE_BYTES:EXTENT_HEADER_BYTES], version)
    if plain is None:
        raise Damaged("the descriptor does not open")
    found = decode_descriptor(plain)
    sealed = data[EXTENT_HEADER_BYTES : EXTENT_OVERHEAD_BYTES + found.length]
    content = unseal(content_key, nonce, sealed, version + plain)
    if content is None:
        raise Damaged("the content does not open")
    return found, content


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


def open_page(sealed: bytes, key: bytes, kind: Kind, copy: int, tag: bytes | None) -> bytes | None:
    """The plaintext of a copy; None where it is not that page, or not the one of that tag."""
    if len(sealed) != PAGE_BYTES or tag is not None and sealed[-TAG_BYTES:] != tag:
        return None
    return unseal(key, sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], kind.associated(copy))


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
            and number(plain, 312, 8) <= 1 << 45
            and root.pairs[0] == (0, 1) and len(set(segments)) == len(segments) and max(segments) < 1 << 22
            and all(map.levels <= 4 and map.pages <= FANOUT**4 for map in root.objects)
            and all(map.levels > 0 or map.reference is None for map in root.objects)
            and root.objects[USAGE].pages <= (1 << 22) // 1000 + 1):
        raise Damaged("a root is impossible")
    return root


class Claim(NamedTuple):
    """What a mount that writes says of itself. Reading needs none; here for the vectors."""
    owner: bytes
    machine: bytes
    boot: bytes
    namespace: int
    start: int
    process: int


def decode_claim(plain: bytes) -> Claim:
    """Every plaintext is one."""
    return Claim(
        plain[:16], plain[16:48], plain[48:80], number(plain, 80, 8), number(plain, 88, 8), number(plain, 96, 4))


def standing_claim(copies: list[bytes], key: bytes) -> Claim | None:
    """The claim that counts, of both sealed copies; None where nobody writes."""
    for copy, sealed in enumerate(copies):
        plain = open_page(sealed, key, Kind(CLAIM_ROLE, 0, 0, CLAIM_SLOT), copy, None)
        if plain is not None:
            return decode_claim(plain)
    return None


def boot_mark(boot_id: bytes, key: bytes) -> bytes | None:
    """Of a boot, in soft roots and claims, by the boot key; None of one that cannot be told from others."""
    return blake2b(boot_id[:64].ljust(64, b"\0"), key) if boot_id else None


def machine_mark(machine_id: bytes, hostname: bytes, key: bytes) -> bytes | None:
    """Of a computer, in claims, by the claim key; None of one that cannot be told from others."""
    return blake2b(machine_id[:32] + b"\0" + hostname, key) if len(machine_id) >= 32 else None


def is_free(claim: Claim, boot: bytes | None, machine: bytes | None, is_gone: bool) -> bool:
    """Whether a mount of that boot and computer may claim the space in place of this claim, by itself.

    `is_gone`: what it finds where the claim is of its own boot, of the process.
    """
    if boot is not None and claim.boot == boot:
        return is_gone
    # Who cannot tell one boot from another cannot tell who has ended.
    return boot is not None and machine is not None and claim.machine == machine


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


# Identity records


class Fields:
    """Takes a record apart from its beginning."""

    def __init__(self, data: bytes):
        self.data, self.place = data, 0

    def bytes(self, count: int) -> bytes:
        if self.place + count > len(self.data):
            raise Damaged("a record ends too early")
        self.place += count
        return self.data[self.place - count : self.place]

    def number(self, size: int) -> int:
        return int.from_bytes(self.bytes(size), "little")

    def signed(self) -> int:
        return int.from_bytes(self.bytes(8), "little", signed=True)

    def text(self) -> bytes:
        return self.bytes(self.number(4))

    def list(self, element) -> list:
        return [element() for _ in range(self.number(4))]


@dataclass(frozen=True)
class Record:
    """Of kind 1; the names of fields are those of the catalogue's columns."""
    history: tuple[int, int, int]  # epoch, generation, durable generation
    values: dict[str, int]
    photo: dict | None
    trashed: tuple[int, bytes] | None
    target: bytes
    names: list[tuple[int, int, int, bytes]]  # directory, member, since, name
    kept_names: list[tuple[int, int, int, bytes]]  # directory, inode, member, name
    runs: list[tuple[int, ...]] | None
    attributes: list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class RetiredBlock:
    """Of kind 2."""
    history: tuple[int, int, int]
    block: int
    bits: bytes


def decode_record(data: bytes) -> Record | RetiredBlock:
    fields = Fields(data)
    version, kind, _ = fields.number(1), fields.number(1), fields.bytes(6)
    history = (fields.number(8), fields.number(8), fields.number(8))
    if version != 1 or kind not in (1, 2):
        raise Damaged("a record is of an unknown version or kind")
    if kind == 2:
        block = RetiredBlock(history, fields.number(8), fields.text())
        if block.block >= 2 << 40 or len(block.bits) != 256:
            raise Damaged("a record is impossible")
        return block
    sizes = {"ino": 8, "mode": 4, "uid": 4, "gid": 4} | dict.fromkeys(
        ("rdev", "size", "allocated", "content", "version"), 8)
    values = {name: fields.number(size) for name, size in sizes.items()}
    values |= {name: fields.signed() for name in ("day", "flags")}
    for time in ("atime", "mtime", "ctime"):
        values |= {time: fields.signed(), time + "_ns": fields.number(4)}
    record = Record(
        history, values,
        photo=decode_photo(fields) if fields.number(1) else None,
        trashed=(fields.signed(), fields.text()) if fields.number(1) else None,
        target=fields.text(),
        names=fields.list(lambda: (fields.number(8), fields.number(1), fields.signed(), fields.text())),
        kept_names=fields.list(lambda: (fields.number(8), fields.number(8), fields.number(1), fields.text())),
        runs=decode_runs(fields),
        attributes=fields.list(lambda: (fields.text(), fields.text())))
    if not is_sound(record):
        raise Damaged("a record is impossible")
    return record


def decode_runs(fields: Fields) -> list[tuple[int, ...]] | None:
    """None where not all are there."""
    is_whole = fields.number(1)
    runs = fields.list(lambda: tuple(fields.number(8) for _ in range(5)))
    return runs if is_whole else None


def decode_photo(fields: Fields) -> dict:
    photo = {"day": fields.signed()}
    bits = fields.number(1)
    photo |= {"pinned": bits & 1, "undated": bits >> 1 & 1}
    photo |= {
        name: fields.signed()
        for name in ("captured", "captured_ns", "media", "width", "height", "orientation", "fingerprint")}
    photo["fingerprint"] = unsigned(photo["fingerprint"])
    return photo | {"source": fields.text(), "former": fields.text() if fields.number(1) else None}


def is_name(name: bytes) -> bool:
    """Whether it can stand in a directory."""
    return 1 <= len(name) <= 255 and b"/" not in name and b"\0" not in name and name not in (b".", b"..")


def is_sound(record: Record) -> bool:
    values, photo, runs = record.values, record.photo, record.runs or []
    names = [row[3] for row in record.names + record.kept_names]
    names += [record.trashed[1]] if record.trashed else []
    names += [photo["former"]] if photo and photo["former"] is not None else []
    numbers = [values[name] for name in ("ino", "allocated", "content", "version")]
    numbers += [row[0] for row in record.names + record.kept_names] + [row[1] for row in record.kept_names]
    return (
        values["size"] < 1 << 63 and values["mode"] <= 0o177777
        and values["mode"] >> 12 in (1, 2, 4, 6, 8, 10, 12) and 0 <= values["day"] <= 9999_12_31
        and all(values[name] < 1_000_000_000 for name in ("atime_ns", "mtime_ns", "ctime_ns"))
        and all(number < NUMBER_MAX for number in numbers) and all(is_name(name) for name in names)
        and all(is_run(*run[:3]) for run in runs)
        and all(one[0] + one[1] <= next[0] for one, next in zip(runs, runs[1:]))
        and (photo is None or (
            0 <= photo["day"] <= 9999_12_31 and abs(photo["captured"]) <= 1 << 61
            and 0 <= photo["captured_ns"] < 1_000_000_000 and 0 <= photo["width"] <= 1 << 32
            and 0 <= photo["height"] <= 1 << 32 and 1 <= photo["orientation"] <= 8)))


def is_run(offset: int, length: int, sector: int) -> bool:
    """Whether there can be a run of these numbers, of stored bytes or of lost ones."""
    if sector < LOST_SECTOR:
        return 1 <= length <= 1 << 33 and offset <= NUMBER_MAX
    return 1 <= length <= LOST_BYTES_MAX and offset < NUMBER_MAX and sector < NUMBER_MAX and (
        length <= CHUNK_BYTES or offset % CHUNK_BYTES == 0)
