"""Photos for measurements, all different, the same ones each time for the same numbers."""
import os
import random
import struct
import subprocess


def exif(number):
    """An APP1 segment with the date on which photo `number` was taken: some ten a day."""
    day = number // 10
    text = b"%04d:%02d:%02d %02d:%02d:%02d\0" % (
        2015 + day // 336, day // 28 % 12 + 1, day % 28 + 1, number % 10 + 8, number % 60, number * 7 % 60)
    entry = struct.pack(">HHII", 0x9003, 2, len(text), 44)
    tiff = b"MM\0*\0\0\0\x08" + struct.pack(">HHHIII", 1, 0x8769, 4, 1, 26, 0) + struct.pack(">H", 1) + entry
    body = b"Exif\0\0" + tiff + b"\0\0\0\0" + text
    return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body


def stand_in(number, size):
    """A file that is a JPEG by its first and last bytes, with `size` bytes that do not compress between them."""
    noise = random.Random(number).randbytes(max(0, size - 200)).replace(b"\xff", b"\xfe")
    return b"\xff\xd8" + exif(number) + b"\xff\xda\0\x02" + noise + b"\xff\xd9"


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make_library(directory, count, progress):
    """Photos of 1 to 7 MB, 3.3 on average, a hundred in a folder."""
    sizes = random.Random(1)
    for number in range(count):
        size = int(min(7e6, max(1e6, sizes.lognormvariate(15, 0.45))))
        write(f"{directory}/{number // 100:03d}/IMG_{number:05d}.jpg", stand_in(number, size))
        progress(f"making photos: {number + 1} of {count}")


def make_small(directory, count, progress):
    """Photos of 4 KB, three hundred in a folder."""
    for number in range(count):
        write(f"{directory}/{number // 300:03d}/S{number:06d}.jpg", stand_in(10**6 + number, 4096))
    progress(f"making small photos: {count}")


def make_pixels(directory, count, width, height, progress):
    """Photos that can be decoded. Ten pictures are computed; each photo is one of them with a comment of its own."""
    kinds = []
    for kind in range(min(10, count)):
        choose = random.Random(kind)
        rows = []
        tile = bytearray(choose.randbytes(width * 3))
        for row in range(height):
            # Slopes with grain, which cost an encoder and a decoder about as much as a photo does.
            shift = choose.randrange(width) * 3
            grain = tile[shift:] + tile[:shift]
            level = 40 + (row * 150 // height + kind * 12) % 150
            rows.append(bytes(grain).translate(bytes((level + (value >> 3)) & 255 for value in range(256))))
        picture = b"P6 %d %d 255\n" % (width, height) + b"".join(rows)
        kinds.append(subprocess.run(
            ["cjpeg", "-quality", "92"], input=picture, stdout=subprocess.PIPE, check=True).stdout)
        progress(f"making pictures: {kind + 1} of {min(10, count)}")
    for number in range(count):
        jpeg = kinds[number % len(kinds)]
        comment = b"photo %d" % number
        segment = b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment
        write(f"{directory}/IMG_{number:05d}.jpg", jpeg[:2] + exif(number) + segment + jpeg[2:])
    progress(f"making photos: {count}")
