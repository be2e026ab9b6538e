"""What a reader that lists and extracts does not need: claims, identity records, and the seals of everything that no
file leads to. See Format.md.
"""

from dataclasses import dataclass
from typing import NamedTuple

from vault_format import (
    CHUNK_BYTES, CLAIM_ROLE, CLAIM_SLOT, CONTENT, DURABLE_SLOTS, IDENTITY, LOST_BYTES_MAX, LOST_SECTOR, NODE_ROLE,
    NUMBER_MAX, SECTOR_BITMAP, SLOT_BITMAP, THUMBNAIL, Damaged, Descriptor, Kind, Root, UnknownVersion, blake2b,
    is_name, number, open_page, release, unsigned)
from vault_space import State


# Claims


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
    if version > 1:
        raise UnknownVersion("identity record version", version, release(data, 4))
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
    photo |= {"source": fields.text(), "former": fields.text() if fields.number(1) else None}
    return photo | {
        "camera": fields.text() or None, "kind": fields.signed(), "rating": fields.signed(),
        "arrived": fields.number(8), "group_id": fields.text() or None}


def is_sound(record: Record) -> bool:
    values, photo, runs = record.values, record.photo, record.runs or []
    names = [row[3] for row in record.names + record.kept_names]
    names += [record.trashed[1]] if record.trashed else []
    names += [photo[name] for name in ("former", "camera") if photo[name] is not None] if photo else []
    numbers = [values[name] for name in ("ino", "allocated", "content", "version")]
    numbers += [photo["arrived"]] if photo else []
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
            and 0 <= photo["height"] <= 1 << 32 and 1 <= photo["orientation"] <= 8
            and 0 <= photo["kind"] <= 4 and 0 <= photo["rating"] <= 5
            and len(photo["group_id"] or b"") <= 255)))


def is_run(offset: int, length: int, sector: int) -> bool:
    """Whether there can be a run of these numbers, of stored bytes or of lost ones."""
    if sector < LOST_SECTOR:
        return 1 <= length <= 1 << 33 and offset <= NUMBER_MAX
    return 1 <= length <= LOST_BYTES_MAX and offset < NUMBER_MAX and sector < NUMBER_MAX and (
        length <= CHUNK_BYTES or offset % CHUNK_BYTES == 0)


# A state


def damaged_roots(ring: dict[int, list[Root | None]]) -> list[str]:
    """Copies of durable roots that are lost. After a crash one may be torn, and a soft root tells of a crash."""
    if not ring:
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


def verify_state(state: State) -> None:
    """Opens what `load` and `catalogue` do not: roots, the sector bitmap, and the deltas after `released`."""
    state.damage |= dict.fromkeys(damaged_roots(state.ring))
    for kind, reference in state.walk(SECTOR_BITMAP):
        try:
            state.open_page(kind, reference)
        except Damaged as error:
            state.damage[str(error)] = None
    reference, given_back = state.root.delta, set()
    while reference:
        before = dict(state.damage)
        try:
            delta = state.open_delta(reference)
        except Damaged as error:
            state.damage[str(error)] = None
            delta = None
        is_over = delta.generation <= state.root.released if delta else (
            reference.slot in given_back or not is_used(state, reference.slot))
        if is_over:
            state.damage = before  # Its slot may be another page's by now.
        if is_over or not delta:
            return
        for kind, count, first in delta.entries:
            given_back.update(range(first, first + count) if kind == 3 else ())
        given_back.add(reference.slot)  # It cannot come again.
        reference = delta.previous


def is_used(state: State, slot: int) -> bool:
    page, bit = divmod(slot, 16_384)
    for kind, reference in state.walk(SLOT_BITMAP):
        if kind.role != NODE_ROLE and kind.index == page:
            return bool(state.open_page(kind, reference)[bit // 8] >> bit % 8 & 1)
    return False


def verify_rest(tree) -> None:
    """Opens what no file in `moments` and `albums` has: thumbnails, identity records, what lies in the trash."""
    thumbnails = {row[0] for row in tree.rows("thumbnails", "SELECT content FROM thumbnail WHERE length > 0")}
    for (content,) in tree.rows("extents", "SELECT DISTINCT content FROM extent NOT INDEXED"):
        if content not in tree.read_contents:
            role, what = (THUMBNAIL, "thumbnail") if content in thumbnails else (CONTENT, "content")
            for _ in tree.pieces(content, role, f"{what} {content}"):
                pass
    for id, length, sector, generation, epoch in tree.rows("identity records", "SELECT * FROM identity"):
        run = Descriptor(IDENTITY, 0, id, 0, unsigned(generation), unsigned(epoch))
        for _, data in tree.chunks(run, length, sector, f"identity record {id}"):
            try:
                decode_record(data)
            except Damaged as error:
                tree.note(f"identity record {id}: {error}")
