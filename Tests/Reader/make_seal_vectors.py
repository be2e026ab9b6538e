#!/usr/bin/python3
"""Writes Tests/Vectors/seal.txt: XChaCha20-Poly1305 where implementations go wrong. The kinds are those of Wycheproof's
cases for it; the values are made here, with big integers, and held against libsodium.
"""

import hashlib
from typing import Callable, Iterable, Iterator

from make_vectors import File, seal

P = (1 << 130) - 5
CLAMP = 0x0FFFFFFC_0FFFFFFC_0FFFFFFC_0FFFFFFF
KEY = bytes(range(0xC0, 0xE0))
NONCE = bytes(0x11 * place for place in range(16)) + bytes(8)


def noise(name: str, count: int) -> bytes:
    return hashlib.shake_256(name.encode()).digest(count)


# ChaCha20, as draft-irtf-cfrg-xchacha-03 and RFC 8439 have it


def double_rounds(state: list[int]) -> list[int]:
    words = state[:]

    def quarter(a: int, b: int, c: int, d: int) -> None:
        for left, right, third, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            words[left] = words[left] + words[right] & 0xFFFF_FFFF
            mixed = words[third] ^ words[left]
            words[third] = (mixed << turn | mixed >> 32 - turn) & 0xFFFF_FFFF

    for _ in range(10):
        for place in range(4):
            quarter(place, place + 4, place + 8, place + 12)
        for place in range(4):
            quarter(place, (place + 1) % 4 + 4, (place + 2) % 4 + 8, (place + 3) % 4 + 12)
    return words


def words_of(data: bytes) -> list[int]:
    return [int.from_bytes(data[start : start + 4], "little") for start in range(0, len(data), 4)]


def bytes_of(words: list[int]) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


def stream(key: bytes, nonce: bytes, blocks: int) -> bytes:
    """The first 32 bytes are Poly1305's key; what is sealed begins with the byte 64."""
    head = words_of(b"expand 32-byte k")
    first = double_rounds(head + words_of(key) + words_of(nonce[:16]))
    subkey = first[:4] + first[12:]
    result = b""
    for counter in range(blocks):
        state = head + subkey + [counter, 0] + words_of(nonce[16:])
        result += bytes_of([a + b & 0xFFFF_FFFF for a, b in zip(state, double_rounds(state))])
    return result


# Poly1305 as integers


class Case:
    """A message to be, by its ciphertext."""

    def __init__(self, key: bytes, nonce: bytes, associated: bytes):
        self.key, self.nonce, self.associated = key, nonce, associated
        self.stream = stream(key, nonce, 80)
        self.r = int.from_bytes(self.stream[:16], "little") & CLAMP
        self.s = int.from_bytes(self.stream[16:32], "little")

    def blocks(self, ciphertext: bytes) -> Iterator[int]:
        """What the sum is over."""
        lengths = len(self.associated).to_bytes(8, "little") + len(ciphertext).to_bytes(8, "little")
        for part in (self.associated, ciphertext, lengths):
            for start in range(0, len(part), 16):
                yield int.from_bytes(part[start : start + 16], "little") + (1 << 128)

    def sum(self, blocks: Iterable[int]) -> int:
        total = 0
        for block in blocks:
            total = (total + block) * self.r % P
        return total

    def plaintext(self, ciphertext: bytes) -> bytes:
        return bytes(a ^ b for a, b in zip(ciphertext, self.stream[64:]))

    def sealed(self, ciphertext: bytes) -> bytes:
        """With its tag, as libsodium finds it too."""
        tag = (self.sum(self.blocks(ciphertext)) + self.s) % (1 << 128)
        result = ciphertext + tag.to_bytes(16, "little")
        assert result == seal(self.key, self.nonce, self.associated, self.plaintext(ciphertext))
        return result

    def add(self, file: File, name: str, ciphertext: bytes) -> None:
        file.add(
            name, "valid", self.sealed(ciphertext), {"plaintext": self.plaintext(ciphertext)},
            key=self.key, nonce=self.nonce, associated=self.associated)

    def block_before(self, total: int, before: bytes, after: list[int]) -> bytes | None:
        """The block behind `before` that makes the sum `total` once the numbers `after` are in it, if one does."""
        inverse = pow(self.r, -1, P)
        for number in reversed(after):
            total = (total * inverse - number) % P
        block = (total * inverse - self.sum([*words16(self.associated), *words16(before)])) % P - (1 << 128)
        return block.to_bytes(16, "little") if 0 <= block < 1 << 128 else None

    def passing(self, total: int, before: bytes, after: bytes) -> bytes | None:
        """A ciphertext whose sum is `total` before its last block `after`."""
        block = self.block_before(total, before, [])
        return before + block + after if block else None

    def reaching(self, total: int, before: bytes) -> bytes | None:
        """A ciphertext whose sum is `total` at last, with the lengths."""
        lengths = len(self.associated).to_bytes(8, "little") + (len(before) + 16).to_bytes(8, "little")
        block = self.block_before(total, before, words16(lengths))
        return before + block if block else None


def words16(data: bytes) -> list[int]:
    return [int.from_bytes(data[start : start + 16], "little") + (1 << 128) for start in range(0, len(data), 16)]


# The kinds


def sizes(file: File) -> None:
    odd = [47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 191, 192, 193, 255, 256, 257, 511, 512, 513]
    for length in [*range(34), *odd]:
        for associated in (0, 8) if length < 34 else (12,):
            name = f"{length} bytes, {associated} associated"
            case = Case(noise(name + "k", 32), noise(name + "n", 24), noise(name + "a", associated))
            case.add(file, name, noise(name, length))
    for associated in [*range(1, 18), 30, 31, 32, 33, 47, 127, 128, 129, 255, 256, 257, 511, 512, 513]:
        name = f"{associated} associated"
        case = Case(noise(name + "k", 32), noise(name + "n", 24), noise(name + "a", associated))
        case.add(file, name, noise(name, 16))
    for name, length, associated in (("a page", 4056, 12), ("a descriptor", 40, 2), ("a key", 56, 65)):
        case = Case(noise(name + "k", 32), noise(name + "n", 24), noise(name + "a", associated))
        case.add(file, f"as large as {name}", noise(name, length))


def ciphertexts(file: File) -> None:
    patterns = {
        "zeros": "00", "ones": "ff", "high bits": "80", "all but high bits": "7f", "every other byte": "ff00",
        "words of 2^31": "00000080", "words of 2^31 - 1": "ffffff7f", "long words of 2^63": "0000000000000080",
        "long words of 2^64 - 2": "feffffffffffffff"}
    case = Case(KEY, NONCE, noise("ciphertexts", 16))
    for name, pattern in patterns.items():
        for length in (32, 64, 128):
            data = bytes.fromhex(pattern)
            case.add(file, f"ciphertext of {name}, {length} bytes", data * (length // len(data)))
    for name, key, nonce in (
            ("zeros", bytes(32), bytes(24)), ("ones", b"\xff" * 32, b"\xff" * 24),
            ("zeros, nonce of ones", bytes(32), b"\xff" * 24), ("ones, nonce of zeros", b"\xff" * 32, bytes(24))):
        Case(key, nonce, b"").add(file, f"key of {name}", noise(name, 65))


# With NONCE's first 16 bytes and these numbers behind them Poly1305's key has, but for the bits that are always zero,
# limbs that few keys have: found by trying 2^27.
RARE = {
    "26 bits from 0 on of zero": 109_411_842, "26 bits from 0 on of one": 104_794_896,
    "26 bits from 26 on of zero": 100_097_789, "26 bits from 26 on of one": 100_529_265,
    "26 bits from 52 on of zero": 100_829_668, "26 bits from 52 on of one": 104_355_954,
    "26 bits from 78 on of zero": 100_267_829, "26 bits from 78 on of one": 102_263_917,
    "26 bits from 104 on of zero": 100_611_589, "26 bits from 104 on of one": 101_875_839,
    "its second word of one": 7_764_585, "its third word of zero": 22_589_149, "its third word of one": 33_687_922,
    "its fourth word of zero": 126_462_354, "its fourth word of one": 106_044_868}


def poly_keys(file: File) -> None:
    for name, number in RARE.items():
        case = Case(KEY, NONCE[:16] + number.to_bytes(8, "little"), noise(name + "a", 64))
        case.add(file, f"Poly1305 key with {name}", noise(name, 128))
        case.add(file, f"Poly1305 key with {name}, ciphertext of ones", b"\xff" * 128)


def first(attempt: Callable[[bytes], bytes | None], name: str) -> bytes:
    """What an attempt makes of the first of many beginnings for which it can."""
    for number in range(1000):
        found = attempt(noise(f"{name} {number}", 32))
        if found is not None:
            return found
    raise AssertionError(name)


def tags(file: File) -> None:
    targets = {
        "zeros": 0, "ones": (1 << 128) - 1, "1": 1, "2^128 - 2": (1 << 128) - 2, "2^127": 1 << 127,
        "2^127 - 1": (1 << 127) - 1, "2^64": 1 << 64, "2^64 - 1": (1 << 64) - 1,
        "words of 2^31": int.from_bytes(bytes.fromhex("00000080") * 4, "little"),
        "words of 2^32 - 1, then 0": int.from_bytes(bytes.fromhex("ffffffff00000000") * 2, "little")}
    case = Case(KEY, NONCE, noise("tags", 32))
    for name, target in targets.items():
        def attempt(before: bytes) -> bytes | None:
            for carry in range(4):
                total = (target - case.s) % (1 << 128) + (carry << 128)
                found = case.reaching(total, before) if total < P else None
                if found:
                    return found
            return None

        ciphertext = first(attempt, "tag " + name)
        assert case.sealed(ciphertext)[-16:] == target.to_bytes(16, "little")
        case.add(file, f"tag of {name}", ciphertext)


def sums(file: File) -> None:
    case = Case(KEY, NONCE, noise("sums", 16))
    totals = {"0": 0, "p - 1": P - 1, "p - 2": P - 2}
    totals |= {f"{n}": n for n in (1, 2, 4, 5)}
    for bits in (26, 32, 44, 52, 64, 78, 88, 96, 104, 127, 128, 129):
        totals |= {f"2^{bits}": 1 << bits, f"2^{bits} - 1": (1 << bits) - 1}
    totals |= {"2^130 - 2^26 - 1": P - (1 << 26) + 4, "2^130 - 2^64": P - (1 << 64) + 5}
    for name, total in totals.items():
        for after, what in ((b"\xff" * 16, "a block of ones"), (bytes(16), "a block of zeros")):
            ciphertext = first(lambda before: case.passing(total, before, after), f"sum {name} {what}")
            case.add(file, f"sum of {name}, then {what}", ciphertext)
    for name, total in totals.items():
        if name in ("0", "1", "p - 1", "p - 2", "2^128", "2^128 - 1", "4", "5"):
            ciphertext = first(lambda before: case.reaching(total, before), f"last sum {name}")
            assert case.sum(case.blocks(ciphertext)) == total
            case.add(file, f"last sum of {name}", ciphertext)


def changes(file: File) -> None:
    for length in (0, 16, 33):
        name = f"to change, {length} bytes"
        case = Case(noise(name + "k", 32), noise(name + "n", 24), noise(name + "a", 3))
        whole = case.sealed(noise(name, length))
        case.add(file, name, whole[:length])
        tag = int.from_bytes(whole[length:], "little")

        def wrong(what: str, changed: int) -> None:
            file.change(f"{name}: tag {what}", "damaged", name, (length, changed.to_bytes(16, "little")))

        for bit in (0, 1, 7, 8, 31, 32, 33, 63, 64, 77, 96, 120, 121, 126, 127):
            wrong(f"with bit {bit} wrong", tag ^ 1 << bit)
        for low, high in ((0, 64), (31, 63), (63, 127)):
            wrong(f"with bits {low} and {high} wrong", tag ^ (1 << low | 1 << high))
        wrong("inverted", tag ^ (1 << 128) - 1)
        wrong("of zeros", 0)
        wrong("of ones", (1 << 128) - 1)
        wrong("with all high bits wrong", tag ^ int.from_bytes(b"\x80" * 16, "little"))
        wrong("with all low bits wrong", tag ^ int.from_bytes(b"\x01" * 16, "little"))
        wrong("one too large", (tag + 1) % (1 << 128))
        wrong("four too small", (tag - 4) % (1 << 128))
        wrong("backwards", int.from_bytes(whole[length:], "big"))
        for what, data in (("key", case.key), ("nonce", case.nonce), ("associated", case.associated)):
            for place in {0, len(data) // 2, len(data) - 1}:
                other = data[:place] + bytes([data[place] ^ 0x80]) + data[place + 1 :]
                file.change(f"{name}: {what} with byte {place} wrong", "damaged", name, **{what: other})
        file.change(f"{name}: associated one byte longer", "damaged", name, associated=case.associated + b"\0")
        file.change(f"{name}: associated one byte shorter", "damaged", name, associated=case.associated[:-1])
        file.change(f"{name}: nothing associated", "damaged", name, associated=b"")
        for place in {0, length // 2, length - 1} if length else ():
            file.change(
                f"{name}: ciphertext with byte {place} wrong", "damaged", name, (place, bytes([whole[place] ^ 1])))
        file.add(
            f"{name}: the associated bytes in front of the ciphertext", "damaged", case.associated + whole,
            key=case.key, nonce=case.nonce, associated=b"")


def main() -> None:
    file = File("seal", "Ciphertext and tag of XChaCha20-Poly1305, with key, nonce and associated data.")
    for kind in (sizes, ciphertexts, poly_keys, tags, sums, changes):
        kind(file)
    file.write()


if __name__ == "__main__":
    main()
