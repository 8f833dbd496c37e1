"""Secrets stay out of reports, however they are written."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from urllib.parse import quote

import pytest

from ebbflow._secrets import Masker, find_secret

SECRET = 'p@ss "wörd"/+ 4711'


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        json.dumps(SECRET),
        json.dumps(SECRET, ensure_ascii=False),
        quote(SECRET, safe=""),
        quote(SECRET, safe="").lower(),
        SECRET.encode().hex(),
        SECRET.encode().hex().upper(),
        base64.b64encode(SECRET.encode()).decode(),
        base64.urlsafe_b64encode(b"user:" + SECRET.encode()).decode(),
        base64.b64encode(b"me:" + SECRET.encode() + b"!").decode(),
        base64.b64encode(b"a:" + SECRET.encode()).decode(),
    ],
)
def test_every_usual_form_is_masked(form: str) -> None:
    masked = Masker([SECRET]).text(f"before {form} after")
    assert "***" in masked
    assert masked.startswith("before ") and masked.endswith(" after")
    assert len(masked) < len("before  after") + 14, "hardly anything of it is left"


def test_the_longest_secret_wins_and_short_values_are_no_secrets() -> None:
    masker = Masker(["abcd", "abcdefgh", "on"])
    assert masker.text("abcdefgh on abcd") == "*** on ***"
    assert masker.value({"abcd": ["x abcd", 1, None, True]}) == {"***": ["x ***", 1, None, True]}


def test_without_secrets_nothing_changes() -> None:
    value = {"a": [1, "two"]}
    assert Masker().value(value) is value


def test_a_secret_is_found_in_a_folder_as_kubernetes_mounts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, outside = tmp_path / "secrets", tmp_path / "secrets-of-others"
    (folder / "..2026_01_31").mkdir(parents=True)
    (folder / "..2026_01_31" / "API_KEY").write_text("from the folder\n")
    (folder / "..data").symlink_to("..2026_01_31")
    (folder / "API_KEY").symlink_to("..data/API_KEY")
    (folder / "PLAIN").write_text("plain")
    outside.write_text("of others")
    (folder / "OUTSIDE").symlink_to(outside)
    (folder / "LOOP").symlink_to("LOOP")
    (folder / "FOLDER").mkdir()
    os.mkfifo(folder / "PIPE")
    (tmp_path / "link").symlink_to(folder)
    for named in (folder, tmp_path / "link"):
        monkeypatch.setenv("EBB_SECRETS_DIR", str(named))
        assert (find_secret("API_KEY"), find_secret("PLAIN")) == ("from the folder", "plain")
        assert [find_secret(name) for name in ("OUTSIDE", "LOOP", "FOLDER", "PIPE", "NONE")] == [None] * 5
    monkeypatch.setenv("EBB_SECRET_API_KEY", "from the environment")
    assert find_secret("API_KEY") == "from the environment"
