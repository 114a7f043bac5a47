"""Serve the page on this machine alone, and the data again whenever a run has moved on.

One event loop holds all connections, so that a thousand idle ones cost no thread; one thread reads the runs.
"""

import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http import HTTPStatus
from pathlib import PurePath
from traceback import print_exc

from fedgm.dashboard.access import Access
from fedgm.dashboard.messages import IDLE, TEXT, Answer, Request, parse, send
from fedgm.dashboard.source import PayloadSource

ADDRESS = "127.0.0.1"
MOST_WAITING = 128  # connections without a request yet: beyond, the one that has waited longest is closed
MOST_ANSWERS = 32  # answers under way
LONGEST_REQUEST = 2**14  # bytes
KINDS = {".png": "image/png", ".safetensors": "application/octet-stream"}  # all others are shown as text
FOREIGN = b"this page is for this machine alone\n"
LOCKED = (
    b"Open the address that `fedgm dashboard --serve` printed: it has the token that this page asks for.\n"
)
AWAY = (OSError, EOFError, asyncio.LimitOverrunError)  # a client that is gone, too slow, or sends too much


class Server:
    """Bound to the loopback address; port 0 takes any that is free."""

    def __init__(self, source: PayloadSource, port: int) -> None:
        self._socket = socket.create_server((ADDRESS, port))
        self.port: int = self._socket.getsockname()[1]
        self.source, self.access = source, Access(self.port)
        self._waiting: dict[asyncio.StreamWriter, None] = {}  # the oldest first
        self._answers, self._tasks = 0, set[asyncio.Task[None]]()
        self._thread = ThreadPoolExecutor(1, "dashboard")

    def address(self, token: str) -> str:
        """The address to open first."""
        return f"http://{ADDRESS}:{self.port}/?token={token}"

    async def serve(self) -> None:
        """Serve until cancelled."""
        listener = await asyncio.start_server(self._connected, sock=self._socket, limit=LONGEST_REQUEST)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            listener.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            self._thread.shutdown(wait=False, cancel_futures=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A task for each connection; asyncio's own would print that they were cancelled."""
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its answer."""
        self._waiting[writer] = None
        if len(self._waiting) > MOST_WAITING:
            oldest = next(iter(self._waiting))
            del self._waiting[oldest]
            oldest.transport.abort()
        try:
            async with asyncio.timeout(IDLE):
                request = parse(await reader.readuntil(b"\r\n\r\n"))
            self._waiting.pop(writer, None)
            await self._answer(request, writer)
        except AWAY:
            pass
        finally:
            self._waiting.pop(writer, None)
            writer.transport.abort()  # whatever was sent has been taken by the system
            with suppress(OSError):  # asked for, or asyncio would print it
                await writer.wait_closed()

    async def _answer(self, request: Request | None, writer: asyncio.StreamWriter) -> None:
        """Refusals are short and never wait; so only who may see the page can keep the server busy."""
        if request is None:
            return await send(writer, Answer(HTTPStatus.BAD_REQUEST))
        if (refusal := self._refusal(request)) is not None:
            return await send(writer, refusal)
        if self._answers >= MOST_ANSWERS:
            return await send(writer, Answer(HTTPStatus.SERVICE_UNAVAILABLE, b"too many requests at once\n"))
        self._answers += 1
        try:
            await send(writer, await self._content(request))
        finally:
            self._answers -= 1

    def _refusal(self, request: Request) -> Answer | None:
        """Foreign names that resolve to this machine (DNS rebinding), and whoever has no token."""
        if request.headers.get("host") not in (f"{ADDRESS}:{self.port}", f"localhost:{self.port}"):
            return Answer(HTTPStatus.FORBIDDEN, FOREIGN)
        if request.method != "GET":
            return Answer(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "GET"})
        has_cookie = self.access.recognises(request.headers.get("cookie", ""))
        if request.token is None:
            return None if has_cookie else Answer(HTTPStatus.FORBIDDEN, LOCKED)
        if self.access.accepts(request.token) or has_cookie:  # an address without the token takes its place
            headers = {"Location": "/", "Set-Cookie": self.access.set_cookie()}
            return Answer(HTTPStatus.SEE_OTHER, headers=headers)
        return Answer(HTTPStatus.FORBIDDEN, LOCKED)

    async def _content(self, request: Request) -> Answer:
        """The page, its data, or a file of a run; an error is shown in the terminal, no more."""
        loop = asyncio.get_running_loop()
        try:
            if request.path == "/":
                page = await loop.run_in_executor(self._thread, self.source.page)
                return Answer(HTTPStatus.OK, page, "text/html; charset=utf-8")
            if request.path == "/data.json":
                body, tag = await loop.run_in_executor(self._thread, self.source.data)
                same = request.headers.get("if-none-match") == tag
                status = HTTPStatus.NOT_MODIFIED if same else HTTPStatus.OK
                return Answer(status, b"" if same else body, "application/json", {"ETag": tag})
            return self._file(request.path)
        except Exception:
            print_exc()
            return Answer(HTTPStatus.INTERNAL_SERVER_ERROR, b"the terminal shows what went wrong\n")

    def _file(self, path: str) -> Answer:
        words = path.strip("/").split("/")
        file = self.source.file(words[1], words[2]) if len(words) == 3 and words[0] == "runs" else None
        if file is None:
            return Answer(HTTPStatus.NOT_FOUND, b"not on the page\n")
        return Answer(HTTPStatus.OK, file, KINDS.get(PurePath(path).suffix, TEXT))
