"""A bad network: a relay of TCP connections with a rate, and with cuts when told."""

import asyncio
import threading


class Proxy:
    """Listens on `port` of the loopback; `target` may change. `rate` is in bytes a second for all together."""

    def __init__(self, target, rate=None):
        self.target, self.rate = target, rate
        self.writers, self.is_open, self.debt = set(), True, 0.0
        self.loop = asyncio.new_event_loop()
        ready = threading.Event()

        def run():
            asyncio.set_event_loop(self.loop)
            server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            self.loop.run_forever()

        threading.Thread(target=run, daemon=True).start()
        ready.wait()

    async def _serve(self, reader, writer):
        if not self.is_open:
            return writer.transport.abort()
        try:
            reader2, writer2 = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            return writer.transport.abort()
        both = {writer, writer2}
        self.writers |= both
        await asyncio.gather(self._copy(reader, writer2), self._copy(reader2, writer))
        self.writers -= both

    async def _copy(self, reader, writer):
        try:
            while True:
                data = await reader.read(1 << 16)
                if not data:
                    break
                if self.rate:
                    now = self.loop.time()
                    self.debt = max(self.debt, now) + len(data) / self.rate
                    if self.debt - now > 0.02:
                        await asyncio.sleep(self.debt - now)
                writer.write(data)
                await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        writer.close()

    def cut(self, seconds=0):
        """Ends all connections, and takes none for a while."""
        def now():
            self.is_open = seconds == 0
            for writer in list(self.writers):
                writer.transport.abort()
            if seconds:
                self.loop.call_later(seconds, self._open)
        self.loop.call_soon_threadsafe(now)

    def _open(self):
        self.is_open = True
