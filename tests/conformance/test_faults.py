"""The kit on planted faults: each is rejected, and by the check that it is there for. The healthy one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import kit
from conformance.bench import entry_of
from conformance.digests import FAULTS
from partly.catalogue import Entry


def first_rejection(entry: Entry) -> str | None:
    for name, check in kit.checks().items():
        try:
            check(entry)
        except AssertionError:
            return name
    return None


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_fault(path: Path) -> None:
    entry = entry_of(path)
    assert first_rejection(entry) == entry.module.REJECTED_BY


def test_every_check_rejects_some_fault() -> None:
    reasons = [entry_of(path).module.REJECTED_BY for path in FAULTS]
    assert set(reasons) == {*kit.checks(), None}
