"""Secrets: where they are found, and how they are kept out of what is reported.

A secret is in the variable `EBB_SECRET_NAME`, or in the file `NAME` of the folder that `EBB_SECRETS_DIR` names. A Python worker
serves one tenant, so its names are without the tenant.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from .errors import PermanentError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,99}")
_MAX_BYTES = 64 * 1024
_MASK = "***"
#: Shorter values are part of ordinary words, and masking them would make logs unreadable.
_MIN_LENGTH = 4


def find_secret(name: str) -> str | None:
    """Return a secret of this machine; none if there is none of that name."""
    if not _NAME.fullmatch(name):
        raise PermanentError(f"`{name}` is not the name of a secret: use letters, digits, `_` and `-`")
    value = os.environ.get(f"EBB_SECRET_{name}")
    if value is not None:
        return value
    folder = os.environ.get("EBB_SECRETS_DIR")
    return _read(Path(folder), name) if folder else None


def _read(folder: Path, name: str) -> str | None:
    try:
        # Kubernetes mounts each secret as a link to a file in the same folder. Other links could lead anywhere.
        root, path = os.path.realpath(folder), os.path.realpath(folder / name)
        if os.path.commonpath([root, path]) != root:
            return None
        if not Path(path).is_file():
            return None
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return None
    with os.fdopen(opened, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    return content.decode("utf-8").rstrip("\r\n") if len(content) <= _MAX_BYTES else None


class Masker:
    """Replaces secrets by `***`, also where they are escaped or encoded.

    It guards against accidents: code that wants to show a secret can always write it in another way.
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Mask another secret from now on."""
        if len(secret) < _MIN_LENGTH:
            return
        self._forms.update(form for form in _forms(secret) if len(form) >= _MIN_LENGTH)
        # The longest first: a part of a secret may be a secret, too.
        longest = sorted(self._forms, key=len, reverse=True)
        self._pattern = re.compile("|".join(re.escape(form) for form in longest))

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return text if self._pattern is None else self._pattern.sub(_MASK, text)

    def value(self, value: Any) -> Any:
        """Return a JSON value without secrets, in keys, too."""
        if self._pattern is None:
            return value
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item) for item in value]
        return value


def _forms(secret: str) -> Iterable[str]:
    data = secret.encode("utf-8", "surrogateescape")
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    escaped = quote(data, safe="")
    yield escaped
    yield re.sub("%[0-9A-F]{2}", lambda found: found[0].lower(), escaped)
    yield data.hex()
    yield data.hex().upper()
    yield base64.b64encode(data).decode()
    for before in range(3):
        # In base64, a value looks different at each of three positions. Its outer letters depend on its neighbours.
        encoded = base64.b64encode(b"\0" * before + data).decode()
        first, end = (0, 2, 3)[before], len(encoded.rstrip("=")) - (1 if encoded.endswith("=") else 0)
        yield encoded[first:end]
        yield encoded[first:end].replace("+", "-").replace("/", "_")
