"""Requests and answers of the served page: as much of HTTP as a browser needs for it."""

import asyncio
from dataclasses import dataclass, field
from http import HTTPStatus
from io import SEEK_END, BytesIO
from typing import BinaryIO
from urllib.parse import parse_qs, unquote, urlsplit

IDLE = 10.0  # seconds in which a client must send its request, or take the next piece of its answer
PIECE = 2**18  # bytes sent at a time
TEXT = "text/plain; charset=utf-8"
HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True)
class Request:
    """The parts of a request that are looked at; names of headers are in lower case."""

    method: str
    path: str
    token: str | None
    headers: dict[str, str]


@dataclass(frozen=True)
class Answer:
    """What is sent; a file is read while it is sent, and closed."""

    status: HTTPStatus
    body: bytes | BinaryIO = b""
    kind: str = TEXT
    headers: dict[str, str] = field(default_factory=dict[str, str])


def parse(head: bytes) -> Request | None:
    """The request in the bytes up to the empty line; None if it is malformed."""
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    try:
        url = urlsplit(words[1])
        query = parse_qs(url.query, keep_blank_values=True, max_num_fields=20)
    except ValueError:
        return None
    pairs = [line.partition(":") for line in lines if line]
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    return Request(words[0], unquote(url.path), query.get("token", [None])[0], headers)


async def send(writer: asyncio.StreamWriter, answer: Answer) -> None:
    """Send piece by piece: memory holds one piece, and a client that takes none in time is dropped."""
    with BytesIO(answer.body) if isinstance(answer.body, bytes) else answer.body as file:
        left = file.seek(0, SEEK_END)  # a file may grow while it is sent
        file.seek(0)
        fields = {"Content-Type": answer.kind, "Content-Length": str(left), **HEADERS, **answer.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        piece = f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n{head}\r\n".encode("latin-1")
        writer.transport.set_write_buffer_limits(0)  # drain() returns once the system has taken every byte
        while piece:
            writer.write(piece)
            async with asyncio.timeout(IDLE):
                await writer.drain()
            piece = file.read(min(PIECE, left))
            left -= len(piece)
