"""Cells that ask questions: one line each, with the whole curve; and the table of their areas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from comparison.making import line
from partly.cli.compare import run_comparison
from partly.comparison import Experiment, read_experiment
from partly.comparison.active_curves import gather, render
from partly.comparison.plan import Cell
from partly.comparison.protocol import open_data, run_cell
from partly.comparison.results import key_of, read
from partly.errors import SettingError

TEXT = """
data = ["tiny.npz"]
methods = ["bce"]
scenarios = ["coarse-only:0.2"]
heads = ["linear"]
seeds = 2
queries = ["random", "uncertainty"]
recipe = { epochs = 2, batch_size = 8 }
asks = { rounds = 2, questions = 3, epochs = 1, restart = 5 }
"""


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 4)).astype(np.float32)
    y = (x @ rng.normal(size=(4, 3)) > 0).astype(int)
    parts = {"features_train": x[:28], "labels_train": y[:28], "features_test": x[28:], "labels_test": y[28:]}
    np.savez(tmp_path / "tiny.npz", **parts, names=np.array(["a", "b", "c"]), parents=np.array(["ab", "ab", ""]))
    (tmp_path / "asking.toml").write_text(TEXT)
    return tmp_path


def test_a_line_for_each_query_and_seed(tiny: Path) -> None:
    said: list[str] = []
    for _ in range(2):  # the second time everything is there
        run_comparison(read_experiment(tiny / "asking.toml"), tiny / "out", workers=1, show=said.append)
    lines = read(tiny / "out" / "asking.jsonl")
    assert {(one["asks"]["query"], one["seed"]) for one in lines} == {
        (query, seed) for query in ("random", "uncertainty") for seed in (0, 1)
    }
    assert len(lines) == 4
    for one in lines:
        assert [each["answers"] for each in one["rounds"]] == [0, 3, 6]
        curve = [each["scores"]["P@1"] for each in one["rounds"]]
        assert one["areas"]["P@1"] == pytest.approx((curve[1] + curve[2]) / 2)
        assert one["test"]["P@1"] == curve[-1]
        assert one["validation"] == "none"
    assert said[0] == said[1]
    assert "| area | random | uncertainty |" in said[0]
    assert b"<svg" in (tiny / "out" / "asking-0.svg").read_bytes()
    source = open_data(str(tiny / "tiny.npz"))
    experiment = read_experiment(tiny / "asking.toml")
    again = run_cell(experiment.cells()[0], source)
    (there,) = [one for one in lines if key_of(one) == key_of(again)]
    assert [again[name] for name in ("rounds", "predictions_sha256")] == [
        there[name] for name in ("rounds", "predictions_sha256")
    ]


def test_cells_that_ask_nothing_keep_their_key() -> None:
    assert "asks" not in Cell("d", "full", "bce", "linear", "adamw", 0).key()


def asked(data: str, method: str, **asks: Any) -> list[dict[str, Any]]:
    """Two queries, two seeds."""
    return [
        line(method, seed, data=data, head="mlp", validation="none", asks={"rounds": 5, "questions": 10} | asks | query)
        | {"areas": {"P@1": area, "P@3": None, "P@5": area / 2}, "rounds": ROUNDS}
        for query, areas in (({"query": "random"}, (0.2, 0.3)), ({"query": "uncertainty"}, (0.4, 0.5)))
        for seed, area in enumerate(areas)
    ]


ROUNDS = [{"round": n, "answers": 10 * n, "scores": dict.fromkeys(("P@1", "P@3", "P@5"), 0.5)} for n in range(3)]


def rows(text: str, start: str) -> list[list[str]]:
    found = (row.strip("|").split("|") for row in text.splitlines() if row.startswith(f"| {start}"))
    return [[cell.strip() for cell in row] for row in found]


def test_the_table_has_the_means() -> None:
    lines = asked("d", "bce")
    assert list(gather(lines)) == ["d, uniform:0.5, bce, mlp, 5 rounds of 10"]
    ((_, random, uncertainty),) = rows(render(lines), "P@1")
    assert random.startswith("0.250")
    assert uncertainty.startswith("**0.450")
    assert rows(render(lines), "P@3") == [["P@3", "undefined", "undefined"]]


def test_what_answering_cost_and_where_it_ended() -> None:
    """Where lines say so."""
    assert rows(render(asked("d", "bce")), "minutes") == []
    ends = [{**ROUNDS[-1], "scores": {**ROUNDS[-1]["scores"], "mAP": 0.25}, "seconds": 90.0 * k} for k in range(1, 5)]
    lines = [one | {"rounds": [*ROUNDS[:-1], end]} for one, end in zip(asked("d", "bce"), ends, strict=True)]
    assert rows(render(lines), "minutes") == [["minutes of answering", "2", "5"]]
    assert rows(render(lines), "final mAP") == [["final mAP", "0.250 ± 0.000", "0.250 ± 0.000"]]


def test_published_areas_stand_below_ours() -> None:
    def published(line: dict[str, Any], score: str) -> dict[str, str]:
        return {"a paper": f"{score} 0.7"} if line["asks"]["query"] == "random" else {}

    text = render(asked("coco", "refine"), published=published)
    assert [row[0] for row in rows(text, "P@")] == [name for k in (1, 3, 5) for name in (f"P@{k}", f"P@{k}, a paper")]
    assert rows(text, "P@1,")[0][1:] == ["P@1 0.7", ""]
    assert "a paper" not in render(asked("coco", "refine"))


def test_other_ways_to_ask_never_meet_in_a_row() -> None:
    lines = asked("d", "bce", restart=10) + asked("d", "bce", restart=3)
    lines += [one | {"asks": one["asks"] | {"query": "look-ahead", "settings": {"rate": 2.0}}} for one in lines[:2]]
    usual, other = gather(lines).items()
    assert other[0] == usual[0] + "[restart=3]"
    assert [list(group) for group in (usual[1], other[1])] == [
        ["random", "uncertainty", "look-ahead[rate=2.0]"],
        ["random", "uncertainty"],
    ]


def test_pictures_are_drawn_where_asked_for() -> None:
    drawn: dict[str, bytes] = {}
    text = render(asked("d", "bce"), 4, lambda name, svg: drawn.setdefault(name, svg) and "at/1.svg")
    ((title, svg),) = drawn.items()
    assert svg.startswith(b"<svg")
    assert f"#### {title}\n\n![P@k by number of answers and query](at/1.svg)\n" in text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queries": ("randm",)}, "no query 'randm'"),
        ({"asks": {"round": 3}}, "asks has no entry 'round'. Did you mean 'rounds'"),
        ({"asks": {"rounds": 0}}, "rounds = 0 must be"),
        ({"asks": {"errors": 0.9}}, "errors"),
        ({"asks": {"questions": 0}}, "questions = 0 must be"),
        ({"tune": 3}, "tune needs a validation set"),
        ({"queries": (), "asks": {"rounds": 3}}, "Add queries"),
    ],
)
def test_what_cannot_be_asked(change: dict, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Experiment(("d.npz",), ("bce",), ("full",), **{"queries": ("random",)} | change)
