"""How much of the machine is in use, as far as the standard library can tell."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path


def usage() -> dict[str, float]:
    """Return the shares of processors, memory and disk in use, each from 0 to 1; those that are unknown are left out."""
    known = {}
    with suppress(OSError, AttributeError):
        known["cpu"] = os.getloadavg()[0] / (os.cpu_count() or 1)
    with suppress(OSError, KeyError, ValueError):
        memory = _memory()
        known["memory"] = 1 - memory["MemAvailable"] / memory["MemTotal"]
    with suppress(OSError):
        disk = shutil.disk_usage(Path.cwd())
        known["disk"] = disk.used / disk.total
    return {name: round(min(max(share, 0.0), 1.0), 3) for name, share in known.items()}


def _memory() -> dict[str, int]:
    lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    pairs = (line.split(":", 1) for line in lines)
    return {name: int(value.split()[0]) for name, value in pairs}
