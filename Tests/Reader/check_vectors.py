#!/usr/bin/python3
"""Checks that this reader comes to the verdicts of Tests/Vectors. Prints what differs; status 0 if nothing does."""

import os
import sys

import nacl.bindings
import nacl.exceptions

import vault_format
import vault_space
import vault_verify
from vault_format import Damaged, Kind, Reference
from vault_verify import Record, RetiredBlock

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "Vectors")


def data_of(tokens: str) -> bytes:
    """Hexadecimal bytes; `HH*COUNT` stands for so many."""
    parts = (token.partition("*") for token in tokens.split())
    return b"".join(bytes.fromhex(digits) * int(count or "1") for digits, _, count in parts)


def load(path: str) -> list[dict]:
    """Vectors, each with what an earlier one that it is derived from says of the input."""
    vectors: dict[str, dict] = {}
    for block in open(path, encoding="ascii").read().split("\n\n"):
        vector: dict = {"expected": {}}
        for line in block.splitlines():
            key, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if line.startswith("#"):
                continue
            if key.startswith("= "):
                vector["expected"][key[2:]] = value
            elif key == "bytes":
                vector["bytes"] = data_of(value)
            elif key == "from":
                vector = vectors[value] | {"expected": {}, "vector": vector["vector"]}
            elif key == "set":
                offset, _, tokens = value.partition(" ")
                start, changed = int(offset), data_of(tokens)
                vector["bytes"] = vector["bytes"][:start] + changed + vector["bytes"][start + len(changed) :]
            elif key == "cut":
                vector["bytes"] = vector["bytes"][: int(value)]
            else:
                vector[key] = value
        if "vector" in vector:
            vectors[vector["vector"]] = vector
    return list(vectors.values())


# Each takes a vector and returns what it finds, as the files write it, or throws.


def stretch(vector: dict) -> dict:
    header = vault_format.Header(b"", 0, 0, int(vector["memory"]), int(vector["passes"]), data_of(vector["salt"]), [])
    key_file = data_of(vector["key_file"]) if "key_file" in vector else None
    return {"stretched": vault_space.stretch(header, data_of(vector["password"]), key_file)}


def header(vector: dict) -> dict:
    return vars(vault_format.decode_header(vector["bytes"]))


def slot(vector: dict) -> dict:
    key = vault_format.open_slot(
        vector["bytes"], int(vector["index"]), data_of(vector["stretched"]), data_of(vector["clear"]))
    if key is None:
        raise Damaged
    return {"key": key}


def seal(vector: dict) -> dict:
    try:
        return {"plaintext": nacl.bindings.crypto_aead_xchacha20poly1305_ietf_decrypt(
            vector["bytes"], data_of(vector["associated"]), data_of(vector["nonce"]), data_of(vector["key"]))}
    except nacl.exceptions.CryptoError:
        raise Damaged from None


def descriptor(vector: dict) -> dict:
    return vault_format.decode_descriptor(vector["bytes"])._asdict()


def extent(vector: dict) -> dict:
    keys = [vault_format.derive(data_of(vector["key"]), "obscura 1 " + name) for name in ("descriptor", "content")]
    found, plain = vault_format.open_extent(vector["bytes"], *keys)
    return found._asdict() | {"plaintext": plain}


def page(vector: dict) -> dict:
    kind = Kind(*(int(vector[name]) for name in ("role", "object", "level", "index")))
    tag = data_of(vector["tag"]) if "tag" in vector else None
    key = vault_format.derive(data_of(vector["key"]), "obscura 1 page")
    plain = vault_format.open_page(vector["bytes"], key, kind, int(vector["copy"]), tag)
    if plain is None:
        raise Damaged
    return {"plaintext": plain}


def shown(reference: Reference | None) -> str:
    return f"{reference.slot} {reference.tags[0].hex()} {reference.tags[1].hex()}" if reference else "none"


def node(vector: dict) -> dict:
    references = vault_format.decode_node(vector["bytes"])
    found = {f"reference {place}": shown(reference) for place, reference in enumerate(references)}
    return found | {"references": sum(reference is not None for reference in references)}


def root(vector: dict) -> dict:
    found = vault_format.decode_root(vector["bytes"])
    objects = {
        f"object {number}": f"{map.pages} {map.levels} {shown(map.reference)}"
        for number, map in enumerate(found.objects)}
    pairs = " ".join(f"{a} {b}" for a, b in found.pairs)
    return vars(found) | objects | {"durable": int(found.is_durable), "delta": shown(found.delta), "pairs": pairs}


def delta(vector: dict) -> dict:
    found = vault_format.decode_delta(vector["bytes"], int(vector["segment_sectors"]), int(vector["slots"]))
    entries = " ".join(f"{kind} {count} {first}" for kind, count, first in found.entries)
    return {"generation": found.generation, "previous": shown(found.previous), "entries": entries}


def claim(vector: dict) -> dict:
    page_key, boot_key, claim_key = (
        vault_format.derive(data_of(vector["key"]), "obscura 1 " + name) for name in ("page", "boot", "claim"))
    found = vault_verify.standing_claim([vector["bytes"][:4096], vector["bytes"][4096:]], page_key)
    if found is None:
        raise Damaged
    boot = vault_format.boot_mark(data_of(vector["boot_id"]), boot_key)
    machine = vault_verify.machine_mark(data_of(vector["machine_id"]), data_of(vector["hostname"]), claim_key)
    free = {
        f"free_if_{word}": int(vault_verify.is_free(found, boot, machine, is_gone))
        for word, is_gone in (("running", False), ("gone", True))}
    return found._asdict() | free


def words(*values) -> str:
    return " ".join(
        value.hex() if isinstance(value, bytes) else "none" if value is None else str(value) for value in values)


def record(vector: dict) -> dict:
    found = vault_verify.decode_record(vector["bytes"])
    if isinstance(found, RetiredBlock):
        return {"block": found.block, "bits": found.bits}
    assert isinstance(found, Record)
    return found.values | {
        "photo": words(*found.photo.values()) if found.photo else "none",
        "trashed": words(*found.trashed) if found.trashed else "none", "target": found.target,
        "names": " ".join(words(*row) for row in found.names),
        "kept": " ".join(words(*row) for row in found.kept_names),
        "runs": "none" if found.runs is None else " ".join(words(*run) for run in found.runs),
        "attributes": " ".join(words(*row) for row in found.attributes)}


CHECKS = {
    check.__name__: check for check in (
        stretch, header, slot, seal, descriptor, extent, page, node, root, claim, delta, record)}


def is_equal(expected: str, found) -> bool:
    return data_of(expected) == found if isinstance(found, bytes) else expected == str(found)


def judge(check, vector: dict) -> tuple[str, dict]:
    try:
        return "valid", check(vector)
    except Damaged:
        return "damaged", {}
    except vault_format.UnknownFeatures as error:
        return "features", {"release": error.release}
    except vault_format.UnknownVersion as error:
        return f"version {error.version}", {"release": error.release}


def main() -> int:
    count, wrong = 0, 0
    for name in sorted(os.listdir(DIRECTORY)):
        if not name.endswith(".txt"):
            continue
        for vector in load(os.path.join(DIRECTORY, name)):
            count += 1
            verdict, found = judge(CHECKS[name.removesuffix(".txt")], vector)
            differing = [key for key, value in vector["expected"].items() if not is_equal(value, found.get(key))]
            if verdict != vector["verdict"] or differing:
                wrong += 1
                print(f"{name}: {vector['vector']}: {verdict}, not {vector['verdict']} {' '.join(differing)}")
    print(f"{count} vectors, {wrong} wrong")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
