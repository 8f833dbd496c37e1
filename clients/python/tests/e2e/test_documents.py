"""The documents show code that the tests run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from .conftest import EXAMPLES, WORKFLOWS

ROOT = Path(__file__).parents[4]
PACKAGE = Path(__file__).parents[2]


def shown(example: str) -> str:
    """An example as documents show it: without its docstring, and with single blank lines."""
    return (EXAMPLES / example).read_text().split('"""\n', 1)[1].strip().replace("\n\n\n", "\n\n")


@pytest.mark.parametrize("document", [PACKAGE / "README.md", ROOT / "docs/src/guides/python.md"])
def test_the_worker_of_the_documents_is_the_one_that_is_tested(document: Path) -> None:
    assert shown("worker.py") in document.read_text()
    assert len(shown("worker.py").splitlines()) <= 15


def test_the_program_of_the_readme_is_the_one_that_is_tested() -> None:
    assert shown("program.py") in (PACKAGE / "README.md").read_text()


def test_the_workflow_of_the_documentation_is_the_one_that_is_tested() -> None:
    assert dedent(WORKFLOWS["rasters"]).strip() in (ROOT / "docs/src/guides/python.md").read_text()
