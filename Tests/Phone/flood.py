"""What no phone does: a million requests, connections that say nothing or a byte at a time, sizes that are lies."""

import os
import socket
import ssl
import subprocess
import threading
import time

from place import Place

ANY = ssl.create_default_context()
ANY.check_hostname = False
ANY.verify_mode = ssl.CERT_NONE


class Device:
    """curl with a cookie."""

    def __init__(self, place):
        self.place, self.jar = place, place.directory + "/jar"
        self.curl("join", "-c", self.jar, "--data-binary", place.code)

    def curl(self, path, *words):
        """The status of the answer, and the seconds that it took."""
        words = ["curl", "-sk", "-m", "300", "-o", "/dev/null", "-w", "%{http_code} %{time_total}", "-b", self.jar, *words]
        output = subprocess.run([*words, self.place.address + path], capture_output=True, text=True).stdout
        status, seconds = output.split()
        return int(status), float(seconds)

    def photo(self, name, path):
        status, seconds = self.curl("photo/" + name, "-T", path)
        print("    a photo meanwhile: %d, %.2f s" % (status, seconds), flush=True)
        if status not in (200, 201):
            raise RuntimeError("another's transfer was harmed")


def report(place, what):
    print("%s: memory of its own %s KiB, processor seconds %s, descriptors %s" % (
        what, place.memory(), place.seconds(),
        [len(os.listdir("/proc/%d/fd" % process)) for process in place.processes()]), flush=True)


def requests(place, device, path, count):
    """`count` requests of strangers, 32 at a time, in twenty parts."""
    begun, sent, photos = time.monotonic(), 0, 0
    while sent < count:
        part = min(max(count // 20, 32), count - sent)
        flood = subprocess.Popen(
            ["ab", "-q", "-k", "-r", "-n", str(part), "-c", str(min(32, part)), place.address + "nothing"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        while True:
            device.photo("r%d.jpg" % (photos % 5), path)
            photos += 1
            try:
                flood.wait(15)
                break
            except subprocess.TimeoutExpired:
                pass
        lines = [line for line in flood.stdout.read().split("\n") if line.startswith(("Complete", "Failed", "Non-2xx"))]
        print("    " + "; ".join(" ".join(line.split()) for line in lines), flush=True)
        sent += part
        report(place, "%d requests in %.0f s" % (sent, time.monotonic() - begun))


def hold(place, device, path, count):
    """Connections that say nothing, begin a handshake, or send a request a byte a second."""
    held, stop = [], threading.Event()

    def drip(connection, request):
        for byte in request:
            if stop.wait(1):
                return
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                return

    for number in range(count):
        try:
            connection = socket.create_connection(("127.0.0.1", place.port), timeout=10)
            if number % 3 == 1:
                connection.sendall(b"\x16\x03\x01")
            elif number % 3 == 2:
                connection = ANY.wrap_socket(connection)
                threading.Thread(target=drip, args=(connection, b"GET /state HTTP/1.1\r\n" * 9), daemon=True).start()
            held.append(connection)
        except OSError:
            pass
    device.photo("held.jpg", path)
    report(place, "%d connections of strangers held" % len(held))
    time.sleep(25)
    device.photo("held2.jpg", path)
    report(place, "25 s later")
    stop.set()
    for connection in held:
        connection.close()


def lies(place, device, path):
    """Sizes that are not so, and names that lead elsewhere."""
    hundred = str(100 << 30)
    for words in (
            ["-H", "Content-Length: " + hundred, "-m", "5"], ["-H", "Content-Range: bytes 0-6999/" + hundred],
            ["-H", "Content-Length: " + str(1 << 61), "-m", "5"], ["-H", "Content-Length: -1"],
            ["-H", "Content-Length: 5", "-H", "Transfer-Encoding: chunked"]):
        print("   ", words[1], device.curl("photo/lie.jpg", "-T", path, *words)[0])
    for name in ("..%2f..%2fx", "a%00b.jpg", "n" * 1000, "%20", ".", "%2e%2e", "%", "a%0d%0aSet-Cookie:%20x"):
        print("   ", name[:30], device.curl("photo/" + name, "--path-as-is", "-T", path)[0])
    print("   ", sorted(os.listdir(place.album)))
    device.photo("after.jpg", path)


def endless(place, device, path, gigabytes):
    """A device that sends without an end, at 100 MB/s at most, of a length that it does not tell."""
    flood = subprocess.Popen(
        "head -c %dG /dev/zero | curl -sk -b %s -m 3000 -H Transfer-Encoding:chunked -H Expect: -T - "
        "-o /dev/null -w '%%{http_code}' %sphoto/endless" % (gigabytes, device.jar, place.address),
        shell=True, stdout=subprocess.PIPE, text=True)
    time.sleep(3)
    device.photo("beside.jpg", path)
    print("    endless: " + flood.communicate()[0], flush=True)
    left = [name for name in os.listdir(place.album) if name.startswith((".", "endless"))]
    if left:
        raise RuntimeError("something is left of a file that found no room: %s" % left)
    report(place, "%d GiB without a length" % gigabytes)


def fill(place, device, path):
    """Photos until the space is full: those that were said to have arrived are there, also after a new mount."""
    with open(path, "rb") as file:
        photo = file.read()
    arrived, status = [], 0
    for number in range(200):
        with open(path, "wb") as file:
            file.write(photo[:-8] + number.to_bytes(8, "big"))
        status = device.curl("photo/full-%03d.jpg" % number, "-T", path)[0]
        if status != 201:
            break
        arrived.append(number)
    print("    %d photos of %d bytes, then %d" % (len(arrived), len(photo), status), flush=True)
    small = place.directory + "/small.jpg"
    with open(small, "wb") as file:
        file.write(photo[:20_000])
    print("    a small one then: %d" % device.curl("photo/small.jpg", "-T", small)[0])
    place.stop()
    place.unmount()
    place.mount()
    for number in arrived:
        with open("%s/full-%03d.jpg" % (place.album, number), "rb") as file:
            if file.read() != photo[:-8] + number.to_bytes(8, "big"):
                raise RuntimeError("a photo is not as it was sent")
    if status != 507 or not arrived or any(name.startswith(".") for name in os.listdir(place.album)):
        raise RuntimeError("a full space is not told: %d" % status)
    subprocess.run([place.program, "check", place.mounted], check=True)


def flood(count, gigabytes):
    space = ["--spaces", "2", "--size", "256M", "--kdf-memory", "8M", "--kdf-passes", "1"]
    with Place(create=space) as place:
        place.start()
        path = place.directory + "/x.jpg"
        with open(path, "wb") as file:
            file.write(b"\xff\xd8\xff" + os.urandom(3_000_000))
        device = Device(place)
        report(place, "at first")
        lies(place, device, path)
        hold(place, device, path, 300)
        endless(place, device, path, gigabytes)
        requests(place, device, path, count)
        fill(place, device, path)
        print(place.stop(), place.errors().strip())
