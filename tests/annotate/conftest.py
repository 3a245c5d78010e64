"""The PostgreSQL server that the tests of the ledger start for themselves, for these tests too."""

from __future__ import annotations

import importlib.util
from pathlib import Path

found = importlib.util.spec_from_file_location("ledger_places", Path(__file__).parents[1] / "ledger" / "conftest.py")
assert found is not None
assert found.loader is not None
ledger_places = importlib.util.module_from_spec(found)
found.loader.exec_module(ledger_places)
server = ledger_places.server
