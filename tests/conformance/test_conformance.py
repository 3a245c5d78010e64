"""Every method in the folder keeps every promise of the contract. Nothing is listed here by hand."""

from __future__ import annotations

import pytest

from conformance import kit
from partly import methods
from partly.methods import MethodInfo

METHODS = methods.discover()


@pytest.mark.parametrize("check", kit.checks().values(), ids=kit.checks())
@pytest.mark.parametrize("info", METHODS.values(), ids=METHODS)
def test_method(info: MethodInfo, check: kit.Check) -> None:
    try:
        check(info)
    except kit.DoesNotApply as reason:
        pytest.skip(f"{info.name}: {reason}")
