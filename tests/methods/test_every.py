"""Each method has a test of its own, found by its name; and from which epoch on each may be judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import partly.methods
from conformance.bench import make_pool, make_task
from partly.clock import Clock

HERE = Path(__file__).parent
FILES = [path for path in Path(partly.methods.__file__).parent.glob("*.py") if path.stem != "__init__"]


def test_every_method_has_a_test_of_its_name() -> None:
    assert len(FILES) >= 37
    without = [path.stem for path in FILES if not (HERE / f"test_{path.stem}.py").exists()]
    assert not without, f"These methods have no file tests/methods/test_NAME.py: {without}"


def test_every_test_is_that_of_a_method() -> None:
    named = {f"test_{path.stem}" for path in FILES} | {Path(__file__).stem}
    left_over = [path.stem for path in HERE.glob("test_*.py") if path.stem not in named]
    assert not left_over, f"There are no methods of these names: {left_over}"


# Of ten epochs with three steps each, the first that may be chosen, counted from 0; all others may be from the first.
FIRST: list[tuple[str, dict[str, Any], int]] = [
    ("cls", {}, 1),
    ("co-teaching", {}, 1),
    ("co-teaching-plus", {}, 5),
    ("curriculum", {}, 7),  # untrained it has no weak labels: when the last round is over none can come any more
    ("curriculum", {"strategy": "two-steps"}, 5),
    ("decoupling", {"warmup": 0.25}, 3),
    ("em-apl", {}, 5),
    ("imcl", {"warmup": 0.34}, 3),
    ("jocor", {}, 1),
    ("large-loss", {}, 1),
    ("latent-noise", {"warmup": 0.55}, 5),  # the last step of the sixth epoch begins at 17 / 30
    ("latent-noise", {"warmup": 0.58}, 6),
    ("role", {}, 0),
    ("role", {"linear_share": 0.7}, 7),
    ("splc", {}, 1),
    ("splc", {"start": 0.05}, 0),  # the third step begins at 2 / 30
]


@pytest.mark.parametrize(("name", "settings", "first"), FIRST)
def test_epochs_that_only_prepare_are_not_chosen(name: str, settings: dict[str, Any], first: int) -> None:
    assert settled(name, settings) == [epoch >= first for epoch in range(10)]


def test_all_epochs_of_other_methods_may_be_chosen() -> None:
    others = partly.methods.discover().keys() - {name for name, _, _ in FIRST}
    assert len(others) >= 20
    assert [name for name in others if not all(settled(name, {}))] == []


def settled(name: str, settings: dict[str, Any]) -> list[bool]:
    info = partly.methods.find(name)
    method = info.build(make_task(make_pool()), info.complete(settings))
    return [method.may_be_best(Clock(0, epochs=10, steps=3, epoch=epoch, step=3)) for epoch in range(10)]
