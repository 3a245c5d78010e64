"""The claims as data: every name in them is known, and the paper's own figures are as claimed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evidence import claims, papers
from evidence.claims import rules, specs
from partly import methods, networks, scenarios
from partly.active.strategies import find as find_query
from partly.comparison.groups import spell
from partly.comparison.plan import FULL, method_and_settings, read_experiment
from partly.errors import DataError, SettingError
from partly.methods import imcl

EXPERIMENTS = Path(__file__).parents[3] / "evidence" / "experiments"
CONTRARY = {"tenth-above-noisy-plus-voc"}  # the text says so, and the table of the same paper does not
EVERY = {claim.id: claim for claim in claims.read()}


def test_ids_are_unique_and_every_paper_is_there() -> None:
    assert len(EVERY) == len(claims.read())
    assert {claim.paper for claim in claims.read()} == set(papers.CITATIONS)


def test_every_name_is_known() -> None:
    for claim in claims.read():
        assert claim.says.endswith("."), claim.id
        assert claim.kind in specs.KINDS, claim.id
        assert bool(claim.open) != bool(claim.a), f"{claim.id}: either there are cells, or the reason why not"
        assert (claim.within > 0) == (claim.kind == "near"), claim.id
        for where in _cells(claim):
            name, *more = where.row.split(", ")
            method_and_settings(name)
            assert all(word.startswith("tuned ") or find_query(word) for word in more), claim.id
            assert where.scenario == FULL or scenarios.parse(where.scenario)
            assert where.head in networks.heads(), claim.id


def test_the_papers_own_figures_are_as_claimed() -> None:
    """Every key is one in papers.csv, too, or it could not be looked up."""
    for claim in claims.read():
        found = [rules._theirs(claim, comparison) for comparison in _comparisons(claim.id)]
        theirs = [100 * value for value in found if value is not None]
        as_claimed = [abs(value) <= claim.within if claim.kind == "near" else value > 0 for value in theirs]
        assert all(as_claimed) != (claim.id in CONTRARY), (claim.id, theirs)


def test_a_recipe_is_for_both_sides_unless_the_other_has_its_own() -> None:
    """Spelled as result lines have it, in the order of the alphabet."""
    about = {"id": "?", "paper": "?", "where": "?", "says": "?", "data": ("voc",), "scenarios": ("full",)}
    made = {"a": ("em",), "b": ("bce",), "recipe": {"lr": 0.1, "epochs": 2}}
    written = '{"epochs": 2, "lr": 0.1}'
    for against, other in (({}, written), ({"recipe": {}}, "{}")):
        (comparison,) = claims.Claim(**about, **made, against=against).comparisons()
        (own,), (theirs,) = comparison.sides[0]
        assert (own.recipe, theirs.recipe) == (written, other)


def test_experiments_have_the_cells() -> None:
    """A cell that no experiment plans would stay undecided for ever."""
    planned = {path.stem: _planned(path) for path in EXPERIMENTS.glob("*.toml")}
    wanted = {where for claim in claims.read() for where in _cells(claim) if ", tuned " not in where.row}
    missing = [str(where) for where in wanted if _key(where) not in planned[where.experiment]]
    assert not missing


def test_imcl_has_the_settings_of_its_paper() -> None:
    name, settings = method_and_settings(EVERY["imcl-above-logistic-voc"].a[0])
    complete = methods.find(name).complete(settings)
    assert {key: complete[key] for key in imcl.PRESETS["paper"]} == imcl.PRESETS["paper"]


@cache
def _comparisons(claim: str) -> tuple[specs.Comparison, ...]:
    """Worked out once for all tests."""
    return tuple(EVERY[claim].comparisons())


def _cells(claim: specs.Claim) -> Iterator[specs.Where]:
    for comparison in _comparisons(claim.id):
        for a, b in comparison.sides:
            yield from (*a, *b)


def _key(where: specs.Where) -> tuple[str, ...]:
    return where.data, where.scenario, where.row, where.head, where.optimizer


def _planned(path: Path) -> set[tuple[str, ...]]:
    return {_cell(cell.key()) for cell in read_experiment(path).cells()}


def _cell(key: dict[str, Any]) -> tuple[str, ...]:
    row = spell(key["method"], key["settings"], methods.find(key["method"]).defaults())
    words = [
        row,
        *([f"tuned {key['tune']}"] if key["tune"] else []),
        *([key["asks"]["query"]] if "asks" in key else []),
    ]
    return key["data"], key["scenario"], ", ".join(words), key["head"], key["optimizer"]


def test_a_paper_is_found_by_a_part_of_its_name() -> None:
    assert {claim.paper for claim in claims.of_paper("zhou")} == {"Zhou et al. 2022"}
    with pytest.raises(SettingError, match="There are: "):
        claims.of_paper("nobody")


def test_mistakes_in_the_file_are_named() -> None:
    with pytest.raises(DataError, match=r"x: no entry 'scenario'.*scenarios"):
        specs._claim({"id": "x", "scenario": "full"}, {})
    wrong = specs.Claim("x", "Zhou et al. 2022", "", "", a=("em",), b=("bce",), data=("voc2012",), scenarios=("full",))
    object.__setattr__(wrong, "figures", {"table": "Table9", "dataset": "VOC2012"})
    with pytest.raises(DataError, match="0 figures"):
        list(wrong.comparisons())
