"""The kit on planted faults: each is rejected, and by the check that it is there for. The healthy one is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance import kit
from conformance.bench import info_of
from conformance.digests import FAULTS
from partly.methods import MethodInfo


def first_rejection(info: MethodInfo) -> str | None:
    for name, check in kit.checks().items():
        try:
            check(info)
        except kit.DoesNotApply:
            continue
        except AssertionError:
            return name
    return None


@pytest.mark.parametrize("path", FAULTS, ids=lambda path: path.stem)
def test_fault(path: Path) -> None:
    info = info_of(path)
    assert first_rejection(info) == info.module.REJECTED_BY


def test_every_check_rejects_some_fault() -> None:
    reasons = [info_of(path).module.REJECTED_BY for path in FAULTS]
    assert set(reasons) == {*kit.checks(), None}
