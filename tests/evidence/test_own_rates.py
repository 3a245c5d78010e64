from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evidence import own_rates
from evidence.claims import cells
from evidence.run import made
from partly.comparison import Experiment, results

RESULTS = Path(own_rates.__file__).parent / "results"


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Experiment:
    monkeypatch.setattr(own_rates, "GRIDS", {"linear": (1e-6, 0.1)})
    monkeypatch.setattr(own_rates, "MAX_RATES", 2)
    given: dict[str, Any] = {"methods": ("em", "bce"), "scenarios": ("uniform:0.5",), "heads": ("linear",)}
    data = str(made(tmp_path / "made.npz"))
    return Experiment(
        data=(data,), **given, seeds=2, naive=False, recipe={"start": "random", "epochs": 3}, name="equal-x"
    )


def test_validation_chooses_a_rate_for_each_method(experiment: Experiment, tmp_path: Path) -> None:
    own_rates.run(experiment, tmp_path)
    (key, chosen), *others = own_rates.read_rates(tmp_path / "rates.json").items()
    assert not others  # bce is solved
    assert "em" in key
    assert chosen["rate"] == 0.1
    assert chosen["scores"]["0.1"] > chosen["scores"]["1e-06"]
    lines = results.read(tmp_path / "equal-x.jsonl")
    assert [(line["method"], line["seed"], line["recipe"].get("lr")) for line in lines] == [
        ("em", 0, 0.1),
        ("bce", 0, None),
        ("em", 1, 0.1),
        ("bce", 1, None),
    ]
    assert all(len(line["validation_curve"]) == line["ran"]["epochs"] for line in lines)
    # A resumed run adds nothing.
    before = (tmp_path / "equal-x.jsonl").read_bytes()
    own_rates.run(experiment, tmp_path)
    assert (tmp_path / "equal-x.jsonl").read_bytes() == before


def test_rates_do_not_tell_cells_apart(experiment: Experiment, tmp_path: Path) -> None:
    own_rates.run(experiment, tmp_path)
    assert {json.dumps(line["recipe"]) for line in cells.read_lines(tmp_path / "equal-x.jsonl")} == {
        '{"epochs": 3, "start": "random"}'
    }
    (tmp_path / "equal-x.jsonl").rename(tmp_path / "x.jsonl")
    assert {line["recipe"].get("lr") for line in cells.read_lines(tmp_path / "x.jsonl")} == {None, 0.1}


@pytest.mark.parametrize(
    ("scores", "beyond"),
    [
        ({1.0: 0.2, 2.0: 0.4, 4.0: 0.3}, None),  # best inside
        ({1.0: 0.4, 2.0: 0.3, 4.0: 0.2}, 1 / 3),
        ({1.0: 0.2, 2.0: 0.3, 4.0: 0.4}, 12.0),
        ({1.0: 0.2, 2.0: 0.3995, 4.0: 0.4}, None),  # flat at this end
    ],
)
def test_a_grid_is_extended_at_the_end_where_it_is_best(scores: dict[float, float], beyond: float | None) -> None:
    assert own_rates.find_extension(scores) == (None if beyond is None else pytest.approx(beyond, rel=1e-2))


def test_of_equal_rates_the_smallest_is_chosen_again_and_again(experiment: Experiment, tmp_path: Path) -> None:
    cell = next(cell for cell in own_rates.wanted_cells(experiment) if cell.method == "em")
    path = tmp_path / "rates.json"
    path.write_text(json.dumps({own_rates.key_of(cell): {"scores": {"0.0001": 0.5, "1e-05": 0.5}}}))
    chosen = [own_rates.choose(cell, own_rates.Opened(experiment)[cell.data], path) for _ in range(2)]
    assert chosen == [{"lr": 1e-5}, {"lr": 1e-5}]


@pytest.mark.parametrize("path", sorted(RESULTS.glob("equal-*.jsonl")), ids=lambda path: path.stem)
def test_the_committed_lines_are_at_the_chosen_rates(path: Path) -> None:
    chosen = own_rates.read_rates(RESULTS / "rates.json")
    for line in results.read(path):
        if "lr" in line["recipe"]:
            recipe = {name: value for name, value in line["recipe"].items() if name != "lr"}
            same = [
                rate["rate"]
                for key, rate in chosen.items()
                if key.startswith(f"{line['data']} | {line['head']} | {line['method']} | ")
                and key.endswith(f" | {json.dumps(recipe, sort_keys=True)}")
                and json.loads(key.split(" | ")[3]).items() <= line["settings"].items()
            ]
            assert line["recipe"]["lr"] in same
            assert line["seed"] != own_rates.SEED
