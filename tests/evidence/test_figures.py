"""The figures of the evidence page."""

from __future__ import annotations

import pytest

from comparison.making import line
from evidence import figures
from evidence.claims import cells, rules, specs
from evidence.papers import Figure
from partly import methods

PAPERS = tuple(Figure("", "", "", "", "", "mAP", value, None) for value in (63.0, 60.0))


@pytest.fixture(autouse=True)
def figures_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specs.Claim, "_theirs", lambda *_: (PAPERS,))


def decide(seeds: int = 8, best_epoch: int = 3) -> list[rules.Decided]:
    """LSEP a point above cross-entropy, on so many seeds."""
    found = []
    for seed in range(seeds):
        for name, score in (("bce", 0.5), ("lsep", 0.52)):
            settings = methods.find(name).defaults()
            found.append(line(name, seed, score + 0.001 * (seed % 2), settings=settings, best_epoch=best_epoch))
    claim = specs.Claim(
        id="x", paper="Hsieh et al. 2021", where="", says="", experiment="e", data=("tiny",), heads=("linear",),
        scenarios=("uniform:0.5",), a=("lsep",), b=("bce",),
    )  # fmt: skip
    return rules.decide([claim], cells.Cells({"e": found}))


def test_the_forest_shows_what_can_be_decided() -> None:
    ((_, shown),) = figures.find_like_for_like(decide())
    assert figures.name_comparison(shown) == "lsep over bce; tiny, uniform:0.5, mAP"
    drawn = figures.draw_forest(decide())
    assert drawn is not None
    assert drawn.startswith(b"<svg")


@pytest.mark.parametrize("changes", [{"seeds": 3}, {"best_epoch": 10}])
def test_too_few_seeds_and_unequal_budgets_are_not_shown(changes: dict[str, int]) -> None:
    assert figures.find_like_for_like(decide(**changes)) == []
    assert figures.draw_forest(decide(**changes)) is None


@pytest.mark.parametrize(
    ("row", "name"),
    [("imcl[warmup=0]", "imcl"), ("imcl[lambda_y=0,lambda_f=0,warmup=0]", "imcl without its losses"), ("bce", "bce")],
)
def test_rows_are_named_without_settings(row: str, name: str) -> None:
    assert figures._short(row) == name
