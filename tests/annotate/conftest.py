"""The PostgreSQL server that the tests of the ledger start for themselves, for these tests too; and a browser."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

found = importlib.util.spec_from_file_location("ledger_places", Path(__file__).parents[1] / "ledger" / "conftest.py")
assert found is not None
assert found.loader is not None
ledger_places = importlib.util.module_from_spec(found)
found.loader.exec_module(ledger_places)
server, place = ledger_places.server, ledger_places.place


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A real browser. Tests that ask for it are skipped where there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()
