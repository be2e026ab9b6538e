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
SNAPSHOTS = range(1 << 61, 1 << 62)  # ids of contents that have the extents of another
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
    """A structure that is whole, and needs a later reader: it is not damaged."""

    def __init__(self, what: str, version: int, release: tuple[int, int]):
        self.version, self.release = version, "%d.%d" % release
        maker = f"Obscura {self.release}" if any(release) else "a newer Obscura"
        super().__init__(f"made by {maker} ({what} {version}), which is not known here")


class UnknownFeatures(UnknownVersion):
    """A space with features without which it cannot be read."""


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


def release(data: bytes, offset: int) -> tuple[int, int]:
    """The release that a structure of a later version needs; zeros where none is stored."""
    return number(data, offset, 2), number(data, offset + 2, 2)


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
        raise UnknownVersion("vault format version", number(copy, 8, 2), release(copy, 12))
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
    if plain is None or plain[32] != index:
        return None
    if plain[33] != 0:
        raise UnknownVersion("key slot version", plain[33] + 1, release(plain, 36))
    return plain[:32]


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


def source(content: int) -> int:
    """The content for which a content's extents were sealed."""
    return (content - SNAPSHOTS.start) >> 30 if content in SNAPSHOTS else content


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
    features: str  # that a reader must know, that a writer must know, and others


def decode_root(plain: bytes) -> Root:
    # These mean the same in every version; nothing else does.
    if number(plain, 14, 2) != 0:
        raise UnknownVersion("space format version", number(plain, 14, 2) + 1, release(plain, 76))
    features = [number(plain, at, 4) for at in (124, 172, 220)]
    if features[0] != 0:
        raise UnknownFeatures("features", features[0], release(plain, 76))
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
        pairs=[(number(plain, at, 4), number(plain, at + 4, 4)) for at in range(320, 320 + 8 * count, 8)],
        features=" ".join(map(str, features)))
    segments = [segment for pair in root.pairs for segment in pair]
    if not (root.generation <= NUMBER_MAX and root.base <= root.generation and root.released <= root.generation
            and number(plain, 312, 8) <= 1 << 45
            and root.pairs[0] == (0, 1) and len(set(segments)) == len(segments) and max(segments) < 1 << 22
            and all(map.levels <= 4 and map.pages <= FANOUT**4 for map in root.objects)
            and all(map.levels > 0 or map.reference is None for map in root.objects)
            and root.objects[USAGE].pages <= (1 << 22) // 1000 + 1):
        raise Damaged("a root is impossible")
    return root


def boot_mark(boot_id: bytes, key: bytes) -> bytes | None:
    """Of a boot, in soft roots and claims, by the boot key; None of one that cannot be told from others."""
    return blake2b(boot_id[:64].ljust(64, b"\0"), key) if boot_id else None


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


def is_name(name: bytes) -> bool:
    """Whether it can stand in a directory."""
    return 1 <= len(name) <= 255 and b"/" not in name and b"\0" not in name and name not in (b".", b"..")
