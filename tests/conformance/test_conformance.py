"""Every method in the folder keeps every promise of the contract. Nothing is listed here by hand."""

from __future__ import annotations

import pytest

from conformance import kit
from partly import catalogue

METHODS = catalogue.discover()


@pytest.mark.parametrize("check", kit.checks().values(), ids=kit.checks())
@pytest.mark.parametrize("entry", METHODS.values(), ids=METHODS)
def test_method(entry: catalogue.Entry, check: kit.Check) -> None:
    check(entry)
