#!/usr/bin/env python3
"""Mixed work on a mounted space of many GiB for a long time; then every byte is compared and the vault checked.

Run by scripts/soak. Each thread has an album of its own and remembers a recipe of every file: which pieces of a pool of
random bytes were written where. Exit 1 if a file is lost or has a wrong byte, if a call failed that should not, or if
the vault's check finds something.
"""
import argparse, os, random, signal, struct, subprocess, sys, threading, time

POOL_BYTES = 64 << 20


def jpeg_head(day, number):
    """The beginning of a JPEG taken on that day, unique by its number."""
    text = f"{day[0]:04}:{day[1]:02}:{day[2]:02} 12:00:00\0".encode()
    exif = b"Exif\0\0MM\0*" + struct.pack(">IHHHIII", 8, 1, 0x8769, 4, 1, 26, 0)
    exif += struct.pack(">HHHIII", 1, 0x9003, 2, len(text), 44, 0) + text
    return b"\xff\xd8\xff\xe1" + struct.pack(">H", len(exif) + 2) + exif + b"\xff\xfe\x00\x12" + b"%016x" % number


class File:
    """A file's expected bytes: its size, and pieces (offset, bytes or pool range), the later over the earlier."""

    def __init__(self, path, is_photo):
        self.path, self.is_photo, self.size, self.pieces = path, is_photo, 0, []

    def wrote(self, offset, piece):
        length = len(piece) if isinstance(piece, bytes) else piece[1]
        self.pieces.append((offset, length, piece))
        self.size = max(self.size, offset + length)

    def truncated(self, size):
        self.pieces = [(o, min(l, size - o), p) for o, l, p in self.pieces if o < size]
        self.size = size

    def expected(self, pool, start, count):
        out = bytearray(count)
        for offset, length, piece in self.pieces:
            low, high = max(offset, start), min(offset + length, start + count)
            if low < high:
                at = low - offset
                source = piece[at : at + high - low] if isinstance(piece, bytes) else pool[
                    piece[0] + at : piece[0] + at + high - low]
                out[low - start : high - start] = source
        return bytes(out)


class Soak:
    def __init__(self, options):
        self.options = options
        self.pool = random.Random(options.seed).randbytes(POOL_BYTES)
        self.errors, self.files, self.total = [], {}, 0
        self.lock, self.counts = threading.Lock(), {}
        self.pause, self.idle = threading.Event(), threading.Semaphore(0)
        self.resume = threading.Event()
        self.largest = 0

    def command(self, *words, text=""):
        ended = subprocess.run([self.options.obscura, *words], input=text, text=True, capture_output=True)
        if ended.returncode != 0:
            self.errors.append(f"{' '.join(words[:1])}: {ended.returncode}: {ended.stderr.strip()}")
        return ended

    def mount(self):
        self.command("mount", self.options.vault, self.options.mount, "-o", "trash=0", "--password-stdin", text="soak\n")

    def unmount(self):
        for _ in range(50):
            ended = subprocess.run([self.options.obscura, "unmount", self.options.mount], capture_output=True, text=True)
            if "using it" not in ended.stderr:
                break
            time.sleep(0.2)
        if ended.returncode != 0:
            self.errors.append(f"unmount: {ended.stderr.strip()}")

    def kill(self):
        for name in os.listdir("/proc"):
            try:
                words = open(f"/proc/{name}/cmdline", "rb").read().split(b"\0")
            except OSError:
                continue
            if len(words) > 3 and words[1] == b"--daemon" and words[-2] == self.options.mount.encode():
                os.kill(int(name), signal.SIGKILL)

    def count(self, kind, change=0):
        with self.lock:
            self.counts[kind] = self.counts.get(kind, 0) + 1
            self.total += change
            self.largest = max(self.largest, self.total)

    def worker(self, number, end):
        work = Worker(self, number)
        while time.time() < end and len(self.errors) < 20:
            if self.pause.is_set():
                self.idle.release()
                self.resume.wait()
            try:
                work.step()
            except OSError as error:
                self.errors.append(f"thread {number}, {work.doing}: {error}")
                if error.errno == 30 and not any("Read-only  " in known for known in self.errors):
                    status = subprocess.run(
                        [self.options.obscura, "status", self.options.mount], text=True, capture_output=True)
                    self.errors += [line for line in status.stdout.splitlines() if line.startswith("Read-only")]
        self.idle.release()

    def interrupt(self, threads, action):
        """Lets all threads end what they do, then acts; they go on after a mount."""
        self.resume.clear()
        self.pause.set()
        for _ in threads:
            self.idle.acquire()
        time.sleep(0.3)
        action()
        self.mount()
        self.pause.clear()
        self.resume.set()

    def run(self):
        o = self.options
        self.command("create", o.vault, "--spaces", str(o.spaces), *(["--size", str(o.bytes * 3 // 2)] if o.spaces > 1 else []),
                     "--kdf-memory", "8M", "--kdf-passes", "1", "--password-stdin", text="soak\n")
        os.makedirs(o.mount, exist_ok=True)
        self.mount()
        end = time.time() + o.seconds
        threads = [threading.Thread(target=self.worker, args=(n, end), daemon=True) for n in range(o.threads)]
        for thread in threads:
            thread.start()
        rng, next_stop = random.Random(o.seed + 1), time.time() + o.seconds / 8
        while any(t.is_alive() for t in threads):
            time.sleep(1)
            if time.time() > next_stop and time.time() < end - 5:
                kind = rng.choice(["unmount", "kill", "idle"])
                if kind != "idle":
                    self.interrupt(threads, self.unmount if kind == "unmount" else self.kill)
                else:
                    self.resume.clear(); self.pause.set()
                    for _ in threads: self.idle.acquire()
                    time.sleep(min(40, o.seconds / 20))
                    self.pause.clear(); self.resume.set()
                self.count(kind)
                next_stop = time.time() + o.seconds / 8
                print(f"soak: {kind}; {self.total >> 20} MiB in {sum(map(len, self.files.values()))} files, "
                      f"{self.disk() >> 20} MiB on disk, {len(self.errors)} errors", flush=True)
        peak = self.disk()
        self.unmount()
        after = self.disk()
        self.mount()
        lost, wrong = self.compare()
        self.unmount()
        checked = subprocess.run([o.obscura, "check", o.vault, "--password-stdin"], input="soak\n", text=True, capture_output=True)
        print(f"soak: {self.counts}")
        print(f"soak: at most {self.largest >> 20} MiB, at the end {self.total >> 20} MiB in it, {peak >> 20} MiB on disk, "
              f"{after >> 20} MiB after the unmount")
        print(f"soak: {len(lost)} lost, {len(wrong)} wrong, {len(self.errors)} errors; check: {checked.returncode} "
              f"{checked.stdout.strip()[-400:]}{checked.stderr.strip()[-200:]}")
        for line in (lost + wrong + self.errors)[:20]:
            print("  " + line)
        return 1 if lost or wrong or self.errors or checked.returncode else 0

    def disk(self):
        total = 0
        for directory, _, names in os.walk(self.options.vault):
            for name in names:
                try:
                    total += os.stat(os.path.join(directory, name)).st_blocks * 512
                except OSError:
                    pass
        return total

    def compare(self):
        lost, wrong = [], []
        for files in self.files.values():
            for file in files:
                try:
                    with open(file.path, "rb") as stream:
                        start = 0
                        while start < file.size or start == 0:
                            found = stream.read(4 << 20)
                            if found != file.expected(self.pool, start, len(found)) or (not found and start < file.size):
                                wrong.append(f"{file.path}: from byte {start}")
                                break
                            start += max(len(found), 1)
                        else:
                            if stream.read(1):
                                wrong.append(f"{file.path}: too long")
                except OSError as error:
                    lost.append(f"{file.path}: {error.strerror}")
        return lost, wrong


class Worker:
    def __init__(self, soak, number):
        self.soak, self.number, self.serial, self.doing = soak, number, 0, ""
        self.rng = random.Random(soak.options.seed * 100 + number)
        self.album = f"{soak.options.mount}/albums/soak {number}"
        self.mine = soak.files.setdefault(number, [])
        os.makedirs(self.album, exist_ok=True)

    def size(self):
        draw = self.rng.random()
        if draw < 0.05: return self.rng.randrange(0, 600)
        if draw < 0.45: return self.rng.randrange(600, 40_000)
        if draw < 0.60: return self.rng.randrange(40_000, 600_000)
        if draw < 0.99: return self.rng.randrange(600_000, 8_000_000)
        return self.rng.randrange(8_000_000, 60_000_000)

    def piece(self, size):
        return (self.rng.randrange(0, POOL_BYTES - size), size)

    def write_new(self, path, is_photo):
        """Writes a new file and returns what it holds."""
        self.serial += 1
        file = File(path, is_photo)
        with open(path, "wb", buffering=0) as stream:
            if is_photo:
                day = (self.rng.randrange(2000, 2026), self.rng.randrange(1, 13), self.rng.randrange(1, 29))
                head = jpeg_head(day, self.number << 48 | self.serial)
                stream.write(head)
                file.wrote(0, head)
            rest = self.piece(self.size())
            at = 0
            while at < rest[1]:
                count = min(1 << 20, rest[1] - at)
                at += stream.write(self.soak.pool[rest[0] + at : rest[0] + at + count])
            file.wrote(file.size, rest)
            if self.rng.random() < 0.1: os.fsync(stream.fileno())
        return file

    def step(self):
        soak, rng = self.soak, self.rng
        share = soak.total / soak.options.bytes
        draw = rng.random()
        if not self.mine or share < 0.5 or (draw < 0.3 and share < 1):
            self.doing = "put"
            is_photo = rng.random() < 0.8
            file = self.write_new(f"{self.album}/f{self.serial:07}" + (".jpg" if is_photo else ".txt"), is_photo)
            self.mine.append(file)
            soak.count("put", file.size)
        elif draw < 0.55 or share >= 1:
            self.doing = "remove"
            file = self.mine.pop(rng.randrange(len(self.mine)))
            if file.is_photo:
                self.remove_photo(file)
            else:
                os.unlink(file.path)
            soak.count("remove", -file.size)
        elif draw < 0.75:
            self.doing = "save"
            at = rng.randrange(len(self.mine))
            old = self.mine[at]
            new = self.write_new(old.path + ".tmp", old.is_photo)
            os.rename(new.path, old.path)
            new.path = old.path
            self.mine[at] = new
            soak.count("save", new.size - old.size)
        elif draw < 0.85:
            self.doing = "edit"
            file = rng.choice(self.mine)
            if len(file.pieces) > 40: return
            piece = self.piece(rng.randrange(1, 300_000))
            offset = rng.randrange(200 if file.is_photo else 0, max(file.size, 201) + 1)
            before = file.size
            with open(file.path, "r+b", buffering=0) as stream:
                stream.seek(offset)
                stream.write(soak.pool[piece[0] : piece[0] + piece[1]])
            file.wrote(offset, piece)
            soak.count("edit", file.size - before)
        elif draw < 0.9:
            self.doing = "truncate"
            file = rng.choice(self.mine)
            before = file.size
            size = rng.randrange(200, max(before, 200) * 5 // 4 + 1)
            os.truncate(file.path, size)
            file.truncated(size)
            soak.count("truncate", size - before)
        elif draw < 0.95:
            self.doing = "rename"
            file = rng.choice(self.mine)
            self.serial += 1
            path = f"{self.album}/r{self.serial:07}" + os.path.splitext(file.path)[1]
            os.rename(file.path, path)
            file.path = path
            soak.count("rename")
        else:
            self.doing = "read"
            file = rng.choice(self.mine)
            start = rng.randrange(0, file.size + 1)
            with open(file.path, "rb", buffering=0) as stream:
                stream.seek(start)
                found = stream.read(1 << 20)
            if found != file.expected(soak.pool, start, len(found)):
                soak.errors.append(f"{file.path}: wrong bytes from {start} on while mounted")
            soak.count("read")

    def remove_photo(self, file):
        day = os.getxattr(file.path, "user.obscura.captured").decode()[:10].replace(":", "-")
        inode = os.stat(file.path).st_ino
        for entry in os.scandir(f"{self.soak.options.mount}/moments/{day}"):
            if entry.inode() == inode:
                os.unlink(entry.path)
                return
        raise OSError(2, "the moment is missing", file.path)


def main():
    parser = argparse.ArgumentParser()
    for name in ("obscura", "vault", "mount"): parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--bytes", type=int, default=20 << 30)
    parser.add_argument("--spaces", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(Soak(parser.parse_args()).run())


if __name__ == "__main__":
    main()
