"""The API's names of the levels of `logging`."""

from __future__ import annotations

import logging

_LEVELS = ((logging.ERROR, "error"), (logging.WARNING, "warning"), (logging.INFO, "info"))


def level_name(level: int) -> str:
    """Return the API's name of a level, which has fewer of them."""
    return next((name for least, name in _LEVELS if level >= least), "debug")
