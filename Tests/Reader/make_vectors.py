#!/usr/bin/python3
"""Writes Tests/Vectors: structures of the format, whole and damaged, each with its verdict. Run once for a version of
the format; later versions keep the files as they are. Composed from Format.md: what is put together here is taken apart
by vault_format.py, and by the program.
"""

import hashlib
import os
import struct

import nacl.bindings

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Vectors")
SPACE_KEY = bytes(range(32))


def blake2b(data: bytes, key: bytes = b"") -> bytes:
    return hashlib.blake2b(data, key=key, digest_size=32).digest()


def derive(key: bytes, name: str) -> bytes:
    return blake2b(name.encode(), key)


def nonce(name: str) -> bytes:
    return blake2b(b"nonce " + name.encode())[:24]


def seal(key: bytes, nonce: bytes, associated: bytes, plain: bytes) -> bytes:
    return nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(plain, associated, nonce, key)


def tokens(data: bytes) -> str:
    """Hexadecimal, where more than eight equal bytes follow each other as `HH*COUNT`."""
    parts, start = [""], 0
    while start < len(data):
        end = start
        while end < len(data) and data[end] == data[start]:
            end += 1
        if end - start > 8:
            parts += [f"{data[start]:02x}*{end - start}", ""]
        else:
            parts[-1] += data[start:end].hex()
        start = end
    return " ".join(part for part in parts if part)


class File:
    """The vectors of one structure."""

    def __init__(self, name: str, *about: str):
        self.name, self.lines, self.base = name, ["# " + line for line in about], {}

    def add(self, name: str, verdict: str, data: bytes | None = None, expect: dict | None = None, **inputs) -> None:
        self.lines += ["", f"vector: {name}"]
        if data is not None:
            self.lines.append(f"bytes: {tokens(data)}")
        for key, value in inputs.items():
            self.lines.append(f"{key}: {tokens(value) if isinstance(value, bytes) else value}")
        self.lines.append(f"verdict: {verdict}")
        for key, value in (expect or {}).items():
            self.lines.append(f"= {key}: {tokens(value) if isinstance(value, bytes) else value}")

    def change(self, name: str, verdict: str, origin: str, *changes, expect: dict | None = None, **inputs) -> None:
        """As an earlier vector, with other bytes from an offset on, or cut after so many."""
        self.lines += ["", f"vector: {name}", f"from: {origin}"]
        for change in changes:
            self.lines.append(f"cut: {change}" if isinstance(change, int) else f"set: {change[0]} {tokens(change[1])}")
        for key, value in inputs.items():
            self.lines.append(f"{key}: {tokens(value) if isinstance(value, bytes) else value}")
        self.lines.append(f"verdict: {verdict}")
        for key, value in (expect or {}).items():
            self.lines.append(f"= {key}: {tokens(value) if isinstance(value, bytes) else value}")

    def write(self) -> None:
        with open(os.path.join(DIRECTORY, self.name + ".txt"), "w", encoding="ascii") as file:
            file.write("\n".join(self.lines) + "\n")


def u16(value: int) -> bytes:
    return struct.pack("<H", value)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value & (1 << 64) - 1)


# Primitives and the header


def stretch() -> None:
    file = File("stretch", "What a password, and a key file where there is one, are stretched to.")
    salt = bytes(range(100, 116))
    key_file = b"any bytes\n" * 40
    for name, password, key in (
            ("a password", b"one", None), ("an empty password", b"", None), ("any bytes", b"\xff\x00 \xc3\xbc", None),
            ("with a key file", b"one", key_file), ("with an empty key file", b"one", b"")):
        combined = password if key is None else blake2b(password, derive(blake2b(key), "obscura 1 key file"))
        result = nacl.bindings.crypto_pwhash_alg(
            32, combined, salt, 1, 8 << 20, nacl.bindings.crypto_pwhash_ALG_ARGON2ID13)
        inputs = {"password": password, "salt": salt, "memory": 8 << 20, "passes": 1}
        file.add(name, "valid", None, {"stretched": result}, **inputs, **({} if key is None else {"key_file": key}))
    file.write()


def header_bytes(
    version=1, spaces=2, segment=16 << 20, memory=256 << 20, passes=3, magic=b"OBSCURA\n", checksum=None,
    needs=bytes(4)
) -> bytes:
    head = magic + u16(version) + bytes([spaces]) + bytes(1) + needs + u64(segment) + u64(memory) + u32(passes) + bytes(4)
    head += bytes(range(16)) + bytes(8)
    body = (head + b"\xa5" * 128 + b"\x5a" * 128).ljust(4064, b"\x33")
    return body + (blake2b(body) if checksum is None else checksum)


def header() -> None:
    file = File("header", "A copy of the header, 4096 bytes. `version N`: whole, and of a version that is not 1.")
    expect = {"spaces": 2, "segment_bytes": 16 << 20, "memory": 256 << 20, "passes": 3, "salt": bytes(range(16))}
    file.add("usual", "valid", header_bytes(), expect)
    for name, values in (
            ("least", {"spaces": 1, "segment": 512 << 10, "memory": 8 << 20, "passes": 1}),
            ("most", {"spaces": 8, "segment": 4 << 30, "memory": 448 << 20, "passes": 64})):
        file.add(name, "valid", header_bytes(**values), {
            "spaces": values["spaces"], "segment_bytes": values["segment"], "memory": values["memory"],
            "passes": values["passes"]})
    for name, values in (
            ("no spaces", {"spaces": 0}), ("nine spaces", {"spaces": 9}),
            ("a segment of 256 KiB", {"segment": 1 << 18}), ("a segment of 3 MiB", {"segment": 3 << 20}),
            ("a segment of 8 GiB", {"segment": 8 << 30}),
            ("too little memory", {"memory": (8 << 20) - 1}), ("too much memory", {"memory": (448 << 20) + 1}),
            ("no passes", {"passes": 0}), ("65 passes", {"passes": 65}), ("another magic", {"magic": b"OBSCURA\r"}),
            ("a checksum of zeros", {"checksum": bytes(32)})):
        file.add(name, "damaged", header_bytes(**values))
    file.add("version 2", "version 2", header_bytes(version=2))
    file.add("version 0", "version 0", header_bytes(version=0))
    file.add(
        "version 2 with numbers that version 1 has not", "version 2", header_bytes(version=2, spaces=200, passes=0))
    file.change("version 2, damaged", "damaged", "version 2", (3000, b"\x34"))
    file.add(
        "version 2 of release 1.3", "version 2", header_bytes(version=2, needs=u16(1) + u16(3)), {"release": "1.3"})
    file.change("a bit of a slot", "damaged", "usual", (64, b"\xa4"))
    file.change("a bit of what means nothing", "damaged", "usual", (4063, b"\x32"))
    file.change("too short", "damaged", "usual", 4095)
    file.write()


def slot_bytes(name: str, stretched: bytes, clear: bytes, index: int, rest=bytes(23)) -> bytes:
    once = nonce(name)
    commitment = blake2b(bytes([index]) + once, derive(stretched, "obscura 1 commitment"))
    plain = SPACE_KEY + bytes([index]) + rest
    return once + commitment + seal(derive(stretched, "obscura 1 slot"), once, clear + bytes([index]), plain)


def slot() -> None:
    file = File(
        "slot", "A key slot, 128 bytes, with the stretched password, bytes 0 to 63 of the header, and its number.")
    stretched, clear = bytes(range(200, 232)), header_bytes()[:64]
    inputs = {"stretched": stretched, "clear": clear, "index": 1}
    data = slot_bytes("slot", stretched, clear, 1)
    file.add("usual", "valid", data, {"key": SPACE_KEY}, **inputs)
    for name, at in (("nonce", 0), ("commitment", 24), ("key", 56), ("last zero", 111), ("tag", 127)):
        file.change(f"a bit of the {name}", "damaged", "usual", (at, bytes([data[at] ^ 1])))
    file.change("another slot's number", "damaged", "usual", index=0)
    file.change("another password", "damaged", "usual", stretched=bytes(range(201, 233)))
    file.change("another header", "damaged", "usual", clear=header_bytes(passes=4)[:64])
    later = slot_bytes("slot", stretched, clear, 1, bytes([1, 0, 0]) + u16(1) + u16(3) + bytes(16))
    file.add("version 2 of release 1.3", "version 2", later, {"release": "1.3"}, **inputs)
    file.write()


# Extents


def descriptor_bytes(role=1, length=5, content=16, offset=0, generation=7, epoch=0xFEDC_BA98_7654_3210) -> bytes:
    return u32(role) + u32(length) + u64(content) + u64(offset) + u64(generation) + u64(epoch)


FIELDS = ("role", "length", "content", "offset", "generation", "epoch")


def descriptor() -> None:
    file = File("descriptor", "The plaintext of an extent's descriptor, 40 bytes.")
    for name, values in (
            ("usual", {}), ("a whole chunk of a thumbnail", {"role": 2, "length": 131_072, "content": 99}),
            ("an identity record of retired numbers", {"role": 3, "content": (1 << 62) + 5}),
            ("the last content", {"content": (1 << 63) - 1}), ("the last offset", {"offset": 1 << 62}),
            ("the last generation", {"generation": 1 << 62}), ("the last epoch", {"epoch": (1 << 64) - 1})):
        data = descriptor_bytes(**values)
        file.add(name, "valid", data, dict(zip(FIELDS, struct.unpack("<IIQQQQ", data))))
    for name, values in (
            ("role 0", {"role": 0}), ("role 4", {"role": 4}), ("role 257", {"role": 257}), ("no bytes", {"length": 0}),
            ("more than a chunk", {"length": 131_073}), ("content 2^63", {"content": 1 << 63}),
            ("an offset above 2^62", {"offset": (1 << 62) + 1}),
            ("a generation above 2^62", {"generation": (1 << 62) + 1})):
        file.add(name, "damaged", descriptor_bytes(**values))
    file.write()


def extent_bytes(name: str, content: bytes, sealed_for: bytes | None = None, **values) -> bytes:
    once, head = nonce(name), descriptor_bytes(**({"length": len(content)} | values))
    data = once + seal(derive(SPACE_KEY, "obscura 1 descriptor"), once, u16(1), head)
    data += seal(derive(SPACE_KEY, "obscura 1 content"), once, u16(1) + (sealed_for or head), content)
    return data.ljust(-(-len(data) // 512) * 512, b"\x77")


def extent() -> None:
    file = File("extent", "An extent with the space's key, in whole sectors.")
    content = b"Hello"
    data = extent_bytes("extent", content)
    expect = dict(zip(FIELDS, struct.unpack("<IIQQQQ", descriptor_bytes()))) | {"plaintext": content}
    file.add("one sector", "valid", data, expect, key=SPACE_KEY)
    file.add("one sector, full", "valid", extent_bytes("full", b"y" * 416), {"plaintext": b"y" * 416}, key=SPACE_KEY)
    file.add("two sectors", "valid", extent_bytes("two", b"z" * 417), {"plaintext": b"z" * 417}, key=SPACE_KEY)
    for name, at in (
            ("nonce", 0), ("descriptor", 24), ("descriptor's tag", 79), ("content", 80), ("content's tag", 100)):
        file.change(f"a bit of the {name}", "damaged", "one sector", (at, bytes([data[at] ^ 0x80])))
    file.change("another padding", "valid", "one sector", (101, b"\x78"), expect={"plaintext": content})
    file.change("another key", "damaged", "one sector", key=bytes(32))
    file.change("too short", "damaged", "one sector", 100)
    file.add("an unknown role", "damaged", extent_bytes("role", content, role=9), key=SPACE_KEY)
    file.add("content of another length", "damaged", extent_bytes("length", content, length=6), key=SPACE_KEY)
    file.add(
        "content of another extent", "damaged", extent_bytes("other", content, sealed_for=descriptor_bytes(content=17)),
        key=SPACE_KEY)
    file.write()


# Pages


def page() -> None:
    file = File(
        "page", "A sealed page, 4096 bytes, with the space's key, what it is, and the tag of its reference, if any.")
    plain = bytes(range(256)).ljust(4056, b"\x11")
    once = nonce("page")
    associated = u16(1) + bytes([21, 1, 2, 3]) + u16(0) + u32(0x01020304)
    data = once + seal(derive(SPACE_KEY, "obscura 1 page"), once, associated, plain)
    inputs = {"key": SPACE_KEY, "role": 21, "copy": 1, "object": 2, "level": 3, "index": 0x01020304}
    file.add("usual", "valid", data, {"plaintext": plain}, **inputs)
    file.change("with its tag", "valid", "usual", tag=data[-16:], expect={"plaintext": plain})
    file.change("with another tag", "damaged", "usual", tag=bytes(16))
    for name, value in (("role", 17), ("copy", 0), ("object", 0), ("level", 0), ("index", 0x01020305)):
        file.change(f"another {name}", "damaged", "usual", **{name: value})
    for name, at in (("nonce", 23), ("ciphertext", 24), ("last byte", 4079), ("tag", 4080)):
        file.change(f"a bit of the {name}", "damaged", "usual", (at, bytes([data[at] ^ 2])))
    file.change("zeros", "damaged", "usual", (0, bytes(4096)))
    file.change("too short", "damaged", "usual", 4095)
    file.write()


def reference(slot: int) -> bytes:
    return u32(slot) + bytes([slot & 255]) * 16 + bytes([slot & 255 ^ 255]) * 16


ABSENT = u32(0xFFFF_FFFF) + bytes(32)


def shown(slot: int) -> str:
    return f"{slot} {bytes([slot & 255]).hex() * 16} {bytes([slot & 255 ^ 255]).hex() * 16}"


def node() -> None:
    file = File("node", "The plaintext of a map node, 4056 bytes. Of each reference that is there: place, slot, tags.")
    places = {0: 16, 1: 4_000_000_000, 57: 18, 111: 0xFFFF_FFFE}
    full = b"".join(reference(places[place]) if place in places else ABSENT for place in range(112))
    file.add(
        "some references", "valid", full.ljust(4056, b"\0"),
        {f"reference {place}": shown(slot) for place, slot in places.items()} | {"references": 4})
    file.add("none", "valid", (ABSENT * 112).ljust(4056, b"\0"), {"references": 0})
    file.change("tags of none mean nothing", "valid", "none", (4, b"\x55" * 32), expect={"references": 0})
    file.change(
        "behind the last nothing means anything", "valid", "none", (4032, b"\x55" * 24), expect={"references": 0})
    file.write()


def root_bytes(
    generation=900, kind=1, epoch=0x8000_0000_0000_0001, boot=bytes(32), base=880, released=870, delta=None,
    objects=((5, 1, 20), (300, 2, 21), (1, 1, 22), (1, 1, 23)), pairs=((0, 1), (7, 9)), count=None, evasion=bytes(4),
    most=12_345, version=0, needs=bytes(4), features=(0, 0, 0), room=bytes(256)
) -> bytes:
    data = u64(generation) + bytes([kind]) + evasion + bytes(1) + u16(version) + u64(epoch) + boot + u64(base) + u64(released)
    data += u32(len(pairs) if count is None else count) + needs
    for (pages, levels, slot), feature in zip(objects, features + (0,)):
        data += u32(pages) + u32(levels) + (ABSENT if slot is None else reference(slot)) + u32(feature)
    data += (ABSENT if delta is None else reference(delta)) + bytes(4) + u64(most)
    data = (data + b"".join(u32(a) + u32(b) for a, b in pairs)).ljust(4056, b"\0")
    return data if room == bytes(256) else data[:3800] + room


def root() -> None:
    file = File("root", "The plaintext of a root, 4056 bytes.")
    expect = {
        "generation": 900, "durable": 1, "epoch": 0x8000_0000_0000_0001, "base": 880, "released": 870,
        "object 0": f"5 1 {shown(20)}", "object 1": f"300 2 {shown(21)}", "object 2": f"1 1 {shown(22)}",
        "object 3": f"1 1 {shown(23)}", "delta": "none", "pairs": "0 1 7 9"}
    file.add("durable", "valid", root_bytes(), expect)
    file.add(
        "soft", "valid", root_bytes(kind=2, boot=b"\x42" * 32, delta=77),
        expect | {"durable": 0, "boot": b"\x42" * 32, "delta": shown(77)})
    empty = ((0, 0, None),) * 4
    file.add(
        "of a new space", "valid", root_bytes(generation=1, base=0, released=0, objects=empty, pairs=((0, 1),)),
        {"generation": 1, "object 0": "0 0 none", "pairs": "0 1"})
    file.add(
        "after a takeover", "valid", root_bytes(evasion=bytes([3]) + u16(1) + b"\1"), {"generation": 900})
    many = tuple((2 * pair, 2 * pair + 1) for pair in range(467))
    file.add("467 pairs", "valid", root_bytes(pairs=many), {"generation": 900})
    file.add("the highest numbers", "valid", root_bytes(
        generation=1 << 62, base=1 << 62, released=1 << 62, pairs=((0, 1), (2, (1 << 22) - 1)),
        objects=((112**4, 4, 20), (1, 1, 21), (1, 1, 22), (4195, 2, 23))), {"generation": 1 << 62})
    most = tuple((2 * pair, 2 * pair + 1) for pair in range(435))
    file.add(
        "435 pairs, and room for extensions", "valid", root_bytes(pairs=most, room=b"\x77" * 256),
        {"generation": 900, "features": "0 0 0"})
    file.add(
        "features that a reader need not know", "valid",
        root_bytes(features=(0, 1 << 31, 0xFFFF_FFFF), needs=u16(1) + u16(3)), {"features": f"0 {1 << 31} {0xFFFF_FFFF}"})
    file.add(
        "features that a reader must know", "features", root_bytes(features=(2, 0, 0), needs=u16(1) + u16(3)),
        {"release": "1.3"})
    file.add("version 2", "version 2", root_bytes(version=1, needs=u16(1) + u16(3)), {"release": "1.3"})
    file.add(
        "version 65536, with fields that version 1 has not", "version 65536",
        root_bytes(version=65_535, kind=9, count=1 << 31))
    first, rest = ((5, 1, 20),), ((1, 1, 21), (1, 1, 22), (1, 1, 23))
    for name, values in (
            ("kind 0", {"kind": 0}), ("kind 3", {"kind": 3}), ("no pair", {"pairs": (), "count": 0}),
            ("468 pairs", {"count": 468, "pairs": many}), ("another first pair", {"pairs": ((2, 3),)}),
            ("the first pair exchanged", {"pairs": ((1, 0),)}), ("a segment twice", {"pairs": ((0, 1), (7, 7))}),
            ("a segment in two pairs", {"pairs": ((0, 1), (7, 1))}),
            ("a segment too high", {"pairs": ((0, 1), (2, 1 << 22))}),
            ("a generation above 2^62", {"generation": (1 << 62) + 1}),
            ("a base above the generation", {"base": 901}), ("released above the generation", {"released": 901}),
            ("too many sectors in use", {"most": (1 << 45) + 1}), ("five levels", {"objects": ((5, 5, 20),) + rest}),
            ("too many pages", {"objects": ((112**4 + 1, 4, 20),) + rest}),
            ("a reference of no levels", {"objects": ((0, 0, 20),) + rest}),
            ("too many counts of use", {"objects": first + rest[:2] + ((4196, 2, 23),)})):
        file.add(name, "damaged", root_bytes(**values))
    file.write()


BOOT_ID = b"6f2a9c1e-0b3d-4e58-9a77-1c2d3e4f5a6b\n"
MACHINE_ID = b"0123456789abcdef0123456789abcdef\n"
HOSTNAME = b"example\n"


def claim_bytes(
    owner=bytes(range(16)), machine=MACHINE_ID[:32] + b"\0" + HOSTNAME, boot=BOOT_ID, namespace=0xEFFF_FFFC,
    start=123_456, process=4_321
) -> bytes:
    """The plaintext. `machine` and `boot` are what is hashed."""
    data = owner + blake2b(machine, derive(SPACE_KEY, "obscura 1 claim"))
    data += blake2b(boot.ljust(64, b"\0"), derive(SPACE_KEY, "obscura 1 boot"))
    return (data + u64(namespace) + u64(start) + u32(process)).ljust(4056, b"\0")


def claim_copy(name: str, copy: int, plain: bytes, version=1, role=24, index=12) -> bytes:
    once, associated = nonce(f"{name} {copy}"), u16(version) + bytes([role, copy]) + bytes(4) + u32(index)
    return once + seal(derive(SPACE_KEY, "obscura 1 page"), once, associated, plain)


def claim() -> None:
    file = File(
        "claim", "Slot 12 of the first pair, copy A and then copy B, 8192 bytes, with the space's key, and what the",
        "computer that reads has in boot_id, machine-id and hostname: no bytes where a file is not there. `damaged`:",
        "nobody writes to the space. free_if_running, free_if_gone: 1 where that computer may put its claim in this",
        "one's place without the user's word, if it finds a process of its own boot running, or gone.")
    inputs = {"key": SPACE_KEY, "boot_id": BOOT_ID, "machine_id": MACHINE_ID, "hostname": HOSTNAME}
    plain, other = claim_bytes(), claim_bytes(bytes([0xEE] * 16), process=4_322)
    (a, b), late = (claim_copy("claim", copy, plain) for copy in (0, 1)), claim_copy("other claim", 1, other)
    own = {
        "owner": plain[:16], "machine": plain[16:48], "boot": plain[48:80], "namespace": 0xEFFF_FFFC,
        "start": 123_456, "process": 4_321}
    here = own | free(0, 1)
    file.add("usual", "valid", a + b, here, **inputs)
    another_boot = {"boot_id": BOOT_ID.replace(b"6f2a", b"6f2b")}
    for name, expect, files in (
            ("read in another boot", (1, 1), another_boot),
            ("read where there is no boot id", (0, 0), {"boot_id": b""}),
            ("read in another boot, on another computer", (0, 0), another_boot | {
                "machine_id": MACHINE_ID.replace(b"01", b"02", 1)}),
            ("read in this boot, under another name", (0, 1), {"hostname": b"example.org\n"}),
            ("read in another boot, under another name", (0, 0), another_boot | {"hostname": b"example.org\n"}),
            ("the line feed behind a name counts", (0, 0), another_boot | {"hostname": b"example"}),
            ("read in another boot, without a name", (0, 0), another_boot | {"hostname": b""}),
            ("read in this boot, without a machine id", (0, 1), {"machine_id": b""}),
            ("read in another boot, without a machine id", (0, 0), another_boot | {"machine_id": b""}),
            ("a machine id too short is none", (0, 0), another_boot | {"machine_id": MACHINE_ID[:31]}),
            ("behind 32 bytes a machine id means nothing", (1, 1), another_boot | {
                "machine_id": MACHINE_ID[:32] + b"0123"})):
        file.change(name, "valid", "usual", expect=own | free(*expect), **files)
    file.change("copy A alone", "valid", "usual", (4096, bytes(4096)), expect=here)
    file.change("copy A alone, up to where the file ends", "valid", "usual", 4096, expect=here)
    file.change("copy B alone", "valid", "usual", (0, bytes(4096)), expect=here)
    for name, at in (("nonce", 23), ("ciphertext", 24), ("unused bytes", 4079), ("tag", 4095)):
        bit = bytes([a[at] ^ 4])
        file.change(f"a bit of the {name} of copy A", "valid", "usual", (at, bit), expect=here)
        file.change(f"a bit of the {name} of the only copy", "damaged", "copy A alone", (at, bit))
    file.change("copy A counts where another is in copy B", "valid", "usual", (4096, late), expect=here)
    file.change(
        "copy B is another's, copy A is damaged", "valid", "copy A counts where another is in copy B",
        (4080, bytes(16)), expect=here | {"owner": bytes([0xEE] * 16), "process": 4_322})
    file.change("zeros", "damaged", "usual", (0, bytes(8192)))
    file.change("without its first byte", "damaged", "copy A alone", (0, a[1:]))
    file.change("copy A too short", "damaged", "usual", 4095)
    file.change("no bytes", "damaged", "usual", 0)
    file.change("the copies swapped", "damaged", "usual", (0, b + a))
    file.change("copy A in the place of copy B", "damaged", "usual", (0, bytes(4096) + a))
    file.change("another key", "damaged", "usual", key=bytes(32))
    for name, values in (
            ("format version 2", {"version": 2}), ("sealed as a root", {"role": 23}),
            ("sealed as a delta", {"role": 22}), ("of slot 13", {"index": 13})):
        file.add(name, "damaged", claim_copy(name, 0, plain, **values) + bytes(4096), **inputs)
    high = {"namespace": (1 << 64) - 1, "start": (1 << 64) - 1, "process": (1 << 32) - 1}
    file.add(
        "the highest numbers", "valid", claim_copy("highest", 0, claim_bytes(**high)) + bytes(4096), here | high,
        **inputs)
    file.add(
        "a plaintext of zeros", "valid", claim_copy("zeros", 0, bytes(4056)) + bytes(4096),
        {"owner": bytes(16), "machine": bytes(32), "boot": bytes(32), "namespace": 0, "start": 0, "process": 0}
        | free(0, 0), **inputs)
    file.add(
        "behind the last field nothing means anything", "valid",
        claim_copy("behind", 0, plain[:100] + b"\x55" * 3956) + bytes(4096), here, **inputs)
    file.write()


def free(if_running: int, if_gone: int) -> dict:
    return {"free_if_running": if_running, "free_if_gone": if_gone}


def delta_bytes(entries=((1, 10, 100),), generation=900, previous=None, count=None) -> bytes:
    data = u64(generation) + u32(len(entries) if count is None else count) + bytes(4)
    data += (ABSENT if previous is None else reference(previous)) + bytes(4)
    data += b"".join(bytes([kind, 0, 0, 0]) + u32(amount) + u64(start) for kind, amount, start in entries)
    return data.ljust(4056, b"\0")


def delta() -> None:
    file = File(
        "delta", "The plaintext of a delta page, 4056 bytes, in a space whose segments have so many sectors and whose",
        "pairs have so many slots together.")
    inputs = {"segment_sectors": 32_768, "slots": 8192}

    def add(name: str, verdict: str, expect: dict | None = None, **values) -> None:
        file.add(name, verdict, delta_bytes(**values), expect, **inputs)

    entries = ((1, 10, 100), (2, 32_768, 65_536), (3, 1, 8191), (3, 8192, 0))
    add("usual", "valid", {
        "generation": 900, "previous": shown(55), "entries": " ".join(f"{k} {n} {s}" for k, n, s in entries)},
        entries=entries, previous=55)
    add("nothing", "valid", {"previous": "none", "entries": ""}, entries=())
    add("250 entries", "valid", {"generation": 900}, entries=((3, 1, 20),) * 250)
    add("the last sector", "valid", {"entries": f"2 1 {(32_768 << 22) - 1}"}, entries=((2, 1, (32_768 << 22) - 1),))
    add("251 entries", "damaged", entries=((3, 1, 20),) * 250, count=251)
    for name, entry in (
            ("kind 0", (0, 1, 20)), ("kind 4", (4, 1, 20)), ("an entry of nothing", (2, 0, 20)),
            ("sectors of two segments", (1, 2, 32_767)), ("a sector too high", (2, 1, 32_768 << 22)),
            ("a slot too high", (3, 1, 8192)), ("slots up to one too high", (3, 8192, 1)),
            ("the highest number", (3, 1, (1 << 64) - 1))):
        add(name, "damaged", entries=((2, 1, 5), entry))
    file.write()


# Identity records


def text(value: bytes) -> bytes:
    return u32(len(value)) + value


def record_bytes(**values) -> bytes:
    row = {
        "ino": 20, "mode": 0o100644, "uid": 1000, "gid": 1000, "rdev": 0, "size": 300_000, "allocated": 262_144,
        "content": 21, "version": 2, "day": 0, "flags": 4, "atime": -1, "atime_ns": 5, "mtime": 1_500_000_000,
        "mtime_ns": 999_999_999, "ctime": 7, "ctime_ns": 0} | values
    data = bytes([values.get("record_version", 1), values.get("kind", 1)]) + bytes(6) + u64(11) + u64(12) + u64(13)
    for name in ("ino", "mode", "uid", "gid", "rdev", "size", "allocated", "content", "version", "day", "flags"):
        data += (u32 if name in ("mode", "uid", "gid") else u64)(row[name])
    for name in ("atime", "mtime", "ctime"):
        data += u64(row[name]) + u32(row[name + "_ns"])
    photo = values.get("photo")
    data += b"\1" + photo if photo else b"\0"
    trashed = values.get("trashed")
    data += b"\1" + u64(trashed[0]) + text(trashed[1]) if trashed else b"\0"
    data += text(values.get("target", b""))
    names = values.get("names", [(3, 1, -(1 << 63), b"a.jpg")])
    data += u32(len(names)) + b"".join(u64(p) + bytes([m]) + u64(s) + text(n) for p, m, s, n in names)
    kept = values.get("kept", [])
    data += u32(len(kept)) + b"".join(u64(p) + u64(i) + bytes([m]) + text(n) for p, i, m, n in kept)
    runs = values.get("runs", [(0, 262_144, 65_536, 9, 10)])
    data += (b"\0" if runs is None else b"\1") + u32(len(runs or []))
    data += b"".join(u64(number) for run in runs or [] for number in run)
    attributes = values.get("attributes", [(b"user.a", b"b")])
    return data + u32(len(attributes)) + b"".join(text(name) + text(value) for name, value in attributes)


def photo_bytes(
        day=20240501, bits=1, captured=-86_400, ns=1, orientation=6, former=None, camera=b"", kind=3, rating=4,
        arrived=17, group=b"") -> bytes:
    data = u64(day) + bytes([bits]) + b"".join(u64(n) for n in (captured, ns, 1, 640, 480, orientation, (1 << 64) - 2))
    data += text(b"EXIF") + (b"\0" if former is None else b"\1" + text(former))
    return data + text(camera) + b"".join(u64(number) for number in (kind, rating, arrived)) + text(group)


def record() -> None:
    file = File("record", "The payload of an extent of role 3.")
    expect = {
        "ino": 20, "mode": 0o100644, "size": 300_000, "atime": -1, "mtime_ns": 999_999_999,
        "names": f"3 1 {-(1 << 63)} {b'a.jpg'.hex()}", "runs": "0 262144 65536 9 10",
        "attributes": f"{b'user.a'.hex()} {b'b'.hex()}", "target": b"", "photo": "none"}
    file.add("a file", "valid", record_bytes(), expect)
    file.add(
        "a photo in the trash", "valid",
        record_bytes(photo=photo_bytes(former=b"a~"), trashed=(5, b"a.jpg"), kept=[(16, 20, 1, b"b")]),
        {"photo": f"20240501 1 0 -86400 1 1 640 480 6 {(1 << 64) - 2} {b'EXIF'.hex()} {b'a~'.hex()} none 3 4 17 none",
         "trashed": f"5 {b'a.jpg'.hex()}", "kept": f"16 20 1 {b'b'.hex()}"})
    file.add(
        "a photo of a burst", "valid", record_bytes(photo=photo_bytes(camera=b"Phone 7", group=b"burst 1")),
        {"photo": f"20240501 1 0 -86400 1 1 640 480 6 {(1 << 64) - 2} {b'EXIF'.hex()} none {b'Phone 7'.hex()} 3 4 17 "
         + b"burst 1".hex()})
    file.add("a link", "valid", record_bytes(mode=0o120777, target=b"../x", runs=[]), {"target": b"../x", "runs": ""})
    file.add("more runs than fit", "valid", record_bytes(runs=None), {"runs": "none"})
    lost = (1 << 61) + 257
    file.add("lost bytes", "valid", record_bytes(runs=[(131_072, 131_073, lost, 0, 0)]), {"ino": 20})
    file.change("bytes behind the end", "valid", "a file", (len(record_bytes()), b"later"), expect={"ino": 20})
    retired = bytes([1, 2]) + bytes(6) + u64(11) + u64(12) + u64(13) + u64((1 << 40) + 3) + text(b"\x0f" * 256)
    file.add("retired contents", "valid", retired, {"block": (1 << 40) + 3, "bits": b"\x0f" * 256})
    file.change("a block too high", "damaged", "retired contents", (32, u64(2 << 40)))
    file.change("too few bits", "damaged", "retired contents", (40, u32(255)))
    file.change("too short", "damaged", "a file", len(record_bytes()) - 1)
    file.change("no bytes", "damaged", "a file", 0)
    file.change(
        "version 2 of release 1.3", "version 2", "a file", (0, bytes([2, 9, 0, 0]) + u16(1) + u16(3)),
        expect={"release": "1.3"})
    file.change("version 2, too short", "damaged", "a file", (0, bytes([2])), 7)
    for name, values in (
            ("version 0", {"record_version": 0}), ("kind 3", {"kind": 3}), ("no type", {"mode": 0o644}),
            ("a mode too high", {"mode": 0o300644}), ("a size above 2^63 - 1", {"size": 1 << 63}),
            ("a number of 2^62", {"ino": 1 << 62}), ("a day too high", {"day": 100_000_000}),
            ("too many nanoseconds", {"mtime_ns": 1_000_000_000}),
            ("a slash in a name", {"names": [(3, 0, 0, b"a/b")]}),
            ("a name of two dots", {"names": [(3, 0, 0, b"..")]}), ("no name", {"names": [(3, 0, 0, b"")]}),
            ("a name too long", {"names": [(3, 0, 0, b"n" * 256)]}),
            ("overlapping runs", {"runs": [(0, 10, 5, 1, 1), (9, 10, 6, 1, 1)]}),
            ("an empty run", {"runs": [(0, 0, 5, 1, 1)]}), ("a sector too high", {"runs": [(0, 1, 1 << 62, 1, 1)]}),
            ("orientation 9", {"photo": photo_bytes(orientation=9)}),
            ("too many nanoseconds of a photo", {"photo": photo_bytes(ns=1_000_000_000)}),
            ("a former name of zero", {"photo": photo_bytes(former=b"\0")}),
            ("a slash in a camera", {"photo": photo_bytes(camera=b"a/b")}), ("kind 5", {"photo": photo_bytes(kind=5)}),
            ("six stars", {"photo": photo_bytes(rating=6)}),
            ("an identifier of 256 bytes", {"photo": photo_bytes(group=b"g" * 256)}),
            ("an arrival of 2^62", {"photo": photo_bytes(arrived=1 << 62)})):
        file.add(name, "damaged", record_bytes(**values))
    file.write()


if __name__ == "__main__":
    for make in (stretch, header, slot, descriptor, extent, page, node, root, claim, delta, record):
        make()
