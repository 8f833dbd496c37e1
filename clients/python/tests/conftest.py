"""What the tests share."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the settings of the machine out of the tests."""
    for name in [name for name in os.environ if name.startswith("EBB_") and name != "EBB_BINARY"]:
        monkeypatch.delenv(name)
