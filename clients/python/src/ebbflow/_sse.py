"""Server-sent events, as far as the API sends them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass
class Message:
    """One message of a stream. A comment, which only keeps the connection alive, has no data."""

    event: str = "message"
    data: str = ""
    id: str = ""


def messages(lines: Iterable[bytes]) -> Iterator[Message]:
    """Parse a stream. Comments are messages, too, so that a reader can check its clock while nothing happens."""
    message, is_empty = Message(), True
    for raw in lines:
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if not is_empty:
                yield message
            message, is_empty = Message(), True
            continue
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        is_empty = False
        if name == "event":
            message.event = value
        elif name == "id":
            message.id = value
        elif name == "data":
            message.data = f"{message.data}\n{value}" if message.data else value
